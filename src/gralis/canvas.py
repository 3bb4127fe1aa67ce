"""Points on rays, x' + a (x_T - x'), and gradients brought back to features; both in one memory layout.

With layout="channels_last" an image leaf is kept with its channels innermost, so that the points come out in torch's
channels_last format without a copy; convolutions are often much faster on it.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import torch
from torch import Tensor

from gralis.errors import GralisError
from gralis.models import Points
from gralis.models.points import leaves as leaves_of
from gralis.problem import Problem

Layout = Literal["contiguous", "channels_last"]


class Canvas:
    """x, x' and labels of one problem on its device, flattened leaf by leaf in one layout."""

    def __init__(self, problem: Problem, layout: Layout = "contiguous") -> None:
        self._problem = problem
        self._last = [layout == "channels_last" and leaf.ndim == 3 for leaf in problem.x]
        device = problem.device
        self._shapes = [tuple(self._order(leaf, k).shape) for k, leaf in enumerate(problem.x)]
        self._ends, self._baselines, self._moves, self._labels = [], [], [], []
        for k, (leaf, points, labels) in enumerate(
            zip(problem.x, problem.baselines.points, problem.features.labels, strict=True)
        ):
            base = torch.stack([self._order(point, k).reshape(-1) for point in points]).to(device)
            there = self._order(leaf, k).reshape(-1).to(device)
            label = self._order(torch.from_numpy(np.array(labels)), k).reshape(-1)
            identity = len(label) == problem.n_features and bool((label == torch.arange(len(label))).all())
            # The difference is taken in float64: x - x' of nearly equal numbers must not lose what it is about.
            self._moves.append((there.double() - base.double()).to(problem.dtypes[k]))
            self._ends.append(there.to(problem.dtypes[k]))
            self._baselines.append(base.to(problem.dtypes[k]))
            self._labels.append(None if identity else label.to(device))
            if not all(torch.isfinite(part[-1]).all() for part in (self._moves, self._ends, self._baselines)):
                narrow = str(problem.dtypes[k]).removeprefix("torch.")
                raise GralisError(f"x, the baseline or their difference does not fit into {narrow}; rescale the input.")

    def _order(self, leaf: Tensor, k: int) -> Tensor:
        """The leaf with its channels innermost where the layout asks for it."""
        return leaf.movedim(0, -1).contiguous() if self._last[k] else leaf.contiguous()

    def points(self, masks: Tensor, nodes: Tensor, baseline: Tensor) -> Points:
        """x' + a (x_T - x') for each row of masks (rows, n_features), nodes (rows,), baseline (rows,)."""
        step = masks * nodes[:, None]  # (rows, n_features)
        flat = []
        for base, move, label in zip(self._baselines, self._moves, self._labels, strict=True):
            along = step.to(move.dtype)  # (rows, n_features), then (rows, coordinates)
            along = along if label is None else along.index_select(1, label)
            flat.append(torch.addcmul(base[baseline], along, move[baseline]))
        return self._packed(flat)

    def corners(self, masks: Tensor, baseline: Tensor) -> Points:
        """x_T: x itself on T and x' elsewhere, to the last bit; x' + (x - x') would only be x up to rounding."""
        flat = []
        for base, end, label in zip(self._baselines, self._ends, self._labels, strict=True):
            flat.append(torch.where(masks if label is None else masks.index_select(1, label), end, base[baseline]))
        return self._packed(flat)

    def _packed(self, flat: list[Tensor]) -> Points:
        """Flat leaves (rows, coordinates) in their own shapes, as the model expects them."""
        shaped = [leaf.view(len(leaf), *shape) for leaf, shape in zip(flat, self._shapes, strict=True)]
        return self._problem.pack([leaf.movedim(-1, 1) if self._last[k] else leaf for k, leaf in enumerate(shaped)])

    def to_features(self, gradients: Points, baseline: Tensor) -> Tensor:
        """sum over the coordinates p of each feature of (x_p - x'_p) dF/dx_p, (rows, n_features) in float64."""
        total = torch.zeros(len(baseline), self._problem.n_features, dtype=torch.float64, device=baseline.device)
        found = leaves_of(gradients)
        for k, (gradient, move, label) in enumerate(zip(found, self._moves, self._labels, strict=True)):
            inner = gradient.movedim(1, -1) if self._last[k] else gradient
            exact = torch.promote_types(inner.dtype, torch.float32)  # a product of two halves needs more than half
            product = (inner.reshape(len(baseline), -1).to(total.device, exact) * move[baseline].to(exact)).double()
            if label is None:
                total += product
            else:
                total.scatter_add_(1, label.expand(len(baseline), -1), product)
        return total
