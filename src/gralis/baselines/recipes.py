"""Recipes: ways to make a baseline x' from x itself, leaf by leaf."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from numbers import Integral, Real
from typing import Literal, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from gralis.arrays import Shape
from gralis.checks import is_whole
from gralis.errors import bad

ChannelAxis: TypeAlias = int | Literal["auto"] | None
Float64: TypeAlias = NDArray[np.float64]

_WIDEST = 10_000  # pixels


@runtime_checkable
class Recipe(Protocol):
    """One way to make x' from x. Anything with this method may be given as `baseline`."""

    def point(self, leaf: Float64, index: int) -> Float64:
        """x' on leaf number `index`: shaped like the leaf, or broadcastable to it."""
        ...


@dataclass(frozen=True)
class _Call:
    """A value whose repr is the call that makes it: blur(sigma=8)."""

    def __repr__(self) -> str:
        name = "".join(f"_{c.lower()}" if c.isupper() else c for c in type(self).__name__).strip("_")
        options = [(f.name, getattr(self, f.name)) for f in fields(self)]
        return f"{name}({', '.join(f'{key}={value!r}' for key, value in options if value not in (None, 'auto'))})"


@dataclass(frozen=True, repr=False)
class _Zeros(_Call):
    def point(self, leaf: Float64, index: int) -> Float64:
        return np.zeros(leaf.shape)


@dataclass(frozen=True, repr=False)
class _Mean(_Call):
    def point(self, leaf: Float64, index: int) -> Float64:
        return np.full(leaf.shape, leaf.mean())


@dataclass(frozen=True, repr=False)
class _MeanColor(_Call):
    channel_axis: ChannelAxis

    def point(self, leaf: Float64, index: int) -> Float64:
        return np.asarray(leaf.mean(axis=_spatial(leaf.shape, self.channel_axis, "mean_color"), keepdims=True))


@dataclass(frozen=True, repr=False)
class _Blur(_Call):
    sigma: float | None
    channel_axis: ChannelAxis

    def point(self, leaf: Float64, index: int) -> Float64:
        from scipy.ndimage import gaussian_filter  # here, because it is slow to import

        axes = _spatial(leaf.shape, self.channel_axis, "blur")
        sigma = min(leaf.shape[axis] for axis in axes) / 10 if self.sigma is None else self.sigma
        blurred: Float64 = gaussian_filter(leaf, [sigma if axis in axes else 0.0 for axis in range(leaf.ndim)])
        return blurred


@dataclass(frozen=True, repr=False)
class _Noise(_Call):
    seed: int
    channel_axis: ChannelAxis

    def point(self, leaf: Float64, index: int) -> Float64:
        axes = _spatial(leaf.shape, self.channel_axis, "noise")
        low, high = leaf.min(axis=axes, keepdims=True), leaf.max(axis=axes, keepdims=True)
        rng = np.random.default_rng([self.seed, index])  # two leaves of one shape get different noise
        return np.asarray(low + (high - low) * rng.random(leaf.shape))


def zeros() -> Recipe:
    """x' = 0.

    >>> zeros().point(np.ones(2), 0).tolist()
    [0.0, 0.0]
    """
    return _Zeros()


def mean() -> Recipe:
    """x' = the mean of all coordinates of the leaf, everywhere.

    >>> mean().point(np.array([1.0, 3.0]), 0).tolist()
    [2.0, 2.0]
    """
    return _Mean()


def mean_color(channel_axis: ChannelAxis = "auto") -> Recipe:
    """x' = each channel's mean over the spatial axes.

    `channel_axis="auto"`, here and below: with three or more axes, the last one if only it (not the first) has size
    1, 3 or 4, else the first, as torch has it; with one or two axes none (a series, a grey image). None: none.

    >>> mean_color().point(np.array([[[0.0, 2.0]], [[4.0, 6.0]]]), 0).ravel().tolist()
    [1.0, 5.0]
    """
    return _MeanColor(_checked(channel_axis, "mean_color"))


def blur(sigma: float | None = None, channel_axis: ChannelAxis = "auto") -> Recipe:
    """x' = x after a Gaussian blur of the spatial axes (mirrored at the edges), `sigma` in pixels.

    sigma=None: a tenth of the shorter spatial side, 22.4 pixels for a 224 x 224 image.

    >>> blur(sigma=8)
    blur(sigma=8)
    """
    if sigma is not None and (not isinstance(sigma, Real) or not 0 < sigma <= _WIDEST):
        raise bad("sigma", "blur", f"a float > 0 and at most {_WIDEST}, or None", repr(sigma))
    return _Blur(sigma, _checked(channel_axis, "blur"))


def noise(seed: int = 0, channel_axis: ChannelAxis = "auto") -> Recipe:
    """x' = uniform noise between the least and the largest value of each channel of x; one draw, fixed by the seed.

    >>> noise(seed=1), bool((noise().point(np.full((1, 8, 8), 7.0), 0) == 7.0).all())
    (noise(seed=1), True)
    """
    if not is_whole(seed, 0):
        raise bad("seed", "noise", "an int >= 0", repr(seed))
    return _Noise(seed, _checked(channel_axis, "noise"))


#: The names `explain(baseline=...)` knows.
RECIPES: dict[str, Callable[[], Recipe]] = {
    "zeros": zeros,
    "mean": mean,
    "mean-color": mean_color,
    "blur": blur,
    "noise": noise,
}


def _checked(channel_axis: ChannelAxis, owner: str) -> ChannelAxis:
    named = isinstance(channel_axis, str) and channel_axis == "auto"
    if named or channel_axis is None or (isinstance(channel_axis, Integral) and not isinstance(channel_axis, bool)):
        return channel_axis
    raise bad("channel_axis", owner, "'auto', None or an axis", repr(channel_axis))


def _spatial(shape: Shape, channel_axis: ChannelAxis, owner: str) -> tuple[int, ...]:
    """All axes but the channels' one."""
    n_axes = len(shape)
    if not n_axes:
        raise bad("x", owner, "an array with at least one axis", "a single number")
    axis = channel_axis
    if axis == "auto":
        colors = (1, 3, 4)
        axis = None if n_axes < 3 else n_axes - 1 if shape[-1] in colors and shape[0] not in colors else 0
    if axis is None:
        return tuple(range(n_axes))
    if not is_whole(axis, -n_axes) or axis >= n_axes or n_axes == 1:
        raise bad("channel_axis", owner, f"'auto', None or an axis beside the spatial ones of {shape}", repr(axis))
    return tuple(i for i in range(n_axes) if i != axis % n_axes)
