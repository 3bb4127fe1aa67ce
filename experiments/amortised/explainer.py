"""A trained explainer like FastSHAP: a network that gives the values of all regions in one forward.

phi(x) minimises the expectation over x and coalitions T of (v(T) - sum over T of phi_i)^2, where T is drawn by the
Shapley kernel. The values are shifted so that they sum to v(all). At the minimum they are the Shapley values. Training
calls the model once for every coalition, and the explainer can use these values in as many epochs as needed. The
explainer computes a map, and the value of a region is the mean of the map over the region. Every image may therefore
have different regions, as with superpixels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from gralis import Features

Value = Callable[[Tensor], Tensor]  # images (rows, 3, height, width) -> one number per row, without a graph


@dataclass(frozen=True)
class Pieces:
    """Images, (rows, 3, height, width), and the regions of each; the baseline is 0."""

    x: Tensor
    features: Sequence[Features]

    def region(self, row: int) -> Tensor:
        """The region of every pixel, (height, width)."""
        return torch.tensor(self.features[row].labels[0][0])

    def means(self, cells: tuple[int, int]) -> Tensor:
        """Matrices that map rows x columns of cells to their mean over every region, (rows, most regions, cells)."""
        most, n_cells = max(one.n_features for one in self.features), cells[0] * cells[1]
        pixels = self.x.shape[-2] * self.x.shape[-1] / n_cells  # of a cell
        overlap = torch.zeros(len(self.x), most, n_cells)
        for row in range(len(self.x)):
            inside = nn.functional.one_hot(self.region(row), most).permute(2, 0, 1).float()
            overlap[row] = nn.functional.adaptive_avg_pool2d(inside, cells).flatten(1) * pixels
        return overlap / overlap.sum(2, keepdim=True).clamp(min=1.0)

    @property
    def present(self) -> Tensor:
        """Which regions an image has, (rows, most regions)."""
        counts = torch.tensor([one.n_features for one in self.features])
        return torch.arange(int(counts.max())) < counts[:, None]


@dataclass(frozen=True)
class Coalitions:
    """Values of the model: v of n_masks coalitions of every image, and v of all its regions together."""

    masks: Tensor  # (rows, n_masks, most regions)
    gained: Tensor  # (rows, n_masks)
    full: Tensor  # (rows,)
    n_forwards: int


class Explainer(nn.Module):
    """Convolutions, each of which halves both sides, and a map with one number per cell."""

    def __init__(self, halvings: int, width: int = 16) -> None:
        super().__init__()
        widths = [3, *(width * 2**i for i in range(halvings))]
        steps = [part for a, b in pairwise(widths) for part in (nn.Conv2d(a, b, 5, stride=2, padding=2), nn.GELU())]
        last = widths[-1]
        self.halvings = halvings
        self.body = nn.Sequential(*steps, nn.Conv2d(last, last, 3, padding=1), nn.GELU(), nn.Conv2d(last, 1, 1))

    def forward(self, x: Tensor, means: Tensor) -> Tensor:
        """Values, (rows, most regions)."""
        values: Tensor = means @ self.body(x).flatten(1)[:, :, None]
        return values[:, :, 0]

    def cells(self, x: Tensor) -> tuple[int, int]:
        """The rows and columns of the map."""
        height, width = (-(-side // 2**self.halvings) for side in x.shape[-2:])
        return height, width


def kernel_coalitions(rng: np.random.Generator, n_rows: int, n: int) -> NDArray[np.bool_]:
    """Coalitions drawn by the Shapley kernel, with their complements.

    The size is drawn with weight 1 / (s (n - s)), then a coalition of that size uniformly. The probability of a
    coalition of size s is proportional to (n - 1) / (C(n, s) s (n - s)).
    """
    sizes = np.arange(1, n)
    weight = 1 / (sizes * (n - sizes))
    drawn = rng.choice(sizes, (n_rows + 1) // 2, p=weight / weight.sum())
    ranks = rng.random((len(drawn), n)).argsort(1).argsort(1)
    masks = ranks < drawn[:, None]
    return np.concatenate([masks, ~masks])[:n_rows]


def ask(value: Value, pieces: Pieces, n_masks: int, seed: int = 0) -> Coalitions:
    """v of n_masks coalitions of every image."""
    rng, most = np.random.default_rng(seed), pieces.present.shape[1]
    masks = torch.zeros(len(pieces.x), n_masks, most, dtype=torch.bool)
    gained = torch.zeros(len(pieces.x), n_masks)
    empty, full = value(torch.zeros_like(pieces.x[:1])), value(pieces.x)
    for row, features in enumerate(pieces.features):
        drawn = torch.from_numpy(kernel_coalitions(rng, n_masks, features.n_features))
        masks[row, :, : features.n_features] = drawn
        gained[row] = value(pieces.x[row] * drawn[:, pieces.region(row)][:, None]) - empty
    return Coalitions(masks, gained, full - empty, len(pieces.x) * (n_masks + 1) + 1)


def train(
    pieces: Pieces, said: Coalitions, halvings: int, *, epochs: int, rate: float = 3e-3, batch: int = 16, seed: int = 0
) -> Explainer:
    """Train the explainer of the model that gave these values."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        explainer = Explainer(halvings)
    rng, rows = np.random.default_rng(seed), len(pieces.x)
    means, present = pieces.means(explainer.cells(pieces.x)), pieces.present
    optimiser = torch.optim.Adam(explainer.parameters(), lr=rate)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, rate, total_steps=epochs * -(-rows // batch))
    for _ in range(epochs):
        for part in np.array_split(rng.permutation(rows), -(-rows // batch)):
            phi = complete(explainer(pieces.x[part], means[part]), said.full[part], present[part])
            loss = ((said.gained[part] - (said.masks[part] * phi[:, None]).sum(2)) ** 2).mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            schedule.step()
    return explainer.eval()


def complete(phi: Tensor, full: Tensor, present: Tensor) -> Tensor:
    """Shift the values of the regions that are present so that they sum to v(all)."""
    phi = phi * present
    shifted: Tensor = phi + present * ((full - phi.sum(1)) / present.sum(1))[:, None]
    return shifted


def explain(explainer: Explainer, value: Value, pieces: Pieces, row: int) -> NDArray[np.float64]:
    """The values of one image, from one forward of the explainer and two of the model."""
    one = Pieces(pieces.x[row : row + 1], pieces.features[row : row + 1])
    full = value(one.x) - value(torch.zeros_like(one.x))
    with torch.no_grad():
        phi = explainer(one.x, one.means(explainer.cells(one.x)))
        return complete(phi, full, one.present)[0].double().numpy()
