"""Which kernels keep the sum in the endpoint form: N_i = sum over S of w(S) pi(S) (v(S u i) - v(S)), phi_i = N_i / Z_i.

The sum over i is a linear form in v. A kernel keeps the sum if that form is v(F) - v(empty) for every game v; this is a
condition on the coefficients of the form, which are computed here.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import numpy as np

from gralis.paper.claim_row import ClaimRow, equal, exceeds
from gralis.paper.rational import Coalition, largest, shapley_weight, subsets, without

_TRIALS = 100
Table = Mapping[Coalition, Fraction]


def rows() -> list[ClaimRow]:
    return [*_numerator(), *_two_features()]


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
