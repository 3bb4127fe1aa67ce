"""Recipes: ways to make a baseline x' from x itself, leaf by leaf."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
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
        ...


@dataclass(frozen=True)
class _Call:
    """A recipe whose repr is the call that makes it: blur(sigma=8)."""

    def __repr__(self) -> str:
        name = "".join(f"_{c.lower()}" if c.isupper() else c for c in type(self).__name__).strip("_")
        options = [(f.name, getattr(self, f.name)) for f in fields(self)]
        return f"{name}({', '.join(f'{key}={value!r}' for key, value in options if value not in (None, 'auto'))})"


@dataclass(frozen=True, repr=False)
class _Zeros(_Call):
    def point(self, leaf: Array, index: int) -> Array:
        return np.zeros(leaf.shape)


@dataclass(frozen=True, repr=False)
class _Mean(_Call):
    def point(self, leaf: Array, index: int) -> Array:
        return np.full(leaf.shape, leaf.mean())


@dataclass(frozen=True, repr=False)
class _MeanColor(_Call):
    channel_axis: ChannelAxis

    def point(self, leaf: Array, index: int) -> Array:
        return np.asarray(leaf.mean(axis=_spatial(leaf.shape, self.channel_axis, "mean_color"), keepdims=True))


@dataclass(frozen=True, repr=False)
class _Blur(_Call):
    sigma: float | None
    channel_axis: ChannelAxis

    def point(self, leaf: Array, index: int) -> Array:
        from scipy.ndimage import gaussian_filter  # here, because it is slow to import

        axes = _spatial(leaf.shape, self.channel_axis, "blur")
        sigma = min(leaf.shape[axis] for axis in axes) / 10 if self.sigma is None else self.sigma
        blurred: Array = gaussian_filter(leaf, [sigma if axis in axes else 0.0 for axis in range(leaf.ndim)])
        return blurred


@dataclass(frozen=True, repr=False)
class _Noise(_Call):
    seed: int
    channel_axis: ChannelAxis

    def point(self, leaf: Array, index: int) -> Array:
        axes = _spatial(leaf.shape, self.channel_axis, "noise")
        low, high = leaf.min(axis=axes, keepdims=True), leaf.max(axis=axes, keepdims=True)
        rng = np.random.default_rng([self.seed, index])  # two leaves of one shape get different noise
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
    return _Zeros()


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
    return _Mean()


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
    return _MeanColor(_checked(channel_axis, "mean_color"))


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
    return _Blur(sigma, _checked(channel_axis, "blur"))


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
    return _Noise(whole(seed, "seed", 0, "noise"), _checked(channel_axis, "noise"))


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
