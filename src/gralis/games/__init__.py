"""Functions and games whose answers are known in closed form, for tests and for trying things out.

Multilinear   polynomials c_T prod z_j: Moebius, Shapley, GRALIS, Sobol, in exact rationals
unanimity     sums of unanimity games
appendix_e    the paper's example with three features
Ishigami      the usual test of Sobol indices
SobolG        a product with every index known, for any number of inputs
Airport       v = the largest cost among the members
Glove         v = pairs of a left and a right glove
Game          what every coalition game has; derive from it for a game of your own
Anova         what every function with a known variance decomposition has

Functions are called on points (rows, n), tensors (differentiable) or arrays. Airport and Glove are called on 0/1 masks:
explain them with x = ones and baseline = 0.
"""

from gralis.games.airport import Airport
from gralis.games.anova import Anova
from gralis.games.examples import appendix_e, unanimity
from gralis.games.game import Game
from gralis.games.glove import Glove
from gralis.games.ishigami import Ishigami
from gralis.games.multilinear import Multilinear
from gralis.games.sobol_g import SobolG

__all__ = ["Airport", "Anova", "Game", "Glove", "Ishigami", "Multilinear", "SobolG", "appendix_e", "unanimity"]
