"""Sensitivity of a model over its whole input space: Sobol indices, Shapley effects and Hoeffding terms.

indices          `sensitivity` computes Sobol indices and Shapley effects
result           `Sensitivity`, which `sensitivity` returns
hoeffding_terms  `hoeffding` computes the terms of F at one input
settings         the options of both functions, checked, and how the budget is divided
inputs           how the inputs are distributed
values           F at many points
input_sets       which sets of inputs are asked for
quadrature       indices on a tensor grid (`axis`), for few inputs, which random points check (`grid_check`)
pick_freeze      sampled indices with intervals, from mixtures of two tables of rows (`design`) and their `moments`
rare_events      what the intervals of sampled indices have for rare events that were not seen
surrogate        a polynomial with known indices, which reduces the error of sampled indices
found            what quadrature and sampling hand over
one_pass         `term_shares` computes Sobol indices from explanations that exist already
share_table      `TermShares`, which `term_shares` returns
"""

from gralis.sobol.hoeffding_terms import Hoeffding, hoeffding
from gralis.sobol.indices import sensitivity
from gralis.sobol.one_pass import term_shares
from gralis.sobol.result import Sensitivity
from gralis.sobol.share_table import TermShares

__all__ = ["Hoeffding", "Sensitivity", "TermShares", "hoeffding", "sensitivity", "term_shares"]
