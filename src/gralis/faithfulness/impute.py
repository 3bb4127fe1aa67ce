"""Noisy linear imputation: removed pixels become weighted means of their neighbours, all at once (ROAD).

x_p = sum over the neighbours n of p of w_n x_n, with w = 1/6 for the four direct ones and 1/12 for the four diagonal
ones, for every removed pixel p: a sparse symmetric system. At the border the weights of the neighbours that exist are
scaled up. The imputed value does not reveal what the pixel was, nor (with a little noise) that it was removed.
(Rong et al., A consistent and efficient evaluation strategy for attribution methods, 2022.)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_matrix
from scipy.sparse.linalg import splu

from gralis.arrays import Array
from gralis.checks import non_negative

__all__ = ["NoisyLinear", "linear"]

_NEIGHBOURS = {
    (dy, dx): 1 / 6 if 0 in (dy, dx) else 1 / 12 for dy in (-1, 0, 1) for dx in (-1, 0, 1) if (dy, dx) != (0, 0)
}


@dataclass(frozen=True)
class NoisyLinear:
    """Replace removed pixels by linear imputation plus noise: the `baseline` of ROAD, and of any curve if you like.

    Parameters
    ----------
    noise : float, default=0.01
        The standard deviation of the noise, in the units of x.

    Examples
    --------
    >>> NoisyLinear(noise=0.0)(np.array([[1.0, 9.0, 3.0]]), np.array([[True, False, True]]), np.random.default_rng(0))
    array([[1., 2., 3.]])
    """

    noise: float = 0.01

    def __post_init__(self) -> None:
        non_negative(self.noise, "noise", "NoisyLinear")

    def __call__(self, image: Array, kept: NDArray[np.bool_], rng: np.random.Generator) -> Array:
        """The image with the pixels that are not kept replaced.

        Parameters
        ----------
        image : array of shape (..., H, W)
            The image; it is not changed.
        kept : bool array of shape (H, W)
            The pixels that stay as they are.
        rng : numpy.random.Generator
            The source of the noise.

        Returns
        -------
        array of shape (..., H, W)
        """
        filled = linear(image, kept)
        removed = ~kept
        filled[..., removed] += self.noise * rng.standard_normal((*image.shape[:-2], int(removed.sum())))
        return filled


def linear(image: Array, kept: NDArray[np.bool_]) -> Array:
    """The image (..., H, W) with its removed pixels imputed; if no pixel is kept, every pixel becomes the mean.

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
    for (dy, dx), weight in _NEIGHBOURS.items():
        y, x = rows + dy, columns + dx
        inside = (y >= 0) & (y < kept.shape[0]) & (x >= 0) & (x < kept.shape[1])
        diagonal[inside] += weight
        row = np.flatnonzero(inside)
        y, x = y[inside], x[inside]
        known = kept[y, x]
        right[row[known]] += weight * channels[:, y[known], x[known]].T
        entries.append((row[~known], unknown[y[~known], x[~known]], np.full(int((~known).sum()), -weight)))
    entries.append((np.arange(n), np.arange(n), diagonal))
    i, j, values = (np.concatenate(part) for part in zip(*entries, strict=True))
    system = coo_matrix((values, (i, j)), shape=(n, n)).tocsc()
    # The system is symmetric and diagonally dominant: it needs no pivoting, and a symmetric ordering is the fastest.
    solver = splu(system, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
    channels[:, rows, columns] = solver.solve(right).T
    return filled
