"""Sensitivity of a model to its inputs: Sobol indices, Shapley effects, Hoeffding terms at a point.

indices     `sensitivity`: Sobol indices and Shapley effects
point       `hoeffding`: the terms at one x
inputs      how the inputs are distributed
quadrature  exact on a tensor grid, for few inputs
pick_freeze estimates from two tables of rows (`design`), less what a polynomial (`surrogate`) knows, with intervals
"""

from gralis.sobol.hoeffding_terms import Hoeffding, hoeffding
from gralis.sobol.indices import sensitivity
from gralis.sobol.result import Sensitivity

__all__ = ["Hoeffding", "Sensitivity", "hoeffding", "sensitivity"]
