"""What changed from one model to another: both on the same rays, and their difference with paired errors."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gralis.api.explain import prepare
from gralis.errors import GralisError
from gralis.results.difference import difference
from gralis.results.explanation import Explanation


@dataclass(frozen=True, eq=False)
class Comparison:
    """Explanations of both models from the same rays, and of their difference, with paired errors."""

    a: Explanation
    b: Explanation
    change: Explanation  # of F_b - F_a

    def changed(self, level: float = 0.95) -> NDArray[np.bool_]:
        """Which attributions changed beyond noise, all features together at `level`."""
        interval = self.change.interval(level)
        return np.asarray((interval[:, 0] > 0) | (interval[:, 1] < 0))

    def __repr__(self) -> str:
        change, sure = self.change, self.changed()
        half = np.diff(change.interval(0.95), axis=1)[:, 0] / 2
        order = np.argsort(-np.abs(change.values), kind="stable")[:15]
        width = max([7, *(len(change.names[int(i)]) for i in order)])
        lines = [
            f"two models on the same {self.a.cost.n_rays} rays: {int(sure.sum())} of {change.n_features} attributions "
            f"changed beyond noise (95%, all features together)",
            f"F(x) - F(x'): {self.a.delta:.5g} before, {self.b.delta:.5g} after, change {change.delta:.5g}",
            f"{'feature':<{width}}  {'before':>11}  {'after':>11}  {'change':>11}  {'+-':>9}",
        ]
        for i in order:
            row = f"{self.a.values[i]:>11.5g}  {self.b.values[i]:>11.5g}  {change.values[i]:>11.5g}  {half[i]:>9.2g}"
            lines.append(f"{change.names[int(i)]:<{width}}  {row}{'  changed' if sure[i] else ''}")
        return "\n".join(lines)


def compare(model_a: object, model_b: object, x: object, **options: Any) -> Comparison:
    """What an updated, distilled or quantised model changed: model_b on the rays that explained model_a.

    >>> import torch
    >>> before, after = torch.nn.Linear(3, 1).double().eval(), torch.nn.Linear(3, 1).double().eval()
    >>> found = compare(before, after, torch.ones(3, dtype=torch.float64))
    >>> expected = (after.weight - before.weight)[0].detach().numpy()
    >>> bool(np.allclose(found.change.values, expected))
    True

    Options are those of `explain`; the plan's decisions (pilot, node density) are taken on model_a.
    """
    run = prepare(model_b, x, options, "compare")  # refuses bad input before the first model runs
    if run.folded:
        raise GralisError(
            f"compare needs the rows of the ledger, and with {run.problem.n_features} features and this budget it is "
            f"folded; group the coordinates into fewer features, or lower the budget."
        )
    a = prepare(model_a, x, options, "compare").result()
    b = run.again(a)
    return Comparison(replace(a, _continue=None), b, difference(a, b))
