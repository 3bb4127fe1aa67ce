"""Points on rays, x' + a (x_T - x'), and gradients summed over features; both in one memory layout.

With layout="channels_last" the channels of an image are innermost in memory, so that the points come out in torch's
channels_last format without a copy. Convolutions are often much faster on it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gralis.arrays import Array, Masks
from gralis.errors import GralisError
from gralis.evaluation.batching import Layout
from gralis.evaluation.questions import Questions
from gralis.models import Points
from gralis.models.points import leaves
from gralis.problem import Problem
from gralis.rays.discrete import HALFWAY

__all__ = ["PointBuilder"]


class PointBuilder:
    """Builds points between the inputs x and the baselines x' of several problems, on their device, in one layout.

    Every leaf of an input is flattened: rows are inputs or pairs of an input and a baseline (see `Questions`), columns
    are coordinates.
    """

    def __init__(self, problems: Sequence[Problem], questions: Questions, layout: Layout = "contiguous") -> None:
        self._problem = problem = problems[0]
        self._questions = questions
        self._device = problem.device
        discrete = problem.features.discrete
        self._discrete = torch.from_numpy(discrete.copy()).to(self._device) if discrete.any() else None
        self._channels_last = [layout == "channels_last" and leaf.ndim == 3 for leaf in problem.x]
        self._shapes = [tuple(self._ordered(leaf, k).shape) for k, leaf in enumerate(problem.x)]
        self._x, self._baselines, self._differences, self._labels = [], [], [], []
        for k, dtype in enumerate(problem.dtypes):
            baselines = self._stack([point for each in problems for point in each.baselines.points[k]], k)
            x = self._stack([each.x[k] for each in problems], k)
            # The difference is taken in float64: x - x' of nearly equal numbers must not lose its leading digits.
            own_x = x if questions.n_baselines == 1 else x.repeat_interleave(questions.n_baselines, 0)
            differences = own_x.double() - baselines.double()
            self._differences.append(differences.to(dtype))
            self._x.append(x.to(dtype))
            self._baselines.append(baselines.to(dtype))
            self._labels.append(self._label([each.features.labels[k] for each in problems], k))
            if not torch.isfinite(torch.cat([self._differences[-1], self._x[-1], self._baselines[-1]])).all():
                narrow = str(dtype).removeprefix("torch.")
                raise GralisError(f"x, the baseline or their difference does not fit into {narrow}; rescale the input.")

    def _stack(self, tensors: list[Tensor], k: int) -> Tensor:
        """Leaf k of several points as rows (n, coordinates) on the device."""
        return torch.stack([self._ordered(tensor, k).reshape(-1) for tensor in tensors]).to(self._device)

    def _label(self, labels: list[NDArray[np.integer]], k: int) -> Tensor | None:
        """The feature of every coordinate, (1, coordinates), or (n_inputs, coordinates) where the inputs differ.

        None means that every coordinate is one feature.
        """
        n = self._problem.n_features
        distinct = labels[:1] if all(other is labels[0] for other in labels) else labels
        if len(distinct) == 1 and labels[0].shape == (n,) and (labels[0] == np.arange(n)).all():
            return None
        stacked = self._stack([torch.from_numpy(np.array(each)) for each in distinct], k)
        if len(stacked) > 1 and bool((stacked == stacked[:1]).all()):
            stacked = stacked[:1]
        identity = stacked.shape == (1, n) and bool((stacked[0] == torch.arange(n, device=stacked.device)).all())
        return None if identity else stacked

    def _ordered(self, leaf: Tensor, k: int) -> Tensor:
        """The leaf with its numbers in the order of the layout."""
        return leaf.movedim(0, -1).contiguous() if self._channels_last[k] else leaf.contiguous()

    def _on_device(self, *arrays: NDArray[np.generic]) -> list[Tensor]:
        tensors = [torch.from_numpy(a if a.flags.carray else np.require(a, requirements=["C", "W"])) for a in arrays]
        return tensors if self._device.type == "cpu" else [tensor.to(self._device) for tensor in tensors]

    def on_rays(self, masks: Masks, nodes: Array, pair: NDArray[np.int64]) -> Points:
        """x' + a (x_T - x') for each row of masks (rows, n_features), nodes (rows,), pair (rows,)."""
        members, node, pairs = self._on_device(masks, nodes, pair)
        step = members * node[:, None]
        if self._discrete is not None:  # continuous features move, discrete ones are at x' or at x
            step = torch.where(self._discrete, members * (node >= HALFWAY)[:, None], step)
        return self._at(step, pairs)

    def at_steps(self, step: Array, pair: NDArray[np.int64]) -> Points:
        """x' + step (x - x'), step (rows, n_features) in [0, 1]."""
        return self._at(*self._on_device(step, pair))

    def _at(self, step: Tensor, pair: Tensor) -> Points:
        flat = []
        for x, base, difference, label in zip(self._x, self._baselines, self._differences, self._labels, strict=True):
            steps = self._to_coordinates(step.to(difference.dtype), label, pair)
            point = torch.addcmul(base[pair], steps, difference[pair])
            if self._discrete is not None:  # a discrete feature must equal x to the last bit
                point = torch.where(steps == 1, self._of_inputs(x, pair), point)
            flat.append(point)
        return self._packed(flat)

    def at_coalitions(self, masks: Masks, pair: NDArray[np.int64]) -> Points:
        """x_T: x itself on T and x' elsewhere, to the last bit; x' + (x - x') would only be x up to rounding."""
        members, pairs = self._on_device(masks, pair)
        flat = []
        for x, base, label in zip(self._x, self._baselines, self._labels, strict=True):
            start = base if len(base) == 1 else base[pairs]
            # exact at weights of 0 and 1, and several times faster than a choice by booleans
            weights = self._to_coordinates(members.to(base.dtype), label, pairs)
            flat.append(torch.lerp(start, self._of_inputs(x, pairs), weights))
        return self._packed(flat)

    def in_layout(self, tensors: list[Tensor]) -> Points:
        """Points that were made elsewhere, leaf by leaf, in this layout."""
        return self._problem.pack(
            [
                leaf.contiguous(memory_format=torch.channels_last) if channels_last else leaf
                for leaf, channels_last in zip(tensors, self._channels_last, strict=True)
            ]
        )

    def to_features(self, gradients: Points, pair: NDArray[np.int64]) -> Tensor:
        """sum over the coordinates p of each feature of (x_p - x'_p) dF/dx_p, (rows, n_features) in float64."""
        (pairs,) = self._on_device(pair)
        rows = len(pair)
        total = torch.zeros(rows, self._problem.n_features, dtype=torch.float64, device=self._device)
        tables = zip(leaves(gradients), self._differences, self._labels, self._channels_last, strict=True)
        for gradient, difference, label, channels_last in tables:
            ordered = gradient.movedim(1, -1) if channels_last else gradient
            dtype = torch.promote_types(ordered.dtype, torch.float32)  # a product of two halves needs more than half
            product = (ordered.reshape(rows, -1).to(total.device, dtype) * difference[pairs].to(dtype)).double()
            if label is None:
                total += product
            else:
                total.scatter_add_(
                    1, label.expand(rows, -1) if len(label) == 1 else self._of_inputs(label, pairs), product
                )
        return total

    def _of_inputs(self, table: Tensor, pair: Tensor) -> Tensor:
        """The rows of the inputs of these pairs, from a table with one row per input, or with one for all of them."""
        return table if len(table) == 1 else table[self._questions.input_of_pair(pair)]

    def _to_coordinates(self, rows: Tensor, label: Tensor | None, pair: Tensor) -> Tensor:
        """Every coordinate gets the number of its feature: (rows, n_features) -> (rows, coordinates)."""
        if label is None:
            return rows
        if len(label) == 1:
            return rows.index_select(1, label[0])
        return rows.gather(1, self._of_inputs(label, pair))

    def _packed(self, flat: list[Tensor]) -> Points:
        """Flat leaves (rows, coordinates) in their shapes, as the model expects them."""
        shaped = [leaf.view(len(leaf), *shape) for leaf, shape in zip(flat, self._shapes, strict=True)]
        return self._problem.pack(
            [leaf.movedim(-1, 1) if self._channels_last[k] else leaf for k, leaf in enumerate(shaped)]
        )
