"""Sensitivity of a model over its whole input space: Sobol indices, Shapley effects and Hoeffding terms.

indices          `sensitivity` computes Sobol indices and Shapley effects
result           `Sensitivity`, which `sensitivity` returns
hoeffding_terms  `hoeffding` computes the terms of F at one input
settings         the options of both functions, checked, and how the budget is divided
inputs           how the inputs are distributed
values           F at many points
quadrature       exact indices on a tensor grid (`axis`), for few inputs
pick_freeze      sampled indices with intervals, from mixtures of two tables of rows (`design`)
surrogate        a polynomial with known indices, which reduces the error of sampled indices
"""

from gralis.sobol.hoeffding_terms import Hoeffding, hoeffding
from gralis.sobol.indices import sensitivity
from gralis.sobol.result import Sensitivity

__all__ = ["Hoeffding", "Sensitivity", "hoeffding", "sensitivity"]
