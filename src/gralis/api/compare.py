"""What changed from one model to another: both models on the same rays, and their difference with paired errors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from gralis.api.explain import prepare
from gralis.api.signature import options_of_explain
from gralis.errors import GralisError, NoGradientError
from gralis.notebook import InNotebooks
from gralis.options import Choices
from gralis.results.difference import difference
from gralis.results.explanation import Explanation
from gralis.results.tables import largest_first, name_width
from gralis.targets import Target


@dataclass(frozen=True, eq=False)
class Comparison(InNotebooks):
    """Explanations of both models from the same rays, and of their difference, with paired errors.

    Attributes
    ----------
    a, b : Explanation
        The explanations of the first and of the second model.
    change : Explanation
        The explanation of F_b - F_a.
    note : str
        What was decided for the user, for example because a model has no gradient.
    """

    a: Explanation
    b: Explanation
    change: Explanation
    note: str = ""

    def changed(self, level: float = 0.95) -> NDArray[np.bool_]:
        """Which attributions changed beyond noise.

        Parameters
        ----------
        level : float, default=0.95
            The level of the simultaneous intervals for the changes.

        Returns
        -------
        array of bool of shape (n_features,)
            True where the interval of the change does not contain zero.
        """
        interval = self.change.interval(level)
        return np.asarray((interval[:, 0] > 0) | (interval[:, 1] < 0))

    @property
    def _evaluated(self) -> str:
        rows = self.a.ledger.kept_rows
        return f"{self.a.cost.n_rays} rays" if self.a.cost.n_rays or rows is None else f"{len(rows.masks)} coalitions"

    def _frame_columns(self) -> Mapping[str, Any]:
        change = self.change
        return {
            "feature": list(change.names),
            "before": self.a.values,
            "after": self.b.values,
            "change": change.values,
            "half_width": change.half_widths(),
            "changed": self.changed(),
        }

    def __repr__(self) -> str:
        change, sure = self.change, self.changed()
        half, order = change.half_widths(), largest_first(change.values)
        width = name_width(change.names, order)
        lines = [
            f"two models on the same {self._evaluated}: {int(sure.sum())} of {change.n_features} attributions "
            f"changed beyond noise (95%, all features together)",
            f"F(x) - F(x'): {self.a.delta:.5g} before, {self.b.delta:.5g} after, change {change.delta:.5g}",
            f"{'feature':<{width}}  {'before':>11}  {'after':>11}  {'change':>11}  {'+-':>9}",
        ]
        for i in order:
            row = f"{self.a.values[i]:>11.5g}  {self.b.values[i]:>11.5g}  {change.values[i]:>11.5g}  {half[i]:>9.2g}"
            lines.append(f"{change.names[int(i)]:<{width}}  {row}{'  changed' if sure[i] else ''}")
        if change.n_features > len(order):
            lines.append(f"({change.n_features - len(order)} more)")
        return "\n".join([*lines, *([f"note: {self.note}"] if self.note else [])])


@options_of_explain()
def compare(
    model_a: object, model_b: object, x: object, *, target: Target | str = None, **options: Unpack[Choices]
) -> Comparison:
    """What an updated, distilled or quantised model changed: model_b on the rays that explained model_a.

    The plan takes its decisions (pilot, node density) on model_a. If one of the models has no gradient, as quantised
    modules have none, and no plan was chosen, plan="endpoint" compares them by their values alone, and a note says so.

    Parameters
    ----------
    model_a, model_b : torch.nn.Module, callable or Model
        The model before and after the change.
    x : tensor, array, or a tuple or dict of them
        One input, without a batch axis.
    target : int, tuple or callable, optional
        Which output to explain.

    Returns
    -------
    Comparison
        Both explanations, and that of the difference with paired errors.

    Examples
    --------
    >>> import torch
    >>> before, after = torch.nn.Linear(3, 1).double().eval(), torch.nn.Linear(3, 1).double().eval()
    >>> comparison = compare(before, after, torch.ones(3, dtype=torch.float64))
    >>> expected = (after.weight - before.weight)[0].detach().numpy()
    >>> bool(np.allclose(comparison.change.values, expected))
    True
    """
    every_option = {"target": target, **options}
    try:
        return _compared(model_a, model_b, x, every_option)
    except NoGradientError as error:
        if "plan" in options:
            raise
        without = _compared(model_a, model_b, x, {**every_option, "plan": "endpoint"})
        reason = str(error).partition(", so there are no rays")[0]
        note = f"{reason[:1].lower()}{reason[1:]}, so both models are compared with plan='endpoint', by values alone"
        return replace(without, note=note)


def _compared(model_a: object, model_b: object, x: object, every_option: dict[str, Any]) -> Comparison:
    run = prepare(model_b, x, every_option, "compare")  # raises an error for bad input before the first model runs
    if run.folded:
        raise GralisError(
            f"compare needs the rows of the ledger, and with {run.problem.n_features} features and this budget it is "
            f"folded; group the coordinates into fewer features, or lower the budget."
        )
    a = prepare(model_a, x, every_option, "compare").result()
    (b,) = run.again([a], other_model=True)
    return Comparison(replace(a, _continue=None), b, difference(a, b))
