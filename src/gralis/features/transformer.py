"""Features of a transformer's layers: tokens that lie on patches of an image, and attention heads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from gralis.arrays import length
from gralis.checks import is_whole, whole
from gralis.errors import bad
from gralis.features.features import Features
from gralis.features.labels import shape_of
from gralis.features.partitions import channels

__all__ = ["heads", "patches", "picture_tokens"]


def patches(shape: object, grid: Sequence[int], extra: int | Sequence[int] = 0, axis: int = 0) -> Features:
    """One feature per token of a layer's output, which knows its patch of the image; for vision transformers.

    Class and register tokens have no patch. `Explanation.on` and `multiscale` give each of them a row of its own.

    Parameters
    ----------
    shape : tuple of int or array
        The shape of the layer's output, such as (tokens, dims) or (heads, tokens, dims).
    grid : sequence of int
        The rows and columns of patches, (h, w). Tokens run through them row by row.
    extra : int or sequence of int, default=0
        How many tokens at the start have no patch, or the positions of these tokens.
    axis : int, default=0
        The axis of the tokens.

    Returns
    -------
    Features

    Examples
    --------
    >>> tokens = patches((5, 8), (2, 2), extra=1)
    >>> tokens.names, tokens.meta["place"]["cells"]
    (('token 0', 'r0c0', 'r0c1', 'r1c0', 'r1c1'), [-1, 0, 1, 2, 3])
    """
    by_token = channels(shape, axis)
    n_tokens = by_token.n_features
    if not isinstance(extra, Sequence):
        extra = range(whole(extra, "extra", 0, "patches", most=n_tokens))
    positions = list(extra)
    if not all(is_whole(place, 0, n_tokens - 1) for place in positions):
        raise bad("extra", "patches", f"a number of tokens, or positions from 0 to {n_tokens - 1}", repr(extra))
    if length(grid) != 2 or not all(is_whole(side, 1) for side in grid):
        raise bad("grid", "patches", "the rows and columns of patches, (h, w)", repr(grid))
    placeless = np.isin(np.arange(n_tokens), positions)
    n_patches = n_tokens - int(placeless.sum())
    if grid[0] * grid[1] != n_patches:
        allowed = (
            f"(h, w) with h * w = {n_patches}, the {n_tokens} tokens without the {n_tokens - n_patches} extra ones"
        )
        raise bad("grid", "patches", allowed, repr(tuple(grid)), "Class and register tokens are counted by extra=.")
    cells = np.where(placeless, -1, np.cumsum(~placeless) - 1)
    names = [f"r{cell // grid[1]}c{cell % grid[1]}" if cell >= 0 else f"token {i}" for i, cell in enumerate(cells)]
    return Features(by_token.labels, names, "patches").at(grid, cells.tolist())


def picture_tokens(config: object, shape: Sequence[int], picture: Sequence[int]) -> Features | None:
    """The tokens of a vision transformer's layer on the patches of a picture, if the configuration says how.

    Parameters
    ----------
    config : object
        The configuration of the model, with `patch_size` and perhaps `num_register_tokens`.
    shape : sequence of int
        The shape of the layer's output, (tokens, dims).
    picture : sequence of int
        The shape of the picture, (channels, height, width).

    Returns
    -------
    Features or None
        None if the layer has no tokens on patches.
    """
    size = getattr(config, "patch_size", None)
    sides = tuple(size) if isinstance(size, Sequence) else (size, size)
    if len(shape) != 2 or len(picture) != 3 or len(sides) != 2 or not all(is_whole(side, 1) for side in sides):
        return None
    grid = (picture[1] // sides[0], picture[2] // sides[1])
    n_registers = getattr(config, "num_register_tokens", 0)
    n_registers = n_registers if is_whole(n_registers, 0) else 0
    extra = shape[0] - grid[0] * grid[1]
    if extra not in (0, 1, 1 + n_registers, 2):
        return None
    placed = patches(tuple(shape), grid, extra)
    special = ["class token", *(["distillation token"] if extra == 2 and not n_registers else [])]
    special = [*special, *(f"register {number}" for number in range(1, n_registers + 1))][:extra]
    return replace(placed, names=[*special, *placed.names[extra:]])


def heads(shape: object, n_heads: int, axis: int = -1) -> Features:
    """One feature per attention head. A head reads every token, so it has no place in the input.

    Parameters
    ----------
    shape : tuple of int or array
        The shape of the layer's output, such as (tokens, heads * dims) or (heads, tokens, dims).
    n_heads : int
        The number of heads.
    axis : int, default=-1
        The axis along which the heads stand one after the other; 0 for (heads, tokens, dims).

    Returns
    -------
    Features

    Examples
    --------
    >>> heads((5, 8), 2).labels[0][0].tolist(), heads((2, 5, 4), 2, axis=0).names
    ([0, 0, 0, 0, 1, 1, 1, 1], ('head 0', 'head 1'))
    """
    full = shape_of(shape, "heads")
    size = channels(full, axis).n_features
    n_heads = whole(n_heads, "n_heads", 1, "heads")
    if size % n_heads:
        raise bad("n_heads", "heads", f"a divisor of {size}, the size of axis {axis} of {full}", repr(n_heads))
    labels = channels(full, axis).labels[0] // (size // n_heads)
    return Features((labels,), [f"head {i}" for i in range(n_heads)], "heads")
