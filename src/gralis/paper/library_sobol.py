"""`sensitivity` and `hoeffding` against the Hoeffding terms of polynomials in rational arithmetic."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, product
from math import factorial, pi
from typing import Any

import numpy as np
import torch

from gralis.api.explain import explain
from gralis.arrays import Array
from gralis.paper.appendix_e import TOY
from gralis.paper.appendix_e import hoeffding as terms_of
from gralis.paper.claim_row import ClaimRow, at_most, between, collect, equal, near
from gralis.paper.rational import Coalition, Polynomial, subsets
from gralis.sobol import Sensitivity, hoeffding, sensitivity, term_shares

_CURVED = Polynomial(
    {
        (2, 1, 0): Fraction(3),
        (1, 0, 2): Fraction(-2),
        (0, 1, 1): Fraction(4),
        (3, 0, 0): Fraction(1),
        (1, 2, 1): Fraction(8),
    }
)
_FIVE = Polynomial.multilinear(
    5, {(0,): 3, (1,): -2, (3,): 1, (0, 1): 4, (1, 2, 3): 6, (2, 4): -3, (0, 1, 2, 3): 8, (0, 2, 3, 4): -7}
)
#: z_0 + 16 (z_1 - 1/2) (z_2 - 1/2) (z_3 - 1/2) + z_4 z_5, without its constant: no surrogate of pairs fits the product.
_SIX = Polynomial.multilinear(
    6,
    {(0,): 1, (4, 5): 1, (1, 2, 3): 16, (1, 2): -8, (1, 3): -8, (2, 3): -8, (1,): 4, (2,): 4, (3,): 4},
)
_UNIT = (0.0, 1.0)


def rows() -> list[ClaimRow]:
    return collect(_quadrature, _ishigami, _data, _sampled, _drawn, _sets, _terms, _sampled_terms, _one_pass)


def variances(F: Polynomial) -> dict[Coalition, Fraction]:
    """Var f_T for inputs that are uniform on [0, 1]."""
    return {t: f.times(f).mean() for t, f in terms_of(F).items() if t}


def indices(parts: dict[Coalition, Fraction], n: int) -> dict[str, list[Fraction]]:
    """Every index from Var f_T, by its definition."""
    whole = sum(parts.values(), Fraction(0))
    pairs = [frozenset(pair) for pair in combinations(range(n), 2)]
    return {
        "first": [parts[frozenset({i})] / whole for i in range(n)],
        "total": [sum(p for t, p in parts.items() if i in t) / whole for i in range(n)],
        "shapley": [sum(p / len(t) for t, p in parts.items() if i in t) / whole for i in range(n)],
        "pairs": [parts[pair] / whole for pair in pairs],
        "closed": [sum(p for t, p in parts.items() if t <= pair) / whole for pair in pairs],
    }


def _of(result: Sensitivity, name: str) -> Array:
    found = getattr(result, name)
    return np.array(list(found.values()) if hasattr(found, "values") else found)


def _quadrature() -> list[ClaimRow]:
    claims = []
    for label, F in (("Appendix E", TOY), ("a cubic", _CURVED)):
        result = sensitivity(F.of_rows, [_UNIT] * 3, dtype=torch.float64)
        parts = variances(F)
        mean = F.mean()
        claims += [
            equal(
                f"{label}: exact, which quadrature does not claim", False, lambda r=result: r.exact, "sobol.sensitivity"
            ),
            between(
                f"{label}: largest half-width of quadrature",
                1e-16,
                1e-9,
                lambda r=result: float(max(r.first_half_width.max(), r.total_half_width.max())),
                "sobol.sensitivity",
            ),
            near(
                f"{label}: E F, Var F",
                (mean, F.times(F).mean() - mean**2),
                lambda r=result: (r.mean, r.variance),
                "sobol.sensitivity",
            ),
            *(
                near(f"{label}: {name}", expected, lambda r=result, k=name: _of(r, k), "sobol.sensitivity")
                for name, expected in indices(parts, 3).items()
            ),
        ]
    return claims


def _ishigami() -> list[ClaimRow]:
    """sin x_1 + 7 sin^2 x_2 + 0.1 x_3^4 sin x_1 on [-pi, pi]^3, whose indices are in the literature."""
    a, b = 7.0, 0.1
    v1, v2, v13 = (1 + b * pi**4 / 5) ** 2 / 2, a**2 / 8, b**2 * pi**8 * (1 / 18 - 1 / 50)
    whole = v1 + v2 + v13

    def model(z: torch.Tensor) -> torch.Tensor:
        return torch.sin(z[:, 0]) + a * torch.sin(z[:, 1]) ** 2 + b * z[:, 2] ** 4 * torch.sin(z[:, 0])

    result = sensitivity(model, [(-pi, pi)] * 3, dtype=torch.float64)
    return [
        near("Ishigami: first", (v1 / whole, v2 / whole, 0.0), lambda: result.first, "sobol.sensitivity", 1e-8),
        near(
            "Ishigami: total",
            ((v1 + v13) / whole, v2 / whole, v13 / whole),
            lambda: result.total,
            "sobol.sensitivity",
            1e-8,
        ),
    ]


def _data() -> list[ClaimRow]:
    """A matrix of data: its columns are independent, each uniform on its values."""
    X = np.array([[0.0, 1.0], [2.0, -1.0], [3.0, 1.0], [2.0, 4.0]])
    F = Polynomial({(2, 1): Fraction(1), (1, 0): Fraction(2), (0, 2): Fraction(-1)})
    columns = [[Fraction(float(c)) for c in column] for column in X.T]
    grid = list(product(*columns))
    mean = sum(F(z) for z in grid) / len(grid)
    variance = sum(F(z) ** 2 for z in grid) / len(grid) - mean**2
    given = [[sum(F((z, w) if i == 0 else (w, z)) for w in columns[1 - i]) / 4 for z in columns[i]] for i in range(2)]
    first = [sum((m - mean) ** 2 for m in row) / 4 / variance for row in given]
    result = sensitivity(F.of_rows, X, dtype=torch.float64)
    return [
        near("data: E F, Var F", (mean, variance), lambda: (result.mean, result.variance), "sobol.sensitivity"),
        near("data: first", first, lambda: result.first, "sobol.sensitivity"),
        equal(
            "data: all of the finite inputs are enumerated, so exact", True, lambda: result.exact, "sobol.sensitivity"
        ),
    ]


def _sampled() -> list[ClaimRow]:
    """Pick-freeze with a surrogate, for inputs with bounds."""
    return [*_pick_freeze("3 inputs", _CURVED, [_UNIT] * 3), *_pick_freeze("6 inputs", _SIX, [_UNIT] * 6)]


def _drawn() -> list[ClaimRow]:
    """Pick-freeze by itself: the inputs come from a function, so no surrogate can be fitted to their levels."""
    return _pick_freeze("5 drawn inputs", _FIVE, lambda rng, rows: rng.random((rows, 5)))


def _pick_freeze(label: str, F: Polynomial, sampler: Any) -> list[ClaimRow]:
    """Every index of three runs against rational arithmetic."""
    truth = indices(variances(F), F.n_features)
    runs = [
        sensitivity(F.of_rows, sampler, method="sampling", budget=2**15, seed=seed, dtype=torch.float64)
        for seed in range(3)
    ]
    source = "sobol.sensitivity"
    mean, variance = float(F.mean()), float(sum(variances(F).values()))
    off = [
        (abs(run.mean - mean) / run.mean_half_width, abs(run.variance - variance) / run.variance_half_width)
        for run in runs
    ]
    return [
        *(
            at_most(
                f"sampled, {label}: {name} off the truth, in half-widths",
                1.6,
                lambda k=name, e=expected: _worst(runs, k, e),
                source,
            )
            for name, expected in truth.items()
        ),
        at_most(f"sampled, {label}: E F and Var F off the truth, in half-widths", 1.6, float(np.max(off)), source),
        at_most(
            f"sampled, {label}: largest half-width of first", 0.1, max(r.first_half_width.max() for r in runs), source
        ),
    ]


def _worst(runs: list[Any], name: str, expected: list[Fraction]) -> float:
    worst = 0.0
    for run in runs:
        half = getattr(run, f"{name}_half_width")
        half = np.array(list(half.values()) if hasattr(half, "values") else half)
        off = np.abs(_of(run, name) - np.array(expected, dtype=float))
        worst = max(worst, float((off / (half + 1e-12)).max()))
    return worst


def _sets() -> list[ClaimRow]:
    """Indices of a set of three inputs, on a grid and from pick-freeze."""
    triple, whole = frozenset(range(3)), sum(variances(_CURVED).values(), Fraction(0))
    own = variances(_CURVED)[triple] / whole
    run = sensitivity(_CURVED.of_rows, [_UNIT] * 3, sets=[(2, 0, 1)], dtype=torch.float64)
    five = variances(_FIVE)
    within = sum((v for t, v in five.items() if t <= {1, 2, 3}), Fraction(0))
    parts = [part / sum(five.values(), Fraction(0)) for part in (five[frozenset({1, 2, 3})], within)]

    def drawn(rng: np.random.Generator, rows: int) -> Array:
        return rng.random((rows, 5))

    sampled = sensitivity(_FIVE.of_rows, drawn, sets=[(1, 2, 3)], budget=2**16, dtype=torch.float64)
    source = "sobol.sensitivity"
    return [
        near(
            "three inputs: S_T and closed S_T",
            (own, 1),
            lambda: (run.interactions[0, 1, 2], run.closed[0, 1, 2]),
            source,
        ),
        at_most(
            "three of five, sampled: S_T and closed S_T off the truth, in half-widths",
            1.6,
            lambda: max(
                abs(found[1, 2, 3] - float(part)) / half[1, 2, 3]
                for found, half, part in (
                    (sampled.interactions, sampled.interactions_half_width, parts[0]),
                    (sampled.closed, sampled.closed_half_width, parts[1]),
                )
            ),
            source,
        ),
    ]


def _one_pass() -> list[ClaimRow]:
    """z_0 - z_1 + 2 z_0 z_1 + 3 z_0 z_1 z_2 explained at all points of {-1, 1}^3, from a baseline next to 0."""
    F = Polynomial.multilinear(3, {(0,): 1, (1,): -1, (0, 1): 2, (0, 1, 2): 3})
    squares = {(0,): 1, (1,): 1, (0, 1): 4, (0, 1, 2): 9}  # the terms are the monomials, with variance 1 each
    whole = sum(squares.values())
    runs = [
        explain(F.of_rows, np.array(x), baseline=[1e-9] * 3, plan="exhaustive", budget=None)
        for x in product((-1.0, 1.0), repeat=3)
    ]
    found = term_shares(runs, max_order=3)
    shares = [Fraction(squares.get(t, 0), whole) for t in found.sets]
    closed = [Fraction(sum(v for u, v in squares.items() if set(u) <= set(t)), whole) for t in found.sets]
    source = "sobol.term_shares"
    return [
        near("shares of all terms", shares, lambda: [found.shares[t] for t in found.sets], source, 1e-6),
        near("closed shares", closed, lambda: [found.closed[t] for t in found.sets], source, 1e-6),
        equal("doubts: none, because every term has the mean zero", 0, lambda: len(found.doubts), source),
    ]


def _at(F: Polynomial, x: tuple[Fraction, ...], order: int) -> list[Fraction]:
    terms = terms_of(F)
    return [terms[t](x) for t in subsets(range(len(x))) if 1 <= len(t) <= order]


def _terms() -> list[ClaimRow]:
    x = (Fraction(1, 5), Fraction(9, 10), Fraction(2, 3))
    result = hoeffding(_CURVED.of_rows, [float(c) for c in x], [_UNIT] * 3, dtype=torch.float64)
    whole = hoeffding(_CURVED.of_rows, [float(c) for c in x], [_UNIT] * 3, max_order=3, dtype=torch.float64)
    higher = terms_of(_CURVED)[frozenset(range(3))](x)
    return [
        near("terms of up to two inputs", _at(_CURVED, x, 2), lambda: list(result.terms.values()), "sobol.hoeffding"),
        near("terms of up to three inputs", _at(_CURVED, x, 3), lambda: list(whole.terms.values()), "sobol.hoeffding"),
        near("E F and F(x)", (_CURVED.mean(), _CURVED(x)), lambda: (result.mean, result.f_x), "sobol.hoeffding"),
        near("the remainder is the term of all three", higher, lambda: result.remainder, "sobol.hoeffding"),
        equal("orders that are listed", factorial(3), lambda: len(result.terms), "sobol.hoeffding"),
    ]


def _sampled_terms() -> list[ClaimRow]:
    x = (Fraction(1, 5), Fraction(9, 10), Fraction(2, 3))
    truth = np.array([_CURVED.mean(), *_at(_CURVED, x, 2)], dtype=float)
    off = []
    for seed in range(3):
        run = hoeffding(
            _CURVED.of_rows,
            [float(c) for c in x],
            [_UNIT] * 3,
            method="sampling",
            budget=4096,
            seed=seed,
            dtype=torch.float64,
        )
        found = np.array([run.mean, *run.terms.values()])
        half = np.array([run.mean_half_width, *run.half_width.values()])
        off.append(float((np.abs(found - truth) / half).max()))
    return [at_most("sampled terms and E F off the truth, in half-widths", 1.6, max(off), "sobol.hoeffding")]
