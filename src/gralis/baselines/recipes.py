"""Recipes: ways to make a baseline x' from x itself, leaf by leaf."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from gralis.arrays import Array, ChannelAxis, Shape
from gralis.checks import is_whole, positive, whole
from gralis.errors import bad

__all__ = ["RECIPES", "Recipe", "blur", "mean", "mean_color", "noise", "zeros"]

_WIDEST = 10_000  # pixels


@runtime_checkable
class Recipe(Protocol):
    """A way to make x' from x. Every object with the method `point` may be given as `baseline`."""

    def point(self, leaf: Array, index: int) -> Array:
        """x' on one leaf of x.

        Parameters
        ----------
        leaf : array of float
            The leaf.
        index : int
            The number of the leaf, 0 if x is one array.

        Returns
        -------
        array
            Shaped like the leaf, or broadcastable to it.
        """


@dataclass(frozen=True, repr=False)
class _Call:
    """A recipe that is a function of the leaf, its number and some options; its repr is blur(sigma=8)."""

    make: Callable[..., Array]
    options: tuple[tuple[str, object], ...] = ()

    def point(self, leaf: Array, index: int) -> Array:
        return self.make(leaf, index, **dict(self.options))

    def __repr__(self) -> str:
        shown = (f"{key}={value!r}" for key, value in self.options if value not in (None, "auto"))
        return f"{self.make.__name__.strip('_')}({', '.join(shown)})"


def _zeros(leaf: Array, index: int) -> Array:
    return np.zeros(leaf.shape)


def _mean(leaf: Array, index: int) -> Array:
    return np.full(leaf.shape, leaf.mean())


def _mean_color(leaf: Array, index: int, channel_axis: ChannelAxis) -> Array:
    return np.asarray(leaf.mean(axis=_spatial(leaf.shape, channel_axis, "mean_color"), keepdims=True))


def _blur(leaf: Array, index: int, sigma: float | None, channel_axis: ChannelAxis) -> Array:
    from scipy.ndimage import gaussian_filter  # here, because it is slow to import

    axes = _spatial(leaf.shape, channel_axis, "blur")
    width = min(leaf.shape[axis] for axis in axes) / 10 if sigma is None else sigma
    blurred: Array = gaussian_filter(leaf, [width if axis in axes else 0.0 for axis in range(leaf.ndim)])
    return blurred


def _noise(leaf: Array, index: int, seed: int, channel_axis: ChannelAxis) -> Array:
    axes = _spatial(leaf.shape, channel_axis, "noise")
    low, high = leaf.min(axis=axes, keepdims=True), leaf.max(axis=axes, keepdims=True)
    rng = np.random.default_rng([seed, index])  # two leaves of one shape get different noise
    return np.asarray(low + (high - low) * rng.random(leaf.shape))


def zeros() -> Recipe:
    """x' = 0.

    Returns
    -------
    Recipe

    Examples
    --------
    >>> zeros().point(np.ones(2), 0).tolist()
    [0.0, 0.0]
    """
    return _Call(_zeros)


def mean() -> Recipe:
    """x' = the mean of all coordinates of the leaf, everywhere.

    Returns
    -------
    Recipe

    Examples
    --------
    >>> mean().point(np.array([1.0, 3.0]), 0).tolist()
    [2.0, 2.0]
    """
    return _Call(_mean)


def mean_color(channel_axis: ChannelAxis = "auto") -> Recipe:
    """x' = the mean of each channel over the spatial axes.

    Parameters
    ----------
    channel_axis : int, 'auto' or None, default='auto'
        The axis of the channels; None means that there are no channels. With three or more axes 'auto' is the last axis
        if it, but not the first, has size 1, 3 or 4, else the first, as in torch. With one or two axes (a series, a
        grey image) 'auto' means that there are no channels.

    Returns
    -------
    Recipe

    Examples
    --------
    >>> mean_color().point(np.array([[[0.0, 2.0]], [[4.0, 6.0]]]), 0).ravel().tolist()
    [1.0, 5.0]
    """
    return _Call(_mean_color, (("channel_axis", _checked(channel_axis, "mean_color")),))


def blur(sigma: float | None = None, channel_axis: ChannelAxis = "auto") -> Recipe:
    """x' = x after a Gaussian blur of the spatial axes, with mirrored edges.

    Parameters
    ----------
    sigma : float, optional
        The width of the blur in pixels. The default is a tenth of the shortest spatial side, which is 22.4 pixels for a
        224 x 224 image.
    channel_axis : int, 'auto' or None, default='auto'
        As for `mean_color`.

    Returns
    -------
    Recipe

    Examples
    --------
    >>> blur(sigma=8)
    blur(sigma=8)
    """
    if sigma is not None and positive(sigma, "sigma", "blur") > _WIDEST:
        raise bad("sigma", "blur", f"a number > 0 and at most {_WIDEST}, or None", repr(sigma))
    return _Call(_blur, (("sigma", sigma), ("channel_axis", _checked(channel_axis, "blur"))))


def noise(seed: int = 0, channel_axis: ChannelAxis = "auto") -> Recipe:
    """x' = uniform noise between the smallest and the largest value of each channel of x.

    Parameters
    ----------
    seed : int, default=0
        The seed of the noise; the same seed gives the same x'.
    channel_axis : int, 'auto' or None, default='auto'
        As for `mean_color`.

    Returns
    -------
    Recipe

    Examples
    --------
    >>> noise(seed=1), bool((noise().point(np.full((1, 8, 8), 7.0), 0) == 7.0).all())
    (noise(seed=1), True)
    """
    options = ("seed", whole(seed, "seed", 0, "noise")), ("channel_axis", _checked(channel_axis, "noise"))
    return _Call(_noise, options)


#: The recipes that `explain(baseline=...)` knows by name.
RECIPES: dict[str, Callable[[], Recipe]] = {
    "zeros": zeros,
    "mean": mean,
    "mean-color": mean_color,
    "blur": blur,
    "noise": noise,
}


def _checked(channel_axis: ChannelAxis, owner: str) -> ChannelAxis:
    if channel_axis is None or (isinstance(channel_axis, str) and channel_axis == "auto") or is_whole(channel_axis):
        return channel_axis
    raise bad("channel_axis", owner, "'auto', None or an axis", repr(channel_axis))


def _spatial(shape: Shape, channel_axis: ChannelAxis, owner: str) -> tuple[int, ...]:
    """All axes except that of the channels."""
    n_axes = len(shape)
    if not n_axes:
        raise bad("x", owner, "an array with at least one axis", "a single number")
    axis = channel_axis
    if axis == "auto":
        colors = (1, 3, 4)
        axis = None if n_axes < 3 else n_axes - 1 if shape[-1] in colors and shape[0] not in colors else 0
    if axis is None:
        return tuple(range(n_axes))
    if not is_whole(axis, -n_axes, n_axes - 1) or n_axes == 1:
        raise bad("channel_axis", owner, f"'auto', None or an axis beside the spatial ones of {shape}", repr(axis))
    return tuple(i for i in range(n_axes) if i != axis % n_axes)
