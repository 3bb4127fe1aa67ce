"""How much the choice of baseline matters: Var_b[phi_i^b], the spread of phi over the baselines it is averaged over.

One-way analysis of variance on the rays: the variance between the baselines' means, less what rays within a baseline
explain. `share` is that part of the variance of a single draw (one baseline, one ray).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gralis.arrays import Array
from gralis.certificates.effective_rays import laws_of
from gralis.errors import GralisError
from gralis.estimators import Estimate, endpoint, importance, shapley
from gralis.ledger import FoldedLedger, Ledger

if TYPE_CHECKING:
    from gralis.results.explanation import Explanation


@dataclass(frozen=True, eq=False)
class BaselineSpread:
    """Per feature: the standard deviation of phi over the baselines, and its share of a draw's variance."""

    spread: Array
    share: Array
    n_baselines: int
    names: Sequence[str]

    def __repr__(self) -> str:
        order = np.argsort(-self.spread, kind="stable")[:15]
        width = max([7, *(len(self.names[int(i)]) for i in order)])
        lines = [f"spread of phi over {self.n_baselines} baselines", f"{'feature':<{width}}  {'spread':>9}  share"]
        lines += [f"{self.names[int(i)]:<{width}}  {self.spread[i]:>9.3g}  {self.share[i]:5.1%}" for i in order]
        return "\n".join(lines)


def baseline_spread(e: Explanation) -> BaselineSpread:
    """From the rows of each baseline: draws where the plan draws rays, an estimate each where it has coalitions."""
    ledger, weights = e.ledger, e.baseline_weights
    if isinstance(ledger, FoldedLedger):
        raise GralisError("The spread over baselines needs the rows of the ledger, and a folded one keeps none.")
    if e.plan["estimator"] == "shapley":
        apart = [ledger.of_baseline(number) for number in range(len(weights))]
        distances = [e.squared_distance[[number]] for number in range(len(weights))]
        each = [shapley.estimate(*one, np.ones(1)) for one in zip(apart, distances, strict=True)]
        return _of_estimates(each, weights, e.names)
    if e.plan["estimator"] == "endpoint":
        draws = endpoint.draws(ledger, laws_of(e), weights)
    else:
        draws = importance(ledger, laws_of(e), weights) * ledger.rays
    return _of_draws(ledger, draws, weights, e.names, e.estimate.exact)


def _of_draws(
    ledger: Ledger, draws: Array, baseline_weights: Array, names: Sequence[str], exact: bool
) -> BaselineSpread:
    """From what every ray adds to its replicate; `exact`: all rays are there, none is a draw."""
    counted = ledger.replicate >= 0
    groups, shares = [], []
    for number, share in enumerate(baseline_weights):
        rows = counted & (ledger.baseline == number)
        if rows.sum() >= 2:
            groups.append(draws[rows] * rows.sum() / (share * ledger.n_replicates))  # mean over rows: phi of b
            shares.append(share)
    _require_several(len(groups))
    within = np.stack([np.zeros_like(group[0]) if exact else group.var(0, ddof=1) for group in groups])
    noise = within / np.array([len(group) for group in groups])[:, None]
    means = np.stack([group.mean(0) for group in groups])
    return _spread(means, noise, within, np.array(shares), len(baseline_weights), names)


def _of_estimates(each: Sequence[Estimate], baseline_weights: Array, names: Sequence[str]) -> BaselineSpread:
    """From an estimate for every baseline on its own; `share` is then of the variance of such an estimate."""
    _require_several(len(each))
    means, noise = np.stack([e.values for e in each]), np.stack([e.stderr**2 for e in each])
    return _spread(means, noise, noise, baseline_weights, len(each), names)


def _require_several(n_groups: int) -> None:
    if n_groups < 2:
        raise GralisError(
            "The spread over baselines needs several baselines with two rays or more each; explain with "
            "baseline=gralis.baselines.sample(X, n) and a budget of a few times n."
        )


def _spread(
    means: Array, noise: Array, within: Array, shares: Array, n_baselines: int, names: Sequence[str]
) -> BaselineSpread:
    """The variance between the means, less what their noise explains."""
    weights = shares / shares.sum()
    centre = weights @ means
    between = np.maximum(weights @ ((means - centre) ** 2) - (weights * (1 - weights)) @ noise, 0.0)
    total = between + weights @ within
    share_of = np.divide(between, total, out=np.zeros_like(total), where=total > 0)
    return BaselineSpread(np.sqrt(between), share_of, n_baselines, names)
