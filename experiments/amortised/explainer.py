"""A trained explainer in the manner of FastSHAP: a network that gives the values of all regions in one forward.

phi(x) minimises E over x and coalitions T of (v(T) - sum over T of phi_i)^2 with T drawn by the Shapley kernel, and the
values are shifted so that they sum to v(all): at the minimum they are the Shapley values. The model is called for
training only (v of 2 n_pairs coalitions for every image and step: a coalition and its complement); the regions are
the same grid on every image, because the network must know which output is which.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

Value = Callable[[Tensor], Tensor]  # images (rows, 3, side, side) -> one number per row


class Explainer(nn.Module):
    """Convolutions down to the grid of regions, one number for each cell."""

    def __init__(self, grid: int, width: int = 16) -> None:
        super().__init__()
        self.body = nn.Sequential(
            *(nn.Conv2d(3, width, 5, stride=2, padding=2), nn.GELU()),
            *(nn.Conv2d(width, 2 * width, 3, padding=1), nn.GELU()),
            *(nn.AdaptiveAvgPool2d(grid), nn.Conv2d(2 * width, 2 * width, 3, padding=1), nn.GELU()),
            nn.Conv2d(2 * width, 1, 1),
        )

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.body(x)
        return found.flatten(1)


def kernel_coalitions(rng: np.random.Generator, n_rows: int, n: int) -> NDArray[np.bool_]:
    """Coalitions of the Shapley kernel: the size with weight 1 / (s (n - s)), then any of that size; with complements.

    The probability of a coalition of size s is proportional to (n - 1) / (C(n, s) s (n - s)).
    """
    sizes = np.arange(1, n)
    weight = 1 / (sizes * (n - sizes))
    drawn = rng.choice(sizes, (n_rows + 1) // 2, p=weight / weight.sum())
    ranks = rng.random((len(drawn), n)).argsort(1).argsort(1)
    masks = ranks < drawn[:, None]
    return np.concatenate([masks, ~masks])[:n_rows]


def on_pixels(masks: Tensor, grid: int, side: int) -> Tensor:
    """Masks of cells, (..., grid * grid), as masks of pixels, (..., 1, side, side)."""
    table = masks.reshape(-1, 1, grid, grid).float()
    return nn.functional.interpolate(table, size=side, mode="nearest").reshape(*masks.shape[:-1], 1, side, side)


def train(
    value: Value,
    images: Tensor,
    grid: int,
    *,
    epochs: int,
    n_masks: int = 16,
    rate: float = 3e-3,
    batch: int = 16,
    seed: int = 0,
) -> tuple[Explainer, int]:
    """The explainer of `value`, and how many forwards of the model it took. The baseline is 0."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        explainer = Explainer(grid)
    rng, side, n = np.random.default_rng(seed), images.shape[-1], grid * grid
    steps = epochs * -(-len(images) // batch)
    optimiser = torch.optim.Adam(explainer.parameters(), lr=rate)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, rate, total_steps=steps)
    with torch.no_grad():
        empty = value(torch.zeros_like(images[:1]))
        full = value(images) - empty
    n_forwards = len(images) + 1
    for _ in range(epochs):
        for part in np.array_split(rng.permutation(len(images)), -(-len(images) // batch)):
            masks = torch.from_numpy(kernel_coalitions(rng, len(part) * n_masks, n)).view(n_masks, len(part), n)
            x = images[part]
            with torch.no_grad():
                points = x * on_pixels(masks, grid, side)
                gained = value(points.flatten(0, 1)).view(n_masks, len(part)) - empty
            n_forwards += n_masks * len(part)
            phi = complete(explainer(x), full[part])
            loss = ((gained - (masks * phi).sum(2)) ** 2).mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            schedule.step()
    return explainer.eval(), n_forwards


def complete(phi: Tensor, full: Tensor) -> Tensor:
    """Shifted so that the values sum to v(all)."""
    return phi + ((full - phi.sum(1)) / phi.shape[1])[:, None]


def explain(explainer: Explainer, value: Value, x: Tensor) -> NDArray[np.float64]:
    """The values of one image: a forward of the explainer, two of the model."""
    with torch.no_grad():
        ends = value(torch.stack([x, torch.zeros_like(x)]))
        return complete(explainer(x[None]), ends[:1] - ends[1:])[0].double().numpy()
