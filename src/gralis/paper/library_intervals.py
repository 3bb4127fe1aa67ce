"""How wide the intervals are, what widens them, and what they say against themselves.

Every number is computed by hand from a function whose values, rays and jumps are known.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from gralis import plans
from gralis.api.explain import explain
from gralis.arrays import Array
from gralis.estimators import estimates
from gralis.kernels import Uniform
from gralis.laws import all_masks
from gralis.paper import rational
from gralis.paper.appendix_e import BASE, X
from gralis.paper.claim_row import ClaimRow, at_most, collect, equal, exceeds, near
from gralis.paper.library_bounds import CUBIC, KERNEL, N_FEATURES, SIGMA, explained, share, weight_of
from gralis.paper.rational import Polynomial


def rows() -> list[ClaimRow]:
    return collect(_replicates, _fixed_nodes, _copies, _witnesses)


def _replicates() -> list[ClaimRow]:
    from scipy.stats import t as student  # takes long to import

    """The half-widths of Algorithm 1 against Student's quantile for one feature and for a union bound."""
    n, m = 7, 12
    F = Polynomial.random(np.random.default_rng(1), n, degree=1, n_terms=9)
    plan, x = plans.permutation(2 * m), np.ones(n)
    run = explain(F.of_rows, x, kernel=KERNEL, plan=plan, budget=None, quadrature="random", n_nodes=1)
    departures = run.estimate.departures
    by_hand = np.sqrt((departures**2).sum(0) / (m * (m - 1)))
    of_sum = np.sqrt((departures.sum(1) ** 2).sum() / (m * (m - 1)))
    # A few heavy rays make the variance itself uncertain: (sum r^2)^2 / sum r^4 rays r carry it, at least two.
    ledger = run.ledger.require_rows("The rays that carry the variance")
    own = ledger.owner[:, None] == np.arange(n)
    weight = np.exp(-(ledger.sizes - 1) / (2 * SIGMA**2))[:, None]  # pi(S) of the predecessors
    squares = (own * weight * (ledger.rays - run.values)) ** 2
    carriers = np.maximum(squares.sum(0) ** 2 / (squares**2).sum(0), 2.0)
    dof = 2 / (2 / (m - 1) + 1.5 / carriers)
    one, all_of_them = student.ppf(1 - 0.05 / 2, dof), student.ppf(1 - 0.05 / 2 / n, dof)

    def half(delta: float = 0.05) -> Array:
        return run.certificate(delta=delta).half_widths

    source = "Explanation.certificate"
    return [
        near("standard error of the mean of the replicates", by_hand, lambda: run.stderr, "Explanation.stderr"),
        exceeds("half-widths / those of one feature alone, least", 1.1, lambda: (half() / by_hand / one).min(), source),
        at_most(
            "half-widths / those of a union bound with these degrees of freedom, largest",
            1 + 1e-9,
            lambda: float((half() / (by_hand * all_of_them)).max()),
            source,
        ),
        near("degrees of freedom: 2 / dof = 2 / (R - 1) + 1.5 / carriers", dof, lambda: run.estimate.dof, source),
        near(
            "error of a difference, from the differences of the replicates",
            np.sqrt(((departures[:, 0] - departures[:, 1]) ** 2).sum() / (m * (m - 1))),
            lambda: float(run.estimate.combined(np.eye(n)[:1] - np.eye(n)[1:2]).stderr[0]),
            "estimators.Estimate",
        ),
        near(
            "half-width of the sum: Student's, with the fewest degrees of freedom",
            student.ppf(0.975, dof.min()) * of_sum,
            lambda: run.certificate().aggregate,
            source,
        ),
        exceeds("delta = 0.001 / delta = 0.05, least", 1.3, lambda: (half(0.001) / half()).min(), source),
        near(
            "intervals are values +- half-widths",
            np.stack([run.values - half(), run.values + half()], 1),
            lambda: run.interval(0.95),
            "Explanation.interval",
        ),
        near(
            "exact enumeration: half-widths, up to rounding",
            [0.0] * N_FEATURES,
            lambda: explained(plan="exhaustive", budget=None).certificate().half_widths,
            source,
            1e-13,
        ),
    ]


_KINK = 0.3
_N_RUNS = 30


def _cancelling(z: Tensor) -> Tensor:
    """g(a) b - a g(b) with a kink in g is zero on every ray, and so is the checksum of any nodes."""
    return torch.relu(z[:, 0] - _KINK) * z[:, 1] - z[:, 0] * torch.relu(z[:, 1] - _KINK)


def _bent(z: Tensor) -> Tensor:
    return torch.relu(z[:, 0] + z[:, 1] - 0.75) - z[:, 2] * z[:, 0]


def _fixed_nodes() -> list[ClaimRow]:
    """Fixed nodes where they are exact, where they are off, and where the plan does not take them."""
    # Half of the weight is on the ray of both, where g(a) - a g'(a) is -0.3 from the kink on, and 0 before it.
    truth = np.array([1, -1]) * _KINK * (1 - _KINK) / 2
    off = explain(
        _cancelling,
        np.ones(2),
        kernel=Uniform(),
        plan="exhaustive",
        quadrature="gauss-legendre",
        n_nodes=7,
        budget=None,
    )
    free = explain(_cancelling, np.ones(2), kernel=Uniform(), plan="exhaustive", budget=4000)
    smooth = explained(CUBIC, plan="exhaustive", budget=400)
    phi = np.array(rational.gralis(CUBIC, X, BASE, weight_of), dtype=float)
    source = "Explanation.certificate"
    return [
        equal("a cubic gets fixed nodes", "gauss-legendre", lambda: smooth.plan["quadrature"], "plans.exhaustive"),
        near("and they are exact", phi, lambda: smooth.values, "estimators.ENUMERATED"),
        equal("which it says", True, lambda: smooth.exact, "Explanation.exact"),
        near(
            "the same values read again from the ledger",
            phi,
            lambda: estimates([smooth.ledger], [smooth.design])[0].values,
            "estimators.estimates",
        ),
        exceeds("a kink: seven fixed nodes are off by", 1e-3, lambda: float(np.abs(off.values - truth).max()), source),
        at_most(
            "a kink: |error| / quadrature error, largest",
            1.0,
            lambda: float((np.abs(off.values - truth) / off.certificate().quadrature).max()),
            source,
        ),
        equal("a kink gets random nodes", "random", lambda: free.plan["quadrature"], "plans.exhaustive"),
        at_most(
            "and its values are inside their half-widths",
            1.0,
            lambda: float((np.abs(free.values - truth) / free.half_widths(0.999)).max()),
            "estimators.COPIES",
        ),
    ]


_WEIGHTS = np.array([0.9, 0.5, 0.2])


def _wave(z: Tensor) -> Tensor:
    """A function of one weighted sum: on every ray the parts of the members are as their weights."""
    total = z @ torch.from_numpy(_WEIGHTS).to(z)
    return torch.sin(40 * total) + torch.relu(total - 0.4)


def _copies() -> list[ClaimRow]:
    """sum over T of q_i(T) (ray_i - share_i(T) c(T)), and its error from the second differences between nodes."""
    options: dict[str, Any] = {"kernel": KERNEL, "plan": "exhaustive", "budget": 3000, "quadrature": "random"}
    x = np.ones(N_FEATURES)
    # Without values there are no checksums.
    run = explain(_bent, x, coalition_values=False, **options)
    ledger = run.ledger.require_rows("The random nodes of all rays")
    values, variance = np.zeros(N_FEATURES), np.zeros(N_FEATURES)
    for number in range(ledger.n_rays):
        mask = ledger.masks[number]
        q = np.array([float(share(frozenset(np.flatnonzero(mask).tolist()), i)) for i in range(N_FEATURES)])
        parts = mask * ledger.gradient[ledger.ray == number] / (ledger.ray == number).sum()  # (n_nodes, n_features)
        values, k = values + q * parts.sum(0), len(parts)
        bends = parts[:-2] - 2 * parts[1:-1] + parts[2:]
        variance += q**2 * (bends**2).sum(0) / 6 * k / (k - 2)
    in_shares = np.zeros(N_FEATURES)
    for mask in all_masks(N_FEATURES):
        q = np.array([float(share(frozenset(np.flatnonzero(mask).tolist()), i)) for i in range(N_FEATURES)])
        whole = float(_wave(torch.from_numpy(mask[None].astype(np.float64)))[0])
        in_shares += q * mask * _WEIGHTS / _WEIGHTS[mask].sum() * whole
    again = [explain(_bent, x, seed=seed, **options) for seed in range(_N_RUNS)]
    spread = np.std([each.values for each in again], axis=0, ddof=1)
    said = np.sqrt(np.mean([each.stderr**2 for each in again], axis=0))
    source = "estimators.COPIES"
    return [
        equal("all coalitions have nodes", 2**N_FEATURES - 1, lambda: ledger.n_rays, "plans.exhaustive"),
        near("values: the weighted sum of the rays", values, lambda: run.values, source),
        near(
            "errors: the second differences between neighbouring nodes of each ray",
            np.sqrt(variance),
            lambda: run.stderr,
            source,
        ),
        near(
            "a function of a weighted sum: every member has its weight's share of v(T)",
            in_shares,
            lambda: explain(_wave, x, **options).values,
            source,
            1e-12,
        ),
        at_most("a kink: spread of the values / stated error, largest", 1.2, lambda: (spread / said).max(), source),
        exceeds("and least", 0.3, lambda: (spread / said).min(), source),
    ]


def _witnesses() -> list[ClaimRow]:
    """What the rays miss is in the intervals and in words."""
    n = 8
    steps = explain(lambda z: (z.sum(1) > 3.5).double() + 0 * z.sum(1), np.ones(n), budget=300)
    rounded = explain(lambda z: z[:, 0] ** 2 + 3 * torch.round(z[:, 1]), np.array([1.0, 2.0]))
    generator = torch.Generator().manual_seed(0)
    noisy = explain(
        lambda z: z.sum(1) + torch.randn(len(z), generator=generator, dtype=z.dtype), np.ones(3), budget=100
    )
    solid = explained(CUBIC, budget=300)
    source = "Explanation.doubts"
    return [
        equal(
            "a hard step: no gradient shows it",
            "F jumps where no gradient was taken",
            lambda: steps.doubts[0].partition(":")[0],
            source,
        ),
        exceeds("and the least half-width is", 0.01, lambda: float(steps.half_widths().min()), source),
        equal(
            "a rounded feature is named",
            "The gradient of x[1] is zero at all",
            lambda: " ".join(rounded.doubts[0].split()[:8]),
            source,
        ),
        equal(
            "a random model is called random", "The model is random", lambda: noisy.doubts[0].partition(":")[0], source
        ),
        equal("a polynomial raises no doubt", 0, lambda: len(solid.doubts), source),
    ]
