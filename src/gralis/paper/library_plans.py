"""The library's plans and estimators against Definition 1 in rational arithmetic.

Plans that enumerate must agree to rounding. Plans that sample are run with several seeds: their mean must agree with
the truth within its own error, and the variances that they state must be those that the seeds show.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from itertools import permutations
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gralis import plans
from gralis.api.explain import explain
from gralis.arrays import Array
from gralis.baselines import sample
from gralis.kernels import Gaussian, Kernel, SizeKernel, Uniform
from gralis.paper import rational
from gralis.paper.claim_row import ClaimRow, at_most, between, collect, equal, near
from gralis.paper.rational import Coalition, Polynomial, RationalKernel
from gralis.results.explanation import Explanation

_SEEDS = 8
SMALL, _LARGE = 4, 7
_SIGMA = 0.8
GAUSSIAN = Gaussian(_SIGMA, "euclidean")

X = {n: tuple(Fraction(k, 4) for k in (5, -3, 4, 6, -2, 3, 7, -5)[:n]) for n in (SMALL, _LARGE)}
BASE = {n: tuple(Fraction(k, 8) for k in (1, -2, 0, 3, 1, 0, -1, 2)[:n]) for n in (SMALL, _LARGE)}


def rows() -> list[ClaimRow]:
    return collect(
        _enumerated,
        _several_baselines,
        _shared,
        _independent,
        _permutation,
        _endpoint,
        _values,
        _many_features,
    )


def polynomial(n: int) -> Polynomial:
    """A polynomial with squares and cubes in n features, which all take part."""
    return Polynomial.random(np.random.default_rng([n, 2]), n, degree=1 if n > SMALL else 3, n_terms=n + 2)


def gaussian(n: int) -> RationalKernel:
    """exp(-||x_S - x'_S||^2 / 2 sigma^2); every weight is the fraction that the floating-point number is."""
    return _near(X[n], BASE[n])


def _near(x: Sequence[Fraction], base: Sequence[Fraction]) -> RationalKernel:
    return lambda s: Fraction(float(np.exp(-float(sum((x[j] - base[j]) ** 2 for j in s)) / (2 * _SIGMA**2))))


def halving(s: Coalition) -> Fraction:
    """pi(S) = 2^-|S|."""
    return Fraction(1, 2 ** len(s))


def explained(n: int, **options: Any) -> Explanation:
    """What the library says about `polynomial(n)`."""
    ends = (np.array(end, dtype=np.float64) for end in (X[n], BASE[n]))
    found: Explanation = explain(polynomial(n).of_rows, next(ends), baseline=next(ends), **options)
    return found


def _enumerated() -> list[ClaimRow]:
    n = SMALL
    F, x, base = polynomial(n), X[n], BASE[n]
    v = F.game(x, base)
    phi = {
        "Gaussian": rational.gralis(F, x, base, gaussian(n)),
        "size": rational.gralis(F, x, base, halving),
        "uniform": rational.gralis(F, x, base),
    }
    kernels: dict[str, Kernel] = {
        "Gaussian": GAUSSIAN,
        "size": SizeKernel(lambda size: 0.5**size),
        "uniform": Uniform(),
    }
    orders = np.array(list(permutations(range(n))))
    all_orders = plans.permutation(orders=orders)
    claims = []
    for name, kernel in kernels.items():
        ends = rational.endpoint(v, n, {"Gaussian": gaussian(n), "size": halving}.get(name, rational.uniform))
        claims += [
            _close(f"exhaustive, {name} kernel", phi[name], "plans.exhaustive", plan="exhaustive", kernel=kernel),
            _close(
                f"Algorithm 1 on all 24 orders, {name} kernel",
                phi[name],
                "plans.permutation",
                plan=all_orders,
                kernel=kernel,
                quadrature="gauss-legendre",
                n_nodes=8,
            ),
            _close(f"endpoint, {name} kernel", ends, "plans.endpoint", plan="endpoint", kernel=kernel),
        ]
    shared = {"plan": plans.shared(), "kernel": GAUSSIAN}
    values = rational.endpoint(v, n)
    return [
        *claims,
        _close("shared, with a budget for everything", phi["Gaussian"], "plans.shared", **shared),
        _close("values, with a budget for everything", values, "plans.values", plan=plans.values()),
        near(
            "rows of all rays: sum of a ray - v(T)",
            np.zeros(2**n - 1),
            lambda: (e := explained(n, plan="exhaustive", budget=None)).ledger.rays.sum(1) - e.ledger.value,  # type: ignore[union-attr]
            "explain",
            within=1e-8,
        ),
        near("F(x) - F(x')", v[frozenset(range(n))], lambda: explained(n, budget=None).delta, "explain"),
    ]


def _close(claim: str, predicted: list[Fraction], source: str, **options: Any) -> ClaimRow:
    """phi by enumeration, up to rounding of the largest value."""
    scale = max(abs(float(value)) for value in predicted)
    return near(claim, predicted, lambda: explained(SMALL, budget=None, **options).values, source, within=1e-10 * scale)


def _several_baselines() -> list[ClaimRow]:
    """phi averaged over three baselines with equal weights, by every plan that enumerates."""
    n, rng = 3, np.random.default_rng(4)
    F = Polynomial.random(rng, n, n_terms=5)
    bases = [tuple(Fraction(int(k), 4) for k in row) for row in rng.integers(-3, 4, (3, n))]
    x = X[SMALL][:n]
    data = np.array(bases, dtype=np.float64)
    phi = np.mean([_floats(rational.gralis(F, x, base)) for base in bases], axis=0)
    shapley = np.mean([_floats(rational.endpoint(F.game(x, base), n)) for base in bases], axis=0)
    each = np.array([_floats(rational.gralis(F, x, base)) for base in bases])

    local = np.mean([_floats(rational.gralis(F, x, base, _near(x, base))) for base in bases], axis=0)

    def run(plan: str, kernel: Kernel | None = None) -> Explanation:
        point = np.array(x, dtype=np.float64)
        return explain(F.of_rows, point, baseline=sample(data, 3), plan=plan, kernel=kernel or Uniform(), budget=None)

    scale = float(np.abs(each).max())
    return [
        near("3 baselines: exhaustive", phi, lambda: run("exhaustive").values, "plans.exhaustive", 1e-10 * scale),
        near(
            "3 baselines, Gaussian kernel: exhaustive",
            local,
            lambda: run("exhaustive", GAUSSIAN).values,
            "plans.exhaustive",
            1e-10 * scale,
        ),
        near("3 baselines: endpoint", shapley, lambda: run("endpoint").values, "plans.endpoint", 1e-10 * scale),
        near("3 baselines: values", shapley, lambda: run("values").values, "plans.values", 1e-10 * scale),
        near(
            "spread of phi over the baselines",
            each.std(0),
            lambda: run("exhaustive").baseline_spread().spread,
            "Explanation.baseline_spread",
            1e-10 * scale,
        ),
    ]


def _shared() -> list[ClaimRow]:
    return _sampled("shared", 0.05, _truth(), plan="shared", budget=300)


def _independent() -> list[ClaimRow]:
    return _sampled("independent", 0.5, _truth(), plan="independent", budget=256)


def _permutation() -> list[ClaimRow]:
    plan = plans.permutation(60)
    return _sampled("permutation", 0.1, _truth(), plan=plan, budget=None, n_nodes=4, quadrature="random")


def _endpoint() -> list[ClaimRow]:
    game = polynomial(_LARGE).game(X[_LARGE], BASE[_LARGE])
    truth = rational.endpoint(game, _LARGE, gaussian(_LARGE))
    return _sampled("endpoint", 0.3, truth, plan="endpoint", budget=100)


def _values() -> list[ClaimRow]:
    truth = rational.endpoint(polynomial(_LARGE).game(X[_LARGE], BASE[_LARGE]), _LARGE)
    return _sampled("values", 0.15, truth, plan="values", budget=60)


@cache
def _truth() -> list[Fraction]:
    return rational.gralis(polynomial(_LARGE), X[_LARGE], BASE[_LARGE], gaussian(_LARGE))


def _sampled(name: str, most: float, truth: list[Fraction], **options: Any) -> list[ClaimRow]:
    """The mean over seeds in units of its error, and the stated variance divided by the squared error."""
    found = [explained(_LARGE, kernel=GAUSSIAN, seed=seed, **options) for seed in range(_SEEDS)]
    values, stated = np.stack([e.values for e in found]), np.stack([e.stderr for e in found])
    off = values - _floats(truth)
    error = off.std(0, ddof=1) / np.sqrt(_SEEDS)
    source = f"plans.{name}"
    return [
        at_most(
            f"{name}: mean of {_SEEDS} runs off the truth, in standard errors", 8.0, _score(off.mean(0), error), source
        ),
        between(f"{name}: stated variance / squared error", 0.3, 4.0, (stated**2).sum() / (off**2).sum(), source),
        at_most(f"{name}: root mean squared error / largest |phi|", most, _relative(off, truth), source),
    ]


def _relative(off: Array, truth: list[Fraction]) -> float:
    return float(np.sqrt((off**2).mean()) / np.abs(_floats(truth)).max())


def _score(off: Array, error: Array) -> float:
    return float((np.abs(off) / np.maximum(error, 1e-300)).max())


def _floats(values: list[Fraction]) -> Array:
    return np.array(values, dtype=np.float64)


def _many_features() -> list[ClaimRow]:
    """A ledger that is folded: for affine F every ray of feature i is b_i (x_i - x'_i)."""
    n = 20_000
    slope, x = (np.random.default_rng([n, k]).standard_normal(n) for k in range(2))
    weights = torch.from_numpy(slope)

    def affine(z: Tensor) -> Tensor:
        return z @ weights

    run = explain(affine, x, budget=512)
    return [
        equal(
            "20 000 features: the rows are folded", "folded", lambda: run.design.estimator.name, "estimators.by_name"
        ),
        near("20 000 features, affine F: b_i (x_i - x'_i)", slope * x, lambda: run.values, "plans.shared"),
    ]
