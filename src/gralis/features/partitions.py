"""Features of any input: each coordinate by itself, groups by label, columns of a table, channels."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Literal

import numpy as np

from gralis.arrays import Shape, describe, length
from gralis.checks import is_whole, one_of
from gralis.errors import bad
from gralis.features.coordinate_names import CoordinateNames, checked_names
from gralis.features.features import Features
from gralis.features.labels import (
    Labels,
    as_labels,
    count_features,
    fit,
    has_several_leaves,
    renumber,
    shape_of,
    shapes_of,
)
from gralis.features.members import by_members

__all__ = ["channels", "columns", "coordinates", "groups", "one_per_coordinate"]

_MOST_SHARED = 2**12  # coordinates of features that are made once for all inputs of the same shape


def coordinates(shape_or_x: object, names: Sequence[str] | None = None) -> Features:
    """Each coordinate is a feature: labels = 0, 1, 2, ... in C order, leaf after leaf.

    Parameters
    ----------
    shape_or_x : int, tuple of int, array, or a tuple of them
        The shape of x, or x itself. A tuple of shapes or arrays stands for an x of several leaves.
    names : sequence of str, optional
        One name per coordinate; by default "x[0,1]", with several leaves "x0[...]", "x1[...]".

    Returns
    -------
    Features

    Examples
    --------
    >>> coordinates((2, 2)).names[3], coordinates(np.zeros(4)), coordinates(((2,), (3, 1))).names[2]
    ('x[1,1]', Features(coordinates, 4 features over (4,)), 'x1[0,0]')
    """
    return one_per_coordinate(shapes_of(shape_or_x, "coordinates"), names, None)


def groups(
    labels: object, names: Sequence[str] | None = None, shape: object = None, *, relabel: bool = False
) -> Features:
    """Features from integer labels: coordinates with the same label are one feature.

    Parameters
    ----------
    labels : array of int, a tuple of them, or a mapping of str to members
        The label of every coordinate, 0, 1, 2, ... without gaps. A tuple of arrays labels several leaves with one
        common numbering. A mapping has the members of every group by its name: a boolean mask shaped like x or its
        spatial part or, if x has one axis (`shape`), a list of indices. Coordinates in no group are one more feature,
        "the rest".
    names : sequence of str, optional
        One name per feature; by default "group 0", "group 1", ...
    shape : tuple of int, array, or a tuple of them, optional
        The shape of x, if the labels have only its spatial part. They are then repeated over the channel axes,
        which are the first axes of x, as in (3, 224, 224), or the last ones, as in (224, 224, 3).
    relabel : bool, default=False
        Whether labels with gaps are renumbered in increasing order instead of being refused.

    Returns
    -------
    Features

    Examples
    --------
    >>> groups([[0, 1], [0, 1]], names=["left", "right"], shape=(3, 2, 2)).sizes.tolist()
    [6, 6]
    >>> groups([10, 30, 30], relabel=True).labels[0].tolist()
    [0, 1, 1]
    >>> groups({"vitals": [0, 1], "labs": [3]}, shape=5).names
    ('vitals', 'labs', 'the rest')
    """
    if isinstance(labels, Mapping):
        if names is not None or relabel:
            raise bad("names", "groups", "None if the groups are a mapping, which has their names", repr(names))
        numbers, names = by_members(labels, None if shape is None else shape_of(shape, "groups"))
        labels = numbers
    leaves = tuple(as_labels(leaf, "groups") for leaf in (labels if has_several_leaves(labels) else (labels,)))
    if shape is not None:
        shapes = shapes_of(shape, "groups")
        if len(shapes) != len(leaves):
            raise bad("labels", "groups", f"one array per leaf, {len(shapes)} in all", f"{len(leaves)}")
        leaves = tuple(fit(leaf, target) for leaf, target in zip(leaves, shapes, strict=True))
    if one_of(relabel, (True, False), "relabel", "groups"):
        leaves = renumber(leaves)
    if names is None:
        names = [f"group {i}" for i in range(count_features(leaves))]
    return Features(leaves, names, "groups")


def columns(
    names: Sequence[str],
    groups: Mapping[str, Sequence[str]] | None = None,
    discrete: Sequence[int | str] | Literal[False] | None = None,
) -> Features:
    """The features of a table row (n_columns,): one per column, or one per group of columns.

    Parameters
    ----------
    names : sequence of str
        The names of all columns, in the order of x.
    groups : mapping of str to sequence of str, optional
        Columns that are merged into one feature, for example the columns of a one-hot code, by the name of the feature.
    discrete : sequence of int or str, False or None, default=None
        The numbers or names of features that jump from x' to x, such as categories and one-hot groups. All others move
        along the ray. None lets integer and boolean columns jump, if x has such types; False lets nothing jump.

    Returns
    -------
    Features

    Examples
    --------
    >>> row = columns(["age", "red", "blue"], groups={"color": ["red", "blue"]})
    >>> row.names, row.labels[0].tolist()
    (('age', 'color'), [0, 1, 1])
    """
    if not length(names):
        raise bad("names", "columns", "a non-empty list of column names", repr(names))
    if groups is not None and not isinstance(groups, Mapping):
        raise bad("groups", "columns", "a mapping group -> non-empty list of columns", describe(groups))
    names = checked_names(names, len(names))
    owner: dict[str, str] = {}  # column -> its group
    for group, members in (groups or {}).items():
        if not length(members):
            raise bad("groups", "columns", "a mapping group -> non-empty list of columns", f"{group!r}: {members!r}")
        for column in map(str, members):
            if [str(name) for name in names].count(column) != 1:
                raise bad("groups", "columns", "made of columns that occur once in 'names'", repr(column))
            if column in owner:
                raise bad("groups", "columns", "such that no column is named twice", repr(column))
            owner[column] = str(group)
    # A feature takes the place of its first column. Columns without a group stay apart even if they share a name.
    keys = [("group", owner[str(c)]) if str(c) in owner else (i, str(c)) for i, c in enumerate(names)]
    number = {key: i for i, key in enumerate(dict.fromkeys(keys))}
    features = Features((np.array([number[key] for key in keys]),), [name for _, name in number], "columns")
    return features if discrete is None else features.jumping([] if discrete is False else discrete)


def channels(shape: object, axis: int = 0, names: Sequence[str] | None = None) -> Features:
    """One feature per index of one axis.

    Parameters
    ----------
    shape : tuple of int or array
        The shape of x, or x itself.
    axis : int, default=0
        The axis whose indices are the features.
    names : sequence of str, optional
        One name per index; by default "channel 0", "channel 1", ...

    Returns
    -------
    Features

    Examples
    --------
    >>> channels((3, 8, 8), names=["red", "green", "blue"]).sizes.tolist()
    [64, 64, 64]
    """
    full = shape_of(shape, "channels")
    if not is_whole(axis, -len(full), len(full) - 1):
        raise bad("axis", "channels", f"an axis of a shape {full}", repr(axis))
    numbers = np.arange(full[axis]).reshape([-1 if i == axis % len(full) else 1 for i in range(len(full))])
    names = [f"channel {i}" for i in range(full[axis])] if names is None else names
    return Features((np.broadcast_to(numbers, full),), names, "channels", {"axis": int(axis)})


def one_per_coordinate(shapes: tuple[Shape, ...], names: Sequence[str] | None, keys: Sequence[str] | None) -> Features:
    """Each coordinate of leaves of these shapes is a feature; `keys` are the names of the leaves."""
    prefixes = tuple(keys or (("x",) if len(shapes) == 1 else (f"x{i}" for i in range(len(shapes)))))
    if names is None and sum(map(math.prod, shapes)) <= _MOST_SHARED:
        return _coordinates_of(shapes, prefixes)
    return Features(_numbered(shapes), CoordinateNames(prefixes, shapes) if names is None else names, "coordinates")


@lru_cache(maxsize=64)
def _coordinates_of(shapes: tuple[Shape, ...], prefixes: tuple[str, ...]) -> Features:
    """The features of all inputs of these shapes: many rows of a table share one value."""
    return Features(_numbered(shapes), CoordinateNames(prefixes, shapes), "coordinates")


def _numbered(shapes: tuple[Shape, ...]) -> tuple[Labels, ...]:
    """0, 1, 2, ... in C order, leaf after leaf."""
    ends = np.cumsum([math.prod(shape) for shape in shapes])
    return tuple(np.arange(e - math.prod(s), e).reshape(s) for e, s in zip(ends, shapes, strict=True))
