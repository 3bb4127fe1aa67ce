"""Noisy linear imputation: removed pixels become weighted means of their neighbours, all at once (ROAD).

x_p = sum over the neighbours n of p of w_n x_n, with w = 1/6 for the four direct ones and 1/12 for the four diagonal
ones, for every removed pixel p: a sparse symmetric system. Beyond the border there are no neighbours; the weights of
those inside then count for more. What a removed pixel was cannot be told from its imputed value, nor (with a little
noise) that it was removed. (Rong et al., A consistent and efficient evaluation strategy for attribution methods, 2022.)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_matrix
from scipy.sparse.linalg import splu

from gralis.arrays import Array
from gralis.errors import bad

NEIGHBOURS = {
    (dy, dx): 1 / 6 if 0 in (dy, dx) else 1 / 12 for dy in (-1, 0, 1) for dx in (-1, 0, 1) if (dy, dx) != (0, 0)
}


@dataclass(frozen=True)
class NoisyLinear:
    """Replace removed pixels by linear imputation plus noise: the `baseline` of ROAD, and one for any curve."""

    noise: float = 0.01  # standard deviation, in the units of x

    def __post_init__(self) -> None:
        noise: object = self.noise
        number = isinstance(noise, int | float | np.integer | np.floating) and not isinstance(noise, bool)
        if not number or not 0 <= noise < np.inf:  # type: ignore[operator]
            raise bad("noise", "NoisyLinear", "a number >= 0", repr(noise))

    def __call__(self, image: Array, kept: NDArray[np.bool_], rng: np.random.Generator) -> Array:
        """The image (..., H, W) with the pixels that are not `kept` (H, W) replaced."""
        filled = linear(image, kept)
        removed = ~kept
        filled[..., removed] += self.noise * rng.standard_normal((*image.shape[:-2], int(removed.sum())))
        return filled


def linear(image: Array, kept: NDArray[np.bool_]) -> Array:
    """The image (..., H, W) with its removed pixels solved for; if none is kept, every pixel is the mean.

    >>> squares = np.arange(9.0).reshape(3, 3) ** 2
    >>> kept = np.ones((3, 3), dtype=bool)
    >>> kept[1, 1] = False
    >>> round(float(linear(squares, kept)[1, 1]), 4)
    22.6667
    """
    filled = np.array(image, dtype=np.float64)
    channels = filled.reshape(-1, *kept.shape)  # a view
    if kept.all():
        return filled
    if not kept.any():
        channels[:] = channels.mean((1, 2), keepdims=True)
        return filled
    rows, columns = np.nonzero(~kept)
    n = len(rows)
    unknown = np.full(kept.shape, -1)
    unknown[rows, columns] = np.arange(n)
    diagonal, right = np.zeros(n), np.zeros((n, len(channels)))
    entries: list[tuple[NDArray[np.int64], NDArray[np.int64], Array]] = []
    for (dy, dx), weight in NEIGHBOURS.items():
        y, x = rows + dy, columns + dx
        inside = (y >= 0) & (y < kept.shape[0]) & (x >= 0) & (x < kept.shape[1])
        diagonal[inside] += weight
        here = np.flatnonzero(inside)
        y, x = y[inside], x[inside]
        known = kept[y, x]
        right[here[known]] += weight * channels[:, y[known], x[known]].T
        entries.append((here[~known], unknown[y[~known], x[~known]], np.full(int((~known).sum()), -weight)))
    entries.append((np.arange(n), np.arange(n), diagonal))
    i, j, values = (np.concatenate(part) for part in zip(*entries, strict=True))
    system = coo_matrix((values, (i, j)), shape=(n, n)).tocsc()
    # Symmetric and diagonally dominant: no pivoting needed, and an ordering for symmetric systems is the fast one.
    solver = splu(system, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
    channels[:, rows, columns] = solver.solve(right).T
    return filled
