"""The reference points x' of one explanation, with their weights."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch

from gralis.arrays import Array
from gralis.errors import bad

__all__ = ["Baselines"]


@dataclass(frozen=True, eq=False, repr=False)
class Baselines:
    """The reference points x' and their weights.

    Parameters
    ----------
    points : tuple of tensor
        One tensor per leaf of x, (n_baselines, *leaf.shape).
    weights : array of shape (n_baselines,)
        The weights of the points, >= 0 with sum one.
    name : str
        How the provenance of a result names the baseline.

    Examples
    --------
    >>> Baselines((torch.zeros(2, 3),), np.array([0.5, 0.5]), "two")
    Baselines(two, 2 points)
    """

    points: tuple[torch.Tensor, ...]
    weights: Array
    name: str

    def __post_init__(self) -> None:
        rows = [len(points) for points in self.points]
        if not rows or set(rows) != {len(self.weights)} or not rows[0]:
            raise bad("points", "Baselines", f"{len(self.weights)} (one or more) rows on every leaf", f"{rows} rows")
        if (self.weights < 0).any() or not math.isclose(self.weights.sum(), 1.0, abs_tol=1e-9):
            raise bad("weights", "Baselines", ">= 0 with sum 1", f"the sum {self.weights.sum()}")
        weights = np.array(self.weights, dtype=np.float64)
        weights.flags.writeable = False
        object.__setattr__(self, "weights", weights)

    @property
    def n_baselines(self) -> int:
        """The number of reference points."""
        return len(self.weights)

    def __repr__(self) -> str:
        return f"Baselines({self.name}, {self.n_baselines} {'point' if self.n_baselines == 1 else 'points'})"
