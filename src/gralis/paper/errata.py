"""Statements of the paper that are not true to the letter, each with a number that shows it."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import torch

from gralis import canonical, plans
from gralis.api.explain import explain
from gralis.kernels import Gaussian
from gralis.paper import appendix_e, rational
from gralis.paper.claim_row import ClaimRow, equal, exceeds, near
from gralis.paper.networks import conv_net, image, network, point
from gralis.paper.rational import Polynomial

_HALF, _ONE, _ZERO = Fraction(1, 2), Fraction(1), Fraction(0)
_UNIT, _ORIGIN = (_ONE, _ONE), (_ZERO, _ZERO)
_PRODUCT = Polynomial.multilinear(2, {(0, 1): 1})


def rows() -> list[ClaimRow]:
    return [*_prefix_sums(), *_joint_path(), *_in_the_game(), *_bounds(), *_gradcam()]


def _prefix_sums() -> list[ClaimRow]:
    """Contributions along one permutation belong to different rays; only the row of the last ray sums to v."""
    F, x, base = appendix_e.TOY, appendix_e.X, appendix_e.BASE
    parts = [F.ray(x, base, frozenset(range(i + 1)))[i] for i in range(3)]
    scaled = Polynomial.multilinear(2, {(0, 1): 5})
    m = rational.moebius(scaled.game((Fraction(2), Fraction(3)), _ORIGIN))[frozenset({0, 1})]
    source = "Prop. one-pass (ii)"
    return [
        equal("order 1, 2, 3: contributions", (2, 5, Fraction(3, 2)), parts, source),
        equal("their sum is not v(F) = 11", Fraction(17, 2), sum(parts), source),
        equal("the whole row of the ray of F sums to v(F)", 11, sum(F.ray(x, base, frozenset(range(3)))), source),
        equal("F = 5ab at (2, 3): m({1,2}) of the game, where the coefficient is 5", 30, m, "Cor. mobius-correction"),
    ]


def _joint_path() -> list[ClaimRow]:
    ends = rational.endpoint(_PRODUCT.game(_UNIT, _ORIGIN), 2)
    rays = rational.gralis(_PRODUCT, _UNIT, _ORIGIN)
    table = {0: _ONE, 1: Fraction(2), 2: _HALF}
    special = rational.gralis(_PRODUCT, _UNIT, _ORIGIN, lambda s: table[sum(j + 1 for j in s)])
    return [
        equal("F = ab: endpoint form", (_HALF, _HALF), ends, "T3, N_i"),
        equal("F = ab: joint path, not the same N_i", (Fraction(1, 4), Fraction(1, 4)), rays, "T3, N_i"),
        equal(
            "a^2 = bc: sum of the joint-path phi of ab, not 1", _HALF, sum(special), "Rem. normalized-incompatibility"
        ),
        equal(
            "predecessors move with a: IG_1({2}) of ab, not 1",
            _HALF,
            _PRODUCT.ray(_UNIT, _ORIGIN, frozenset({0, 1}))[0],
            "C1",
        ),
    ]


def _in_the_game() -> list[ClaimRow]:
    """Symmetric or null in the game v is weaker than in F: a path also sees what F does between the corners."""
    uneven = Polynomial({(1, 2): _ONE})  # v = 1 for both together, 0 for either alone
    hidden = Polynomial({(1, 1): _ONE, (2, 1): -_ONE})  # a (1 - a) b: v = 0 everywhere
    both = frozenset({0, 1})
    return [
        equal(
            "F = ab^2, symmetric in v: IG",
            (Fraction(1, 3), Fraction(2, 3)),
            uneven.ray(_UNIT, _ORIGIN, both),
            "Tab. axioms, Symmetry",
        ),
        equal(
            "F = ab^2, sigma = infinity: phi",
            (Fraction(1, 6), Fraction(1, 3)),
            rational.gralis(uneven, _UNIT, _ORIGIN),
            "Rem. symmetry-break",
        ),
        equal(
            "F = a(1-a)b, v = 0: IG",
            (Fraction(-1, 6), Fraction(1, 6)),
            hidden.ray(_UNIT, _ORIGIN, both),
            "Tab. axioms, Dummy",
        ),
        equal(
            "F = a(1-a)b, v = 0: phi",
            (Fraction(-1, 12), Fraction(1, 12)),
            rational.gralis(hidden, _UNIT, _ORIGIN),
            "Tab. axioms, Dummy",
        ),
    ]


def _bounds() -> list[ClaimRow]:
    # On the ray of both features the slope of relu(a + b - 1) is 1 for a > 1/2, so IG = 1/2. Of the three
    # midpoints 1/6, 1/2 and 5/6 only the last sees that slope, so the rule gives 1/3.
    kink = canonical.integrated_gradients(lambda z: torch.relu(z.sum(1) - 1), np.ones(2), n_nodes=3).attribution()
    pixels = np.random.default_rng(0).random((3, 224, 224))
    pieces = np.array_split(pixels.ravel() ** 2, 25)
    literal = max(float(np.exp(-piece.sum() / (2 * 0.75**2))) for piece in pieces)
    n = 8
    explanation = explain(
        network(5, n), point(5, n), plan=plans.permutation(n_permutations=30), n_nodes=10, budget=None
    )
    certificate = explanation.certificate(method="paper")
    relative = Gaussian(0.75).log_weight(np.ones((1, n), dtype=bool), point(5, n) ** 2)[0]
    return [
        near("relu(a + b - 1), D3 = 0 where it exists: midpoint error", 1 / 6, 0.5 - kink[0], "Thm. mc"),
        equal("exp(-||x_S - x'_S||^2 / 2 sigma^2) of 25 superpixels, largest", 0.0, literal, "Def. explicit"),
        near("relative distance: pi(F) = exp(-1 / 2 sigma^2)", np.exp(-1 / (2 * 0.75**2)), float(np.exp(relative))),
        exceeds(
            "aggregate bound / |F(x) - F(x')|, m = 30: it says nothing",
            1.0,
            certificate.aggregate / abs(explanation.delta),
            "Cor. ratio-bound",
        ),
    ]


def _gradcam() -> list[ClaimRow]:
    """Where GradCAM-lin is negative, GradCAM is 0: there the two do not agree, not even to first order."""
    gaps = []
    for seed in range(6):
        net = conv_net(seed)
        lin = canonical.gradcam_lin(net, image(seed), layer=net[1]).attribution()
        cam = canonical.gradcam(net, image(seed), layer=net[1])
        below = lin < 0
        gaps.extend(((cam - lin)[below] / -lin[below]).tolist())
    return [
        near(
            "GradCAM - GradCAM-lin, relative, where the latter is < 0",
            np.ones(2),
            (min(gaps), max(gaps)),
            "Sec. methods",
        ),
    ]
