"""The uniform kernel, and the Gaussian kernel of the paper."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from gralis.arrays import Array, Masks
from gralis.checks import one_of, positive
from gralis.laws import Law, ProductLaw, SizeLaw

__all__ = ["MOST_EXPONENT", "Gaussian", "Uniform"]

#: In a law, p_j counts as at least exp(-MOST_EXPONENT), because a law works with finite logarithms. The weights pi(S)
#: themselves have no such floor: in Algorithm 1 a weight that underflows is zero.
MOST_EXPONENT = 700.0
_FINITE = 1e300  # sums of exponents stay finite


@dataclass(frozen=True)
class Uniform:
    """pi(S) = 1: every coalition counts with Shapley's weight alone.

    Examples
    --------
    >>> import numpy as np
    >>> Uniform().bind(np.ones(3)).normaliser.round(12).tolist()
    [1.0, 1.0, 1.0]
    """

    def bind(self, squared_distance: Array) -> Law:
        return SizeLaw(np.ones(len(squared_distance)))

    def log_weight(self, masks: Masks, squared_distance: Array) -> Array:
        return np.zeros(len(masks))


@dataclass(frozen=True)
class Gaussian:
    """pi(S) = exp(-sum_{j in S} d_j^2 / (2 sigma^2)), where d_j is the distance of feature j from its baseline.

    Parameters
    ----------
    sigma : float
        The width of the kernel, > 0. A small sigma lets only coalitions near the baseline count; a large one
        approaches `Uniform`.
    distance : {'relative', 'euclidean'}, default='relative'
        'euclidean' is the paper's formula to the letter. 'relative' divides d_j^2 by the whole ||x - x'||^2, so that
        sigma means the same for an image and for a table, and the full coalition weighs exp(-1 / (2 sigma^2)).

    Examples
    --------
    >>> Gaussian(0.75)
    Gaussian(sigma=0.75, distance='relative')
    """

    sigma: float
    distance: Literal["relative", "euclidean"] = "relative"

    def __post_init__(self) -> None:
        sigma = positive(self.sigma, "sigma", "Gaussian", "For sigma = infinity use Uniform().")
        object.__setattr__(self, "sigma", sigma)  # a NumPy number would print, and save, differently
        one_of(self.distance, ("relative", "euclidean"), "distance", "Gaussian")

    def log_p(self, squared_distance: Array) -> Array:
        """log p_j = -d_j^2 / (2 sigma^2) for every feature j."""
        scale = squared_distance.sum() if self.distance == "relative" else 1.0
        if scale == 0:  # x = x' everywhere: every coalition is equally near
            return np.zeros_like(squared_distance)
        with np.errstate(over="ignore"):  # sigma^2 itself may be out of range
            exponent = squared_distance / scale / 2 / self.sigma / self.sigma
        return np.asarray(-np.minimum(exponent, _FINITE))

    def bind(self, squared_distance: Array) -> Law:
        return ProductLaw(np.maximum(self.log_p(squared_distance), -MOST_EXPONENT))

    def log_weight(self, masks: Masks, squared_distance: Array) -> Array:
        return np.asarray(masks @ self.log_p(squared_distance))
