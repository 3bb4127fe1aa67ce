"""gralis behind captum's interface: a batch in, tensors of the same shapes out."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from gralis.api.batch import explain_batch
from gralis.api.explain import explain
from gralis.errors import bad
from gralis.features import Features, groups
from gralis.results.explanation import Explanation

Inputs = Tensor | tuple[Tensor, ...]


class Gralis:
    """`Gralis(model).attribute(inputs, baselines=, target=, feature_mask=, ...)` as a captum user expects.

    >>> model = nn.Linear(3, 2).eval()
    >>> Gralis(model).attribute(torch.ones(4, 3), target=1).shape
    torch.Size([4, 3])

    As with captum's perturbation methods, every element of a group in `feature_mask` carries the group's value. After
    a call, `explanations` holds the results themselves, with errors, certificates and ledgers.
    """

    def __init__(self, forward_func: Any) -> None:
        self.forward_func = forward_func
        self.explanations: list[Explanation] = []

    def has_convergence_delta(self) -> bool:
        return True

    def attribute(
        self,
        inputs: Inputs,
        baselines: Any = None,
        target: Any = None,
        additional_forward_args: Any = None,
        feature_mask: Inputs | None = None,
        return_convergence_delta: bool = False,
        **options: Any,
    ) -> Any:
        """phi for every row; with return_convergence_delta also sum of phi - (F(x) - F(x')) of every row.

        baselines: None (zeros), numbers, tensors with one row or one per row, or a tuple of these. target: as in captum
        (int, tuple, a tensor or list with one per row). Other options go to `gralis.explain`.
        """
        leaves = inputs if isinstance(inputs, tuple) else (inputs,)
        rows = _rows(leaves)
        targets = _targets(target, rows)
        starts = _baselines(baselines, leaves)
        features = _features(feature_mask, leaves)
        extra = _extra(additional_forward_args)
        same = all(isinstance(start, float) or len(start) == 1 for start in starts)
        if same and not extra and rows > 1:
            xs = [_one(leaves, row) for row in range(rows)]
            options = {**options, "baseline": _start(starts, 0, leaves), "features": features}
            self.explanations = list(explain_batch(self.forward_func, xs, target=targets, **options))
        else:
            self.explanations = [
                self._alone(leaves, row, starts, targets[row], extra, {**options, "features": features})
                for row in range(rows)
            ]
        found = [_as_leaves(one.to_input()) for one in self.explanations]
        stacked = tuple(
            torch.stack([torch.from_numpy(np.asarray(each[k])) for each in found]).to(leaf.device, leaf.dtype)
            for k, leaf in enumerate(leaves)
        )
        attributions = stacked if isinstance(inputs, tuple) else stacked[0]
        if not return_convergence_delta:
            return attributions
        return attributions, torch.tensor([float(e.values.sum()) - e.delta for e in self.explanations])

    def _alone(
        self, leaves: tuple[Tensor, ...], row: int, starts: Any, target: Any, extra: tuple[Any, ...], options: Any
    ) -> Explanation:
        model = self.forward_func if not extra else _WithArguments(self.forward_func, extra, row, len(leaves[0]))
        start = _start(starts, row, leaves)
        found: Explanation = explain(model, _one(leaves, row), baseline=start, target=target, **options)
        return found


class _WithArguments(nn.Module):
    """The model with captum's additional arguments: tensors with a row per input are taken at the input's row."""

    def __init__(self, model: Any, extra: tuple[Any, ...], row: int, rows: int) -> None:
        super().__init__()
        self.model = model
        self.training = bool(getattr(model, "training", False))  # the flag alone: the model keeps its own
        self._extra = [
            each[row : row + 1] if isinstance(each, Tensor) and each.ndim and len(each) == rows else each
            for each in extra
        ]

    def forward(self, *points: Tensor) -> Any:
        n = len(points[0])
        extra = [
            each.expand(n, *each.shape[1:]) if isinstance(each, Tensor) and each.ndim and len(each) == 1 else each
            for each in self._extra
        ]
        return self.model(*points, *extra)


def _rows(leaves: tuple[Tensor, ...]) -> int:
    if not leaves or not all(isinstance(leaf, Tensor) and leaf.ndim > 1 for leaf in leaves):
        raise bad("inputs", "Gralis.attribute", "a tensor with a batch axis, or a tuple of them", repr(type(leaves[0])))
    counts = {len(leaf) for leaf in leaves}
    if len(counts) > 1:
        raise bad("inputs", "Gralis.attribute", "of one batch size", f"{sorted(counts)} rows")
    return counts.pop()


def _one(leaves: tuple[Tensor, ...], row: int) -> Any:
    return leaves[0][row] if len(leaves) == 1 else tuple(leaf[row] for leaf in leaves)


def _targets(target: Any, rows: int) -> list[Any]:
    if isinstance(target, Tensor):
        target = target.tolist()
    if isinstance(target, list):
        if len(target) not in (1, rows):
            raise bad("target", "Gralis.attribute", f"one for all, or one for each of {rows} rows", f"{len(target)}")
        return target * (rows if len(target) == 1 else 1)
    return [target] * rows


def _baselines(baselines: Any, leaves: tuple[Tensor, ...]) -> list[Any]:
    """For every leaf a number, or a tensor with one row or as many as there are."""
    given = baselines if isinstance(baselines, tuple) else (baselines,) * len(leaves)
    if len(given) != len(leaves):
        raise bad("baselines", "Gralis.attribute", f"{len(leaves)}, one per input", f"{len(given)}")
    found: list[Any] = []
    for start, leaf in zip(given, leaves, strict=True):
        if start is None or isinstance(start, int | float):
            found.append(float(start or 0.0))
        elif isinstance(start, Tensor) and start.shape[1:] == leaf.shape[1:] and len(start) in (1, len(leaf)):
            found.append(start)
        else:
            raise bad(
                "baselines",
                "Gralis.attribute",
                f"None, a number, or a tensor of shape (1 or {len(leaf)}, {', '.join(map(str, leaf.shape[1:]))})",
                f"shape {tuple(start.shape)}" if isinstance(start, Tensor) else repr(start),
            )
    return found


def _start(starts: list[Any], row: int, leaves: tuple[Tensor, ...]) -> Any:
    points = [
        torch.full_like(leaf[row], start) if isinstance(start, float) else start[row if len(start) > 1 else 0]
        for start, leaf in zip(starts, leaves, strict=True)
    ]
    return points[0] if len(points) == 1 else tuple(points)


def _features(mask: Inputs | None, leaves: tuple[Tensor, ...]) -> Features | None:
    """captum's masks have a batch axis of one; labels may have gaps."""
    if mask is None:
        return None
    given = mask if isinstance(mask, tuple) else (mask,)
    labels = []
    for each, leaf in zip(given, leaves, strict=True):
        row = each[0] if each.ndim == leaf.ndim and len(each) == 1 else each
        labels.append(np.broadcast_to(row.cpu().numpy(), tuple(leaf.shape[1:])))
    return groups(labels[0] if len(labels) == 1 else tuple(labels), relabel=True)


def _extra(given: Any) -> tuple[Any, ...]:
    if given is None:
        return ()
    return given if isinstance(given, tuple) else (given,)


def _as_leaves(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)
