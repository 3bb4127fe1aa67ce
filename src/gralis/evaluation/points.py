"""Points on rays, x' + a (x_T - x'), and gradients brought back to features; both in one memory layout.

With layout="channels_last" an image leaf is kept with its channels innermost, so that the points come out in torch's
channels_last format without a copy; convolutions are often much faster on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gralis.errors import GralisError
from gralis.models import Points
from gralis.models.points import leaves as leaves_of
from gralis.problem import Problem
from gralis.rays.discrete import HALFWAY

Layout = Literal["contiguous", "channels_last"]


class PointBuilder:
    """x, x' and labels of problems on their device, flattened leaf by leaf in one layout.

    `pair` numbers every x with each of its baselines: input * n_baselines + baseline.
    """

    def __init__(self, problems: Sequence[Problem], layout: Layout = "contiguous") -> None:
        self._problem = problem = problems[0]
        self._device = problem.device
        self._n_baselines = problem.baselines.n_baselines
        discrete = torch.from_numpy(problem.features.discrete).to(self._device)
        self._jumps = discrete if discrete.any() else None
        self._last = [layout == "channels_last" and leaf.ndim == 3 for leaf in problem.x]
        self._shapes = [tuple(self._order(leaf, k).shape) for k, leaf in enumerate(problem.x)]
        self._ends, self._baselines, self._moves, self._labels = [], [], [], []
        for k, dtype in enumerate(problem.dtypes):
            base = self._stack([point for each in problems for point in each.baselines.points[k]], k)
            there = self._stack([each.x[k] for each in problems], k)
            # The difference is taken in float64: x - x' of nearly equal numbers must not lose what it is about.
            moves = there.double().repeat_interleave(self._n_baselines, 0) - base.double()
            self._moves.append(moves.to(dtype))
            self._ends.append(there.to(dtype))
            self._baselines.append(base.to(dtype))
            self._labels.append(self._label([each.features.labels[k] for each in problems], k))
            if not all(torch.isfinite(part[-1]).all() for part in (self._moves, self._ends, self._baselines)):
                narrow = str(dtype).removeprefix("torch.")
                raise GralisError(f"x, the baseline or their difference does not fit into {narrow}; rescale the input.")

    def _stack(self, leaves: list[Tensor], k: int) -> Tensor:
        """Leaves as rows (n, coordinates) on the device."""
        return torch.stack([self._order(leaf, k).reshape(-1) for leaf in leaves]).to(self._device)

    def _label(self, labels: list[NDArray[np.integer]], k: int) -> Tensor | None:
        """The feature of every coordinate, (1, coordinates), or (n_inputs, coordinates) where inputs differ.

        None: every coordinate is its own feature.
        """
        distinct = labels[:1] if all(other is labels[0] for other in labels) else labels
        stacked = self._stack([torch.from_numpy(np.array(each)) for each in distinct], k)
        if len(stacked) > 1 and bool((stacked == stacked[:1]).all()):
            stacked = stacked[:1]
        n = self._problem.n_features
        identity = stacked.shape == (1, n) and bool((stacked[0] == torch.arange(n, device=stacked.device)).all())
        return None if identity else stacked

    def _order(self, leaf: Tensor, k: int) -> Tensor:
        """The leaf with its channels innermost where the layout asks for it."""
        return leaf.movedim(0, -1).contiguous() if self._last[k] else leaf.contiguous()

    def points(self, masks: Tensor, nodes: Tensor, pair: Tensor) -> Points:
        """x' + a (x_T - x') for each row of masks (rows, n_features), nodes (rows,), pair (rows,)."""
        step = masks * nodes[:, None]
        if self._jumps is not None:  # continuous features move, discrete ones are here or there
            step = torch.where(self._jumps, masks * (nodes >= HALFWAY)[:, None], step)
        return self.at(step, pair)

    def at(self, step: Tensor, pair: Tensor) -> Points:
        """x' + step (x - x'), step (rows, n_features) in [0, 1]."""
        flat = []
        for base, end, move, label in zip(self._baselines, self._ends, self._moves, self._labels, strict=True):
            along = self._spread(step.to(move.dtype), label, pair)
            point = torch.addcmul(base[pair], along, move[pair])
            if self._jumps is not None:  # a discrete feature is x to the last bit, or it is something else
                there = end if len(end) == 1 else end[pair // self._n_baselines]
                point = torch.where(along == 1, there, point)
            flat.append(point)
        return self._packed(flat)

    def corners(self, masks: Tensor, pair: Tensor) -> Points:
        """x_T: x itself on T and x' elsewhere, to the last bit; x' + (x - x') would only be x up to rounding."""
        flat = []
        for base, end, label in zip(self._baselines, self._ends, self._labels, strict=True):
            there = end if len(end) == 1 else end[pair // self._n_baselines]
            here = base if len(base) == 1 else base[pair]
            # exact at weights of 0 and 1, and several times faster than a choice by booleans
            flat.append(torch.lerp(here, there, self._spread(masks.to(base.dtype), label, pair)))
        return self._packed(flat)

    def arranged(self, leaves: list[Tensor]) -> Points:
        """Points made elsewhere, in this layout."""
        last = torch.channels_last
        return self._problem.pack(
            [leaf.contiguous(memory_format=last) if self._last[k] else leaf for k, leaf in enumerate(leaves)]
        )

    def _spread(self, rows: Tensor, label: Tensor | None, pair: Tensor) -> Tensor:
        """Of features (rows, n_features), what each coordinate gets: (rows, coordinates)."""
        if label is None:
            return rows
        if len(label) == 1:
            return rows.index_select(1, label[0])
        return rows.gather(1, label[pair // self._n_baselines])

    def _packed(self, flat: list[Tensor]) -> Points:
        """Flat leaves (rows, coordinates) in their own shapes, as the model expects them."""
        shaped = [leaf.view(len(leaf), *shape) for leaf, shape in zip(flat, self._shapes, strict=True)]
        return self._problem.pack([leaf.movedim(-1, 1) if self._last[k] else leaf for k, leaf in enumerate(shaped)])

    def to_features(self, gradients: Points, pair: Tensor) -> Tensor:
        """sum over the coordinates p of each feature of (x_p - x'_p) dF/dx_p, (rows, n_features) in float64."""
        rows = len(pair)
        total = torch.zeros(rows, self._problem.n_features, dtype=torch.float64, device=pair.device)
        found = leaves_of(gradients)
        for k, (gradient, move, label) in enumerate(zip(found, self._moves, self._labels, strict=True)):
            inner = gradient.movedim(1, -1) if self._last[k] else gradient
            exact = torch.promote_types(inner.dtype, torch.float32)  # a product of two halves needs more than half
            product = (inner.reshape(rows, -1).to(total.device, exact) * move[pair].to(exact)).double()
            if label is None:
                total += product
            else:
                own = label.expand(rows, -1) if len(label) == 1 else label[pair // self._n_baselines]
                total.scatter_add_(1, own, product)
        return total
