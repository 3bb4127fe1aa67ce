"""The truth of the coverage benchmarks: all coalitions, the law of the paper, and rays cut as finely as needed.

Nothing here uses gralis. A model is a torch function (rows, n) -> (rows,) in float64, and the baseline is zero.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import factorial

import numpy as np
import torch
from numpy.typing import NDArray

Array = NDArray[np.float64]
Masks = NDArray[np.bool_]
Function = Callable[[torch.Tensor], torch.Tensor]

SIGMA = 0.75  # of the default kernel
_NODES, _PANELS, _MOST_CUTS = 6, 32, 50
_SMOOTH, _KINK = 1e-13, 1e-11  # what a panel may be off, of the largest |v|: if it is wide, and if it is narrow
_NARROW = 1e-6
_ROWS = 2**16  # in one call of the model


def all_masks(n: int) -> Masks:
    """Every non-empty coalition of n features, (2^n - 1, n)."""
    return np.asarray((np.arange(1, 2**n)[:, None] >> np.arange(n) & 1).astype(bool))


def law(masks: Masks, squared_distance: Array, sigma: float | None = SIGMA) -> Array:
    """q_i(T) = w(|T| - 1) pi(T without i) / Z_i, (n_coalitions, n), for all coalitions; no sigma means pi = 1."""
    n, sizes = masks.shape[1], masks.sum(1)
    shapley = np.array([factorial(t - 1) * factorial(n - t) / factorial(n) for t in range(1, n + 1)])[sizes - 1]
    exponent = np.zeros(n) if sigma is None else squared_distance / squared_distance.sum() / (2 * sigma**2)
    weight = masks * shapley[:, None] * np.exp(-(masks @ exponent)[:, None] + exponent)
    return np.asarray(weight / weight.sum(0))


def values_at(function: Function, points: Array) -> Array:
    """F at every row."""
    parts = torch.from_numpy(points).split(_ROWS)
    return np.concatenate([function(part).detach().numpy() for part in parts])


def gradients_at(function: Function, points: Array) -> Array:
    """dF/dz at every row."""
    found = []
    for part in torch.from_numpy(points).split(_ROWS):
        z = part.clone().requires_grad_(True)
        (gradient,) = torch.autograd.grad(function(z).sum(), z)
        found.append(gradient.numpy())
    return np.concatenate(found)


def rays(function: Function, ends: Array) -> Array:
    """The integral over t in [0, 1] of x_i dF/dx_i at t x, for every row x of `ends`.

    Gauss-Legendre on panels. A panel is cut in two while its halves disagree with it, or while the integrals do not sum
    to the difference of F between its ends: so neither kinks nor jumps are missed. A panel with one kink between two
    straight lines needs no cut, because F tells where the kink is.
    """
    ray = np.repeat(np.arange(len(ends)), _PANELS)
    left, width = np.tile(np.arange(_PANELS) / _PANELS, len(ends)), np.full(len(ray), 1 / _PANELS)
    total = np.zeros_like(ends)
    scale = max(1e-300, float(np.abs(values_at(function, ends) - values_at(function, 0 * ends)).max()))
    whole, gap = _panels(function, ends[ray], left, width, scale)
    for _ in range(_MOST_CUTS):
        cut = np.isfinite(gap)
        np.add.at(total, ray[~cut], whole[~cut])
        ray, left, width, whole, gap = ray[cut], left[cut], width[cut], whole[cut], gap[cut]
        ray2, width2 = np.repeat(ray, 2), np.repeat(width / 2, 2)
        left2 = np.repeat(left, 2) + np.tile([0.0, 1.0], len(ray)) * width2
        halves, gap2 = _panels(function, ends[ray2], left2, width2, scale)
        both = halves[0::2] + halves[1::2]
        rough = np.maximum(np.abs(both - whole).max(1), gap) > scale * np.where(width > _NARROW, _SMOOTH, _KINK)
        np.add.at(total, ray[~rough], both[~rough])
        if not rough.any():
            return total
        cut = np.repeat(rough, 2)
        ray, left, width, whole, gap = ray2[cut], left2[cut], width2[cut], halves[cut], gap2[cut]
    np.add.at(total, ray, whole)  # at rounding
    return total


def _panels(function: Function, ends: Array, left: Array, width: Array, scale: float) -> tuple[Array, Array]:
    """The integral over each panel, and by how much its sum misses the step of F; NaN if the integral is known."""
    if not len(ends):
        return np.zeros_like(ends), np.zeros(0)
    node, weight = np.polynomial.legendre.leggauss(_NODES)
    node, weight = (node + 1) / 2, weight / 2
    t = left[:, None] + width[:, None] * node
    slope = gradients_at(function, (t[:, :, None] * ends[:, None, :]).reshape(-1, ends.shape[1]))
    slope = slope.reshape(*t.shape, -1) * ends[:, None, :]  # of F along the panel, feature by feature
    before, after = (values_at(function, edge[:, None] * ends) for edge in (left, left + width))
    found = np.einsum("k,pki->pi", weight, slope) * width[:, None]
    gap = np.abs(found.sum(1) - (after - before))
    first, last = slope[:, 0], slope[:, -1]
    bend, jump = first.sum(1) - last.sum(1), np.abs(first - last).max(1)
    with np.errstate(divide="ignore", invalid="ignore"):
        place = ((after - before) / width - last.sum(1)) / bend  # of the kink, if there is one
    lines = np.where((node < place[:, None])[:, :, None], first[:, None], last[:, None])
    straight = np.abs(slope - lines).max((1, 2)) <= 1e-12 * scale
    known = straight & (place > 0) & (place < 1) & (np.abs(bend) > 1e-2 * jump) & (jump > 1e-6 * scale)
    share = np.where(known, place, 0.0)[:, None]
    at_kink = values_at(function, (left[:, None] + width[:, None] * share) * ends)  # two kinks would cut the corner
    known &= np.abs(at_kink - before - share[:, 0] * width * first.sum(1)) <= 1e-13 * scale
    with_kink = (share * first + (1 - share) * last) * width[:, None]
    return np.where(known[:, None], with_kink, found), np.where(known, np.nan, gap)


@dataclass(frozen=True, eq=False)
class Truth:
    """F with its input, and everything about it that enumeration gives."""

    function: Function
    x: Array

    @cached_property
    def masks(self) -> Masks:
        return all_masks(len(self.x))

    @cached_property
    def rays(self) -> Array:
        """ray_i(T), (2^n - 1, n)."""
        return rays(self.function, self.masks * self.x)

    @cached_property
    def values(self) -> Array:
        """v(T) = F(x_T) - F(0)."""
        return values_at(self.function, self.masks * self.x) - values_at(self.function, 0 * self.x[None])

    def phi(self, sigma: float | None = SIGMA) -> Array:
        """sum over T of q_i(T) ray_i(T)."""
        return np.asarray((law(self.masks, self.x**2, sigma) * self.rays).sum(0))

    @cached_property
    def integrated_gradients(self) -> Array:
        """The ray of all features."""
        return rays(self.function, self.x[None])[0]

    def marginal(self, sigma: float | None = None) -> Array:
        """sum over T of q_i(T) (v(T) - v(T without i)); Shapley values without a sigma."""
        q, place = law(self.masks, self.x**2, sigma), np.concatenate([[0.0], self.values])  # v by the number of T
        number = np.arange(1, len(place))
        without = [place[number & ~(1 << i)] for i in range(len(self.x))]
        return np.asarray((q * (self.values[:, None] - np.stack(without, axis=1))).sum(0))

    @cached_property
    def pairs(self) -> dict[tuple[int, int], float]:
        """Shapley interactions of two: sum over S of |S|! (n - |S| - 2)! / (n - 1)! times the second difference."""
        n, place = len(self.x), np.concatenate([[0.0], self.values])
        number, sizes = np.arange(len(place)), np.concatenate([[0], self.masks.sum(1)])
        share = np.array([factorial(s) * factorial(max(n - s - 2, 0)) / factorial(n - 1) for s in range(n + 1)])
        found = {}
        for i in range(n):
            for j in range(i + 1, n):
                a, b = 1 << i, 1 << j
                s = number[(number & (a | b)) == 0]
                second = place[s | a | b] - place[s | a] - place[s | b] + place[s]
                found[i, j] = float(share[sizes[s]] @ second)
        return found

    @cached_property
    def residual(self) -> dict[str, float]:
        """The parts of v(F) - sum of phi; a sum over rays and one over values agree, so no part is numerical."""
        n, sizes = len(self.x), self.masks.sum(1)
        share = np.array([factorial(t - 1) * factorial(n - t) / factorial(n) for t in range(1, n + 1)])[sizes - 1]
        full, uniform, total = self.values[-1], self.phi(None).sum(), float(share @ self.values)
        phi = self.phi().sum()
        return {"observed": full - phi, "path": full - total, "numerical": 0.0, "kernel": uniform - phi}
