"""Other explainers as arithmetic on the same ledger, without a model call.

coalition_values   the coalition values of a ledger, and how many coalitions each row stands for
from_values        interaction indices, Moebius coefficients, KernelSHAP and LIME from them
transform          Moebius coefficients of all coalitions at once, and the indices that follow from them
indices            Shapley, Banzhaf, SII, STII, k-SII: one table of weights for each index
sampled            the same indices from sampled coalitions, with errors
regression         KernelSHAP, Faith-Shap and LIME by weighted least squares on coalition values
paths              Integrated Gradients (the ray of all features) and single features
"""

from gralis.explainers.coalition_values import CoalitionValues, coalition_values_of
from gralis.explainers.from_values import INDICES

__all__ = ["INDICES", "CoalitionValues", "coalition_values_of"]
