"""Which kernels keep the sum in the endpoint form: N_i = sum over S of w(S) pi(S) (v(S u i) - v(S)), phi_i = N_i / Z_i.

The sum over i is a linear form in v. A kernel keeps the sum if that form is v(F) - v(empty) for every game v; this is a
condition on the coefficients of the form, which are computed here.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import numpy as np

from gralis.api.explain import explain
from gralis.arrays import Array
from gralis.kernels import MaskKernel
from gralis.paper.claim_row import ClaimRow, arithmetic, collect, equal, exceeds, near
from gralis.paper.rational import Coalition, Polynomial, endpoint, largest, shapley_weight, subsets, without

_TRIALS = 100
Table = Mapping[Coalition, Fraction]


def rows() -> list[ClaimRow]:
    return collect(_numerator, _two_features, _library)


def coefficients(n: int, kernel: Table, *, normalised: bool) -> dict[Coalition, Fraction]:
    """The coefficient of v(T) in the sum over i of phi_i (normalised) or of N_i."""
    form = {t: Fraction(0) for t in subsets(range(n))}
    for i in range(n):
        weight = {s: shapley_weight(n, len(s)) * kernel[s] for s in without(n, i)}
        scale = sum(weight.values(), Fraction(0)) if normalised else Fraction(1)
        for s, w in weight.items():
            form[s | {i}] += w / scale
            form[s] -= w / scale
    return form


def efficient(n: int, kernel: Table, *, normalised: bool) -> bool:
    """Whether the sum is v(F) - v(empty) for every game v."""
    wanted = {t: Fraction((len(t) == n) - (len(t) == 0)) for t in subsets(range(n))}
    return coefficients(n, kernel, normalised=normalised) == wanted


def random_kernel(rng: np.random.Generator, n: int) -> dict[Coalition, Fraction]:
    """A table of positive rational numbers that are not all the same."""
    return {t: Fraction(int(rng.integers(1, 12)), int(rng.integers(1, 12))) for t in subsets(range(n))}


@arithmetic
def _numerator() -> list[ClaimRow]:
    rng = np.random.default_rng(0)
    kept, formula = 0, []
    for trial in range(_TRIALS):
        n = 2 + trial % 3
        kernel = random_kernel(rng, n)
        kernel[frozenset()] = Fraction(1)
        kept += efficient(n, kernel, normalised=False)
        form = coefficients(n, kernel, normalised=False)
        for t in subsets(range(n))[1:-1]:
            inner = sum(kernel[t - {i}] for i in t) - len(t) * kernel[t]
            formula.append(form[t] - shapley_weight(n, len(t) - 1) * inner)
    flat = [{t: Fraction(5 if len(t) == n else 1) for t in subsets(range(n))} for n in (2, 3, 4)]
    constant = [efficient(n, kernel, normalised=False) for n, kernel in zip((2, 3, 4), flat, strict=True)]
    source = "Prop. incompatibility"
    return [
        equal("numerator: kernels out of 100 random ones that keep the sum", 0, kept, source),
        equal("numerator: pi = 1 on proper subsets keeps it, any pi(F)", True, all(constant), source),
        equal("c(T) = w(t - 1) [sum of pi(T without i) - t pi(T)]", 0, largest(formula), source),
    ]


@arithmetic
def _two_features() -> list[ClaimRow]:
    empty, first, second, both = subsets(range(2))
    example = {empty: Fraction(1), first: Fraction(2), second: Fraction(1, 2), both: Fraction(1)}
    rng, agree = np.random.default_rng(1), []
    for trial in range(_TRIALS):
        b, c = (Fraction(int(rng.integers(1, 9)), int(rng.integers(1, 9))) for _ in range(2))
        a, c = (
            (b, b) if trial % 4 == 0 else (b * 2, 4 * b) if trial % 4 == 1 else (Fraction(int(rng.integers(1, 9))), c)
        )
        kernel = {empty: a, first: b, second: c, both: Fraction(1)}
        agree.append(efficient(2, kernel, normalised=True) == (a**2 == b * c))
    p = (Fraction(1, 2), Fraction(2, 3))
    gaussian = {empty: Fraction(1), first: p[0], second: p[1], both: p[0] * p[1]}
    missing = 1 - coefficients(2, gaussian, normalised=True)[both]
    source = "Rem. normalized-incompatibility"
    return [
        equal(
            "n = 2, pi = 1, 2, 1/2: the normalised sum is kept", True, efficient(2, example, normalised=True), source
        ),
        equal("n = 2: kept for every game if and only if a^2 = bc, 100 kernels", True, all(agree), source),
        exceeds("n = 2: a Gaussian kernel breaks it, 1 - coefficient of v(F)", 0.0, float(missing), source),
    ]


def _library() -> list[ClaimRow]:
    """The endpoint form of the library under kernels given as functions of masks."""
    table = {0: Fraction(1), 1: Fraction(2), 2: Fraction(1, 2), 3: Fraction(1)}
    curved = Polynomial({(1, 2): Fraction(3), (2, 0): Fraction(-2), (0, 1): Fraction(5), (1, 1): Fraction(1)})
    game = curved.game((Fraction(1),) * 2, (Fraction(0),) * 2)
    p = (Fraction(1, 2), Fraction(2, 3))
    gaussian = {0: Fraction(1), 1: p[0], 2: p[1], 3: p[0] * p[1]}

    def values(weights: Mapping[int, Fraction]) -> Array:
        kernel = MaskKernel(lambda masks: np.array([float(weights[int(code)]) for code in masks @ np.array([1, 2])]))
        return explain(curved.of_rows, np.ones(2), plan="endpoint", kernel=kernel, budget=None).values

    def predicted(weights: Mapping[int, Fraction]) -> list[Fraction]:
        return endpoint(game, 2, lambda s: weights[sum(j + 1 for j in s)])

    source = "Rem. normalized-incompatibility"
    return [
        near("explain, pi = 1, 2, 1/2: phi in the endpoint form", predicted(table), lambda: values(table), source),
        near(
            "explain, pi = 1, 2, 1/2: their sum is F(x) - F(x')",
            game[frozenset({0, 1})],
            lambda: values(table).sum(),
            source,
        ),
        near(
            "explain, a Gaussian kernel: phi in the endpoint form",
            predicted(gaussian),
            lambda: values(gaussian),
            source,
        ),
        exceeds(
            "explain, a Gaussian kernel: how far the sum is off",
            0.1,
            lambda: abs(values(gaussian).sum() - float(game[frozenset({0, 1})])),
            source,
        ),
    ]
