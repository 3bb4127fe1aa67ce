"""Other explainers as arithmetic on the same ledger: no model call.

game         the coalition values of a ledger, and what a row of them counts
transform    Moebius coefficients of all coalitions at once, and every index from them
indices      Shapley, Banzhaf, SII, STII: one table of weights each
sampled      those indices from sampled coalitions, with errors
regression   KernelSHAP, Faith-Shap and LIME: weighted least squares on coalition values
paths        Integrated Gradients (the ray of all features) and single features
attribution  what they return
"""

from gralis.results.attribution import Attribution, Interactions, Surrogate

__all__ = ["Attribution", "Interactions", "Surrogate"]
