"""Functions and games with closed-form answers, for tests and for trying things out.

Multilinear   polynomials c_T prod z_j: Moebius, Shapley, GRALIS, Sobol, in exact rationals
unanimity     sums of unanimity games
appendix_e    the paper's three-feature toy
Ishigami      the usual test of Sobol indices
SobolG        a product with every index known, for any number of inputs
Airport       v = the largest cost among the members
Glove         v = pairs of a left and a right glove

Functions are called on points (rows, n), tensors (differentiable) or arrays; Airport and Glove on 0/1 masks, that is
with x = ones and baseline = 0.
"""

from gralis.games.airport import Airport
from gralis.games.anova import Anova
from gralis.games.game import Game
from gralis.games.glove import Glove
from gralis.games.ishigami import Ishigami
from gralis.games.multilinear import Multilinear, appendix_e, unanimity
from gralis.games.sobol_g import SobolG

__all__ = ["Airport", "Anova", "Game", "Glove", "Ishigami", "Multilinear", "SobolG", "appendix_e", "unanimity"]
