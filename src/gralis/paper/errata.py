"""Statements of the paper that are not true to the letter, each with a number that shows it."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from gralis import canonical, plans
from gralis.api.explain import explain
from gralis.arrays import Array
from gralis.certificates import Smoothness
from gralis.kernels import Gaussian, MaskKernel, Uniform
from gralis.paper import appendix_e, rational
from gralis.paper.claim_row import ClaimRow, arithmetic, collect, equal, exceeds, near
from gralis.paper.networks import FunctionModule, conv_net, image, network, point
from gralis.paper.rational import Polynomial
from gralis.results import Explanation
from gralis.scales import minimum_variance

_HALF, _ONE, _ZERO = Fraction(1, 2), Fraction(1), Fraction(0)
_UNIT, _ORIGIN = (_ONE, _ONE), (_ZERO, _ZERO)
_PRODUCT = Polynomial.multilinear(2, {(0, 1): 1})


def rows() -> list[ClaimRow]:
    early = (_prefix_sums, _joint_path, _in_the_game, _library, _bounds, _gradcam)
    return collect(*early, _taylor, _affine_segments, _running_totals, _correlated_levels)


@arithmetic
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


@arithmetic
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


@arithmetic
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


def _library() -> list[ClaimRow]:
    """The same examples explained by the library."""
    uneven, hidden = Polynomial({(1, 2): _ONE}), Polynomial({(1, 1): _ONE, (2, 1): -_ONE})
    kernel = MaskKernel(lambda masks: np.array([1.0, 2.0, 0.5, 1.0])[masks @ np.array([1, 2])])

    def run(F: Polynomial, **options: Any) -> Explanation:
        every = {"plan": "exhaustive", "budget": None, "kernel": Uniform(), **options}
        found: Explanation = explain(F.of_rows, np.ones(2), **every)
        return found

    return [
        near(
            "explain, F = ab: endpoint form", (_HALF, _HALF), lambda: run(_PRODUCT, plan="endpoint").values, "T3, N_i"
        ),
        near("explain, F = ab: joint path", (_HALF / 2, _HALF / 2), lambda: run(_PRODUCT).values, "T3, N_i"),
        near(
            "explain, a^2 = bc: sum of the joint-path phi of ab",
            _HALF,
            lambda: run(_PRODUCT, kernel=kernel).values.sum(),
            "Rem. normalized-incompatibility",
        ),
        near(
            "explain, F = ab^2: IG",
            (Fraction(1, 3), Fraction(2, 3)),
            lambda: run(uneven).integrated_gradients().values,
            "Tab. axioms, Symmetry",
        ),
        near(
            "explain, F = ab^2: phi",
            (Fraction(1, 6), Fraction(1, 3)),
            lambda: run(uneven).values,
            "Rem. symmetry-break",
        ),
        near(
            "explain, F = a(1-a)b: IG",
            (Fraction(-1, 6), Fraction(1, 6)),
            lambda: run(hidden).integrated_gradients().values,
            "Tab. axioms, Dummy",
        ),
        near(
            "explain, F = a(1-a)b: phi",
            (Fraction(-1, 12), Fraction(1, 12)),
            lambda: run(hidden).values,
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


def _taylor() -> list[ClaimRow]:
    """GradCAM-lin is not the first-order Taylor term at A = 0: it pools the gradient, and takes it at A, not at 0."""
    single, square = (
        _gradcam_lin(lambda a: a[:, 0, 0, 0], (0, 1)),
        _gradcam_lin(lambda a: a.sum((1, 2, 3)) ** 2, (1, 1)),
    )
    pooled = _gradcam_lin(lambda a: a.mean((1, 2, 3)), (3, 1))
    source = "Sec. methods, Eq. taylor_gradcam"
    return [
        near("y = A_1 at A = (0, 1): GradCAM-lin, where the Taylor term is (0, 0)", (0, 0.5), single, source),
        near("y = (A_1 + A_2)^2 at (1, 1): GradCAM-lin, where the Taylor term is (0, 0)", (4, 4), square, source),
        near("y = (A_1 + A_2) / 2 at (3, 1), one gradient everywhere: the Taylor term", (1.5, 0.5), pooled, source),
    ]


def _gradcam_lin(head: Callable[[Tensor], Tensor], activation: tuple[float, float]) -> Array:
    """GradCAM-lin of a head on one channel with two positions."""
    net = nn.Sequential(nn.Identity(), FunctionModule(head)).eval()
    a = torch.tensor(activation, dtype=torch.float64).reshape(1, 1, 2)
    return canonical.gradcam_lin(net, a, layer=net[0]).attribution().ravel()


def _affine_segments() -> list[ClaimRow]:
    """C1: "the two coincide only when F is affine along that segment". This is neither sufficient nor necessary.

    F = (a - b) b^3 is 0 on the ray (t, t) and a - 1 on the segment (a, 1), so it is affine on both.
    """
    affine, bent = Polynomial({(1, 3): _ONE, (0, 4): -_ONE}), Polynomial({(2, 0): _ONE, (0, 2): _ONE})
    both, second = frozenset({0, 1}), frozenset({1})
    rows = []
    for name, F, ray, step in (("(a-b)b^3, affine", affine, Fraction(1, 4), _ONE), ("a^2+b^2, bent", bent, _ONE, _ONE)):
        v = F.game(_UNIT, _ORIGIN)
        rows.append(equal(f"F = {name}: IG_1({{2}})", ray, F.ray(_UNIT, _ORIGIN, both)[0], "C1"))
        rows.append(equal(f"F = {name}: F(1, 1) - F(0, 1)", step, v[both] - v[second], "C1"))
    one_node = canonical.integrated_gradients(affine.of_rows, np.ones(2), n_nodes=1).attribution()[0]
    options = {"kernel": Uniform(), "budget": None}
    forms = [explain(affine.of_rows, np.ones(2), plan=p, **options).values[0] for p in ("exhaustive", "endpoint")]  # type: ignore[call-overload]
    return [
        *rows,
        near("F = (a-b)b^3: one midpoint, where exactness is claimed and IG = 1/4", 1 / 8, one_node, "C1"),
        near("F = (a-b)b^3: phi_1 by rays and by endpoints", (1 / 8, 1 / 2), forms, "C1"),
    ]


def _running_totals() -> list[ClaimRow]:
    """a + b and a + b + 8 (a^2 - a) have the same slopes at a = 1/2, and so the same running totals; B differs."""
    straight = _algorithm_1(lambda z: z.sum(1))
    curved = _algorithm_1(lambda z: z.sum(1) + 8 * (z[:, 0] ** 2 - z[:, 0]))
    smooth = Smoothness(third=0.0)
    widths = [e.certificate(0.1, "paper", b, smooth).half_widths[0] for e, b in ((straight, [1, 1]), (curved, [9, 1]))]
    seen = [e.certificate(0.1, "paper", smoothness=smooth).half_widths[0] for e in (straight, curved)]
    source = "Prop. one-pass (i)"
    return [
        near("a + b, and a + b + 8 (a^2 - a): phi of both, k = 1", straight.values, curved.values, source),
        near("their certificates from the same running totals, ratio", 9.0, widths[1] / widths[0], source),
        near("ratio if B is read off the points, which sees no difference", 1.0, seen[1] / seen[0], source),
    ]


def _algorithm_1(function: Callable[[Tensor], Tensor]) -> Explanation:
    plan = plans.permutation(n_permutations=6)
    return explain(function, np.ones(2), plan=plan, n_nodes=1, budget=None, kernel=Gaussian(0.75))


def _correlated_levels() -> list[ClaimRow]:
    """Variances 1 and 4, covariance 3/2: inverse-variance weights are worse than the first level by itself."""
    sigma = np.array([[1.0, 1.5], [1.5, 4.0]])
    simple, best = (minimum_variance(sigma, method) for method in ("inverse-variance", "covariance"))
    source = "Rem. ms-independence"
    return [
        near("correlated levels: inverse-variance weights", (4 / 5, 1 / 5), simple, source),
        near("their variance, where level 1 alone has 1", 32 / 25, float(simple @ sigma @ simple), source),
        near("their variance if levels were uncorrelated", 4 / 5, float(simple**2 @ np.diag(sigma)), source),
        near("the least variance", 7 / 8, float(best @ sigma @ best), source, within=1e-7),
    ]
