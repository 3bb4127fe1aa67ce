"""gralis behind captum's interface: a batch in, tensors of the same shapes out."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np
import torch
from torch import Tensor, nn

from gralis.api.batch import explain_batch
from gralis.api.explain import explain
from gralis.api.signature import options_of_explain
from gralis.errors import bad
from gralis.features import Features, groups
from gralis.options import Choices
from gralis.results.explanation import Explanation

__all__ = ["Gralis"]

TensorOrTuple = Tensor | tuple[Tensor, ...]


class Gralis:
    """`Gralis(model).attribute(inputs, baselines=, target=, feature_mask=, ...)`, as captum's methods are called.

    As in captum's perturbation methods, every element of a group in `feature_mask` has the value of the group.

    Parameters
    ----------
    forward_func : torch.nn.Module or callable
        The model.

    Attributes
    ----------
    explanations : list of Explanation
        The results of the last call of `attribute`, one per row, with their errors, certificates and ledgers.

    Examples
    --------
    >>> model = nn.Linear(3, 2).eval()
    >>> Gralis(model).attribute(torch.ones(4, 3), target=1).shape
    torch.Size([4, 3])
    """

    def __init__(self, forward_func: Any) -> None:
        self.forward_func = forward_func
        self.explanations: list[Explanation] = []

    def has_convergence_delta(self) -> bool:
        """True: `attribute` can return a convergence delta."""
        return True

    @options_of_explain(without=("baseline",))
    def attribute(
        self,
        inputs: TensorOrTuple,
        baselines: Any = None,
        target: Any = None,
        additional_forward_args: Any = None,
        feature_mask: TensorOrTuple | None = None,
        return_convergence_delta: bool = False,
        **options: Unpack[Choices],
    ) -> Any:
        """phi of every row, in the shapes of the inputs.

        The other options are those of `explain`.

        Parameters
        ----------
        inputs : tensor or tuple of tensors
            The inputs, with a batch axis.
        baselines : float, tensor, or a tuple of them, optional
            The baseline of each tensor: a number, or a tensor with one row or as many rows as the inputs. By default 0.
        target : int, tuple, or a tensor or list of them, optional
            Which output is explained, as in captum: one target for all rows, or one per row.
        additional_forward_args : object or tuple, optional
            More arguments of the model. A tensor with one row per input is used row by row.
        feature_mask : tensor or tuple of tensors, optional
            The number of the group that each coordinate belongs to, in place of the option `features`.
        return_convergence_delta : bool, default=False
            Whether to return sum of phi - (F(x) - F(x')) of every row too.

        Returns
        -------
        tensor or tuple of tensors
            The attributions; with `return_convergence_delta` a pair of the attributions and a tensor (n_rows,).
        """
        leaves = inputs if isinstance(inputs, tuple) else (inputs,)
        n_rows = _count_rows(leaves)
        targets = _targets(target, n_rows)
        starts = _baselines(baselines, leaves)
        if feature_mask is None and options.get("features") is None:
            options["features"] = "pixels"  # captum's attributions have one number for each number of the input
        if feature_mask is not None:
            if options.get("features") is not None:
                raise bad("features", "Gralis.attribute", "left out if there is a feature_mask", "both")
            options["features"] = _features(feature_mask, leaves)
        extra = additional_forward_args if isinstance(additional_forward_args, tuple) else (additional_forward_args,)
        extra = () if additional_forward_args is None else extra
        xs = [_packed([leaf[row] for leaf in leaves]) for row in range(n_rows)]
        if n_rows > 1 and not extra and all(isinstance(start, float) or len(start) == 1 for start in starts):
            options["baseline"] = _start(starts, 0, leaves)
            self.explanations = list(explain_batch(self.forward_func, xs, target=targets, **options))
        else:
            self.explanations = []
            for row, x in enumerate(xs):
                model = _WithArguments(self.forward_func, extra, row, n_rows) if extra else self.forward_func
                options["baseline"] = _start(starts, row, leaves)
                self.explanations.append(explain(model, x, target=targets[row], **options))
        per_row = [e.features.to_input(e.values) for e in self.explanations]
        stacked = [
            torch.stack([torch.from_numpy(np.asarray(arrays[k])) for arrays in per_row]).to(leaf.device, leaf.dtype)
            for k, leaf in enumerate(leaves)
        ]
        attributions = tuple(stacked) if isinstance(inputs, tuple) else stacked[0]
        if not return_convergence_delta:
            return attributions
        return attributions, torch.tensor([float(e.values.sum()) - e.delta for e in self.explanations])


class _WithArguments(nn.Module):
    """The model with captum's additional arguments; of a tensor with one row per input, this input's row is used."""

    def __init__(self, model: Any, extra: tuple[Any, ...], row: int, n_rows: int) -> None:
        super().__init__()
        self.model = model
        self.training = bool(getattr(model, "training", False))  # sets only this flag; the model keeps its mode
        self._extra = [
            argument[row : row + 1] if isinstance(argument, Tensor) and argument.shape[:1] == (n_rows,) else argument
            for argument in extra
        ]

    def forward(self, *points: Tensor) -> Any:
        n = len(points[0])
        extra = [
            argument.expand(n, *argument.shape[1:])
            if isinstance(argument, Tensor) and argument.shape[:1] == (1,)
            else argument
            for argument in self._extra
        ]
        return self.model(*points, *extra)


def _count_rows(leaves: tuple[Tensor, ...]) -> int:
    if not leaves or not all(isinstance(leaf, Tensor) and leaf.ndim > 1 for leaf in leaves):
        raise bad("inputs", "Gralis.attribute", "a tensor with a batch axis, or a tuple of them", repr(type(leaves[0])))
    counts = {len(leaf) for leaf in leaves}
    if len(counts) > 1:
        raise bad("inputs", "Gralis.attribute", "of one batch size", f"{sorted(counts)} rows")
    return counts.pop()


def _packed(leaves: list[Tensor]) -> Any:
    """One tensor as it is, several as a tuple."""
    return leaves[0] if len(leaves) == 1 else tuple(leaves)


def _targets(target: Any, n_rows: int) -> list[Any]:
    """One target per row."""
    if isinstance(target, Tensor):
        target = target.tolist()
    if isinstance(target, list):
        if len(target) not in (1, n_rows):
            raise bad("target", "Gralis.attribute", f"one for all, or one for each of {n_rows} rows", f"{len(target)}")
        return target * (n_rows if len(target) == 1 else 1)
    return [target] * n_rows


def _baselines(baselines: Any, leaves: tuple[Tensor, ...]) -> list[Any]:
    """For every leaf a number, or a tensor with one row or one row per input."""
    per_leaf = baselines if isinstance(baselines, tuple) else (baselines,) * len(leaves)
    if len(per_leaf) != len(leaves):
        raise bad("baselines", "Gralis.attribute", f"{len(leaves)}, one per input", f"{len(per_leaf)}")
    starts: list[Any] = []
    for start, leaf in zip(per_leaf, leaves, strict=True):
        if start is None or isinstance(start, int | float):
            starts.append(float(start or 0.0))
        elif isinstance(start, Tensor) and start.shape[1:] == leaf.shape[1:] and len(start) in (1, len(leaf)):
            starts.append(start)
        else:
            raise bad(
                "baselines",
                "Gralis.attribute",
                f"None, a number, or a tensor of shape (1 or {len(leaf)}, {', '.join(map(str, leaf.shape[1:]))})",
                f"shape {tuple(start.shape)}" if isinstance(start, Tensor) else repr(start),
            )
    return starts


def _start(starts: list[Any], row: int, leaves: tuple[Tensor, ...]) -> Any:
    """The baseline of one row, in the form of its x."""
    return _packed(
        [
            torch.full_like(leaf[row], start) if isinstance(start, float) else start[row if len(start) > 1 else 0]
            for start, leaf in zip(starts, leaves, strict=True)
        ]
    )


def _features(mask: TensorOrTuple, leaves: tuple[Tensor, ...]) -> Features:
    """The groups of captum's masks, which may have a batch axis of one and labels with gaps."""
    labels = []
    for part, leaf in zip(mask if isinstance(mask, tuple) else (mask,), leaves, strict=True):
        row = part[0] if part.ndim == leaf.ndim and len(part) == 1 else part
        labels.append(np.broadcast_to(row.cpu().numpy(), tuple(leaf.shape[1:])))
    return groups(labels[0] if len(labels) == 1 else tuple(labels), relabel=True)
