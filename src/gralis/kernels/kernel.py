"""What every kernel answers."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from gralis.arrays import Array, Masks
from gralis.laws import Law

__all__ = ["Kernel"]


@runtime_checkable
class Kernel(Protocol):
    """A locality kernel pi(S) >= 0. Every object with these two methods may be given as `kernel`.

    `bind` may return any law of `gralis.laws`: `ProductLaw(log_p)` for a product over the members, `SizeLaw(weights)`
    for a function of the size, `TableLaw(weigh, n_features)` for any function of masks of up to 16 features.

    Examples
    --------
    >>> import numpy as np
    >>> from gralis.laws import SizeLaw
    >>> class Halving:
    ...     def bind(self, squared_distance):
    ...         return SizeLaw(0.5 ** np.arange(len(squared_distance)))
    ...     def log_weight(self, masks, squared_distance):
    ...         return masks.sum(1) * np.log(0.5)
    >>> isinstance(Halving(), Kernel)
    True
    """

    def bind(self, squared_distance: Array) -> Law:
        """The law of coalitions of one input.

        Parameters
        ----------
        squared_distance : array of shape (n_features,)
            The squared distance of every feature of x from the baseline, summed over its coordinates.

        Returns
        -------
        Law
        """

    def log_weight(self, masks: Masks, squared_distance: Array) -> Array:
        """log pi(S) of several coalitions.

        Parameters
        ----------
        masks : array of bool, shape (n_coalitions, n_features)
            One coalition S per row; the empty coalition may be among them.
        squared_distance : array of shape (n_features,)
            As for `bind`.

        Returns
        -------
        array of shape (n_coalitions,)
        """
