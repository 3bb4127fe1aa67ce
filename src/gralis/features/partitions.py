"""Features of any input: each coordinate by itself, groups by label, columns of a table, channels."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from gralis.arrays import Shape, describe, length
from gralis.checks import is_whole
from gralis.errors import bad
from gralis.features.coordinate_names import CoordinateNames, checked
from gralis.features.features import Features
from gralis.features.labels import count, fit, integers, renumber, several, shape_of, shapes_of


def coordinates(shape_or_x: object, names: Sequence[str] | None = None) -> Features:
    """Each coordinate is its own feature: labels = 0, 1, 2, ... in C order, leaf after leaf.

    Takes a shape, an array, or a tuple of either (several leaves, named "x0[...]", "x1[...]").

    >>> coordinates((2, 2)).names[3], coordinates(np.zeros(4)), coordinates(((2,), (3, 1))).names[2]
    ('x[1,1]', Features(coordinates, 4 features over (4,)), 'x1[0,0]')
    """
    return of_shapes(shapes_of(shape_or_x, "coordinates"), names, None)


def groups(
    labels: object, names: Sequence[str] | None = None, shape: object = None, *, relabel: bool = False
) -> Features:
    """Features from integer labels: coordinates with the same label are one feature.

    `shape`: the shape of x, when the labels have only its spatial part: they are repeated over the channel axes,
    first (3, 224, 224) or last (224, 224, 3). A tuple of arrays labels several leaves, in one common numbering.
    Labels with gaps raise, unless `relabel=True`, which renumbers them in increasing order.

    >>> groups([[0, 1], [0, 1]], names=["left", "right"], shape=(3, 2, 2)).sizes.tolist()
    [6, 6]
    >>> groups([10, 30, 30], relabel=True).labels[0].tolist()
    [0, 1, 1]
    """
    parts = labels if several(labels) else (labels,)
    leaves = tuple(integers(leaf, "groups") for leaf in parts)
    if shape is not None:
        shapes = shapes_of(shape, "groups")
        if len(shapes) != len(leaves):
            raise bad("labels", "groups", f"one array per leaf, {len(shapes)} in all", f"{len(leaves)}")
        leaves = tuple(fit(leaf, target) for leaf, target in zip(leaves, shapes, strict=True))
    if relabel:
        leaves = renumber(leaves)
    if names is None:
        names = [f"group {i}" for i in range(count(leaves))]
    return Features(leaves, names, "groups")


def columns(
    names: Sequence[str],
    groups: Mapping[str, Sequence[str]] | None = None,
    discrete: Sequence[int | str] = (),
) -> Features:
    """A table row (n,): one feature per column; `groups` merges columns (one-hot codes) into one feature.

    `discrete` features (categories, one-hot groups) jump from x' to x, all others move along the ray.

    >>> row = columns(["age", "red", "blue"], groups={"color": ["red", "blue"]})
    >>> row.names, row.labels[0].tolist()
    (('age', 'color'), [0, 1, 1])
    """
    if not length(names):
        raise bad("names", "columns", "a non-empty list of column names", repr(names))
    if groups is not None and not isinstance(groups, Mapping):
        raise bad("groups", "columns", "a mapping group -> non-empty list of columns", describe(groups))
    names = checked(names, len(names))
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
    # A feature stands where its first column stands; ungrouped columns stay apart even if they share a name.
    keys = [("group", owner[str(c)]) if str(c) in owner else (i, str(c)) for i, c in enumerate(names)]
    number = {key: i for i, key in enumerate(dict.fromkeys(keys))}
    found = Features((np.array([number[key] for key in keys]),), [name for _, name in number], "columns")
    return found if length(discrete) == 0 else found.jumping(discrete)


def channels(shape: object, axis: int = 0, names: Sequence[str] | None = None) -> Features:
    """One feature per index of one axis.

    >>> channels((3, 8, 8), names=["red", "green", "blue"]).sizes.tolist()
    [64, 64, 64]
    """
    full = shape_of(shape, "channels")
    if not is_whole(axis, -len(full)) or axis >= len(full):
        raise bad("axis", "channels", f"an axis of a shape {full}", repr(axis))
    numbers = np.arange(full[axis]).reshape([-1 if i == axis % len(full) else 1 for i in range(len(full))])
    names = [f"channel {i}" for i in range(full[axis])] if names is None else names
    return Features((np.broadcast_to(numbers, full),), names, "channels", {"axis": int(axis)})


def of_shapes(shapes: tuple[Shape, ...], names: Sequence[str] | None, keys: Sequence[str] | None) -> Features:
    prefixes = tuple(keys or (("x",) if len(shapes) == 1 else (f"x{i}" for i in range(len(shapes)))))
    ends = np.cumsum([math.prod(shape) for shape in shapes])
    labels = tuple(np.arange(e - math.prod(s), e).reshape(s) for e, s in zip(ends, shapes, strict=True))
    return Features(labels, CoordinateNames(prefixes, shapes) if names is None else names, "coordinates")
