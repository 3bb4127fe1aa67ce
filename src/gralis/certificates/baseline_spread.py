"""How much the choice of the baseline matters: Var_b[phi_i^b], the variance of phi over the baselines.

This is a one-way analysis of variance on the rays. The spread is the variance between the means of the baselines, minus
the part that the variance of the rays within each baseline explains. `share` divides it by the variance of a single
draw (one baseline, one ray).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gralis.arrays import Array
from gralis.errors import GralisError
from gralis.estimators import Design, Estimate
from gralis.ledger import Ledger
from gralis.notebook import InNotebooks, more, n_shown


@dataclass(frozen=True, eq=False)
class BaselineSpread(InNotebooks):
    """How much phi varies with the baseline, for every feature.

    Attributes
    ----------
    spread : array of shape (n_features,)
        The standard deviation of phi over the baselines.
    share : array of shape (n_features,)
        The share of the baselines in the variance of a single draw.
    n_baselines : int
        The number of baselines.
    names : sequence of str
        The names of the features.
    """

    spread: Array
    share: Array
    n_baselines: int
    names: Sequence[str]

    def _frame_columns(self) -> Mapping[str, Any]:
        return {"feature": list(self.names), "spread": self.spread, "share": self.share}

    def __repr__(self) -> str:
        order = np.argsort(-self.spread, kind="stable")[: n_shown(len(self.spread))]
        width = max([7, *(len(self.names[int(i)]) for i in order)])
        lines = [f"spread of phi over {self.n_baselines} baselines", f"{'feature':<{width}}  {'spread':>9}  share"]
        lines += [f"{self.names[int(i)]:<{width}}  {self.spread[i]:>9.3g}  {self.share[i]:5.1%}" for i in order]
        return "\n".join([*lines, *more(len(self.spread), len(order))])


def baseline_spread(ledger: Ledger, design: Design, names: Sequence[str]) -> BaselineSpread:
    """The spread over the baselines.

    It is read from the contributions of single rays. If the values are not sums over rays that were drawn, it is read
    from one estimate for each baseline.
    """
    weights = design.baseline_weights
    draws = design.estimator.contributions(ledger, design)
    if draws is not None and not ledger.enumerates:
        return _of_draws(ledger, draws, weights, names)
    each = [design.of_baseline(b).estimate(ledger.of_baseline(b)) for b in range(design.n_baselines)]
    return _of_estimates(each, weights, names)


def _of_draws(ledger: Ledger, draws: Array, baseline_weights: Array, names: Sequence[str]) -> BaselineSpread:
    """The spread from what every ray adds to its replicate."""
    counted = ledger.replicate >= 0
    groups, shares = [], []
    for number, share in enumerate(baseline_weights):
        rows = counted & (ledger.baseline == number)
        if rows.sum() >= 2:
            # The mean of a group over its rows is phi for this baseline.
            groups.append(draws[rows] * rows.sum() / (share * ledger.n_replicates))
            shares.append(share)
    _require_several(len(groups))
    within = np.stack([group.var(0, ddof=1) for group in groups])
    noise = within / np.array([len(group) for group in groups])[:, None]
    means = np.stack([group.mean(0) for group in groups])
    return _spread(means, noise, within, np.array(shares), len(baseline_weights), names)


def _of_estimates(each: Sequence[Estimate], baseline_weights: Array, names: Sequence[str]) -> BaselineSpread:
    """The spread from one estimate per baseline. `share` then refers to the variance of such an estimate."""
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
    """The variance between the means, minus the part that their noise explains."""
    weights = shares / shares.sum()
    centre = weights @ means
    between = np.maximum(weights @ ((means - centre) ** 2) - (weights * (1 - weights)) @ noise, 0.0)
    total = between + weights @ within
    share_of = np.divide(between, total, out=np.zeros_like(total), where=total > 0)
    return BaselineSpread(np.sqrt(between), share_of, n_baselines, names)
