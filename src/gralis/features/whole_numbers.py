"""Which features jump because of their type: integers and booleans have no values between x' and x.

An explicit choice always wins: `columns(..., discrete=...)` and `Features.jumping(...)` say which features jump, and
`discrete=False` or `jumping([])` that none does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gralis.arrays import Array
from gralis.errors import bad
from gralis.features.features import Features

__all__ = ["TableRow", "jumping_by_type", "table_row"]


class TableRow(NamedTuple):
    """A row of a table whose columns have types of their own.

    Attributes
    ----------
    values : array of shape (n_columns,)
        The numbers in float64.
    names : tuple of str
        The names of the columns.
    whole : array of bool, shape (n_columns,)
        Which columns hold integers or booleans.
    """

    values: Array
    names: tuple[str, ...]
    whole: NDArray[np.bool_]


def table_row(x: Any) -> TableRow | None:
    """The row in a pandas frame of one row, or in a pandas series of mixed types; None for anything else.

    Examples
    --------
    >>> import pandas
    >>> table_row(pandas.DataFrame({"age": [41.5], "married": [True]})).whole.tolist()
    [False, True]
    """
    kind = (type(x).__module__.partition(".")[0], type(x).__name__)
    if kind == ("pandas", "DataFrame"):
        if len(x) != 1:
            raise bad("x", "explain", "one row of a table, such as frame.iloc[[0]]", f"{len(x)} rows")
        entries = [x.iloc[0, column] for column in range(x.shape[1])]
        names, kinds = x.columns, [dtype.kind for dtype in x.dtypes]
    elif kind == ("pandas", "Series") and x.dtype.kind == "O":
        entries, names = list(x), x.index
        kinds = [np.asarray(entry).dtype.kind for entry in entries]
    else:
        return None
    for name, entry, of_column in zip(names, entries, kinds, strict=True):
        if of_column not in "biuf":
            allowed = "a row of numbers and booleans; encode a category as a number, and name it in discrete=[...]"
            raise bad("x", "explain", allowed, f"{entry!r} in column {name!r}")
    values = np.array([float(entry) for entry in entries])
    return TableRow(values, tuple(map(str, names)), np.array([of_column in "biu" for of_column in kinds]))


def jumping_by_type(features: Features, whole: Sequence[NDArray[np.bool_]]) -> Features:
    """The same features, of which those with a whole-number coordinate jump, unless the user has chosen.

    Parameters
    ----------
    features : Features
        The features.
    whole : sequence of array of bool
        Which coordinates are integers or booleans by type, one array per leaf, shaped like the leaf.

    Returns
    -------
    Features

    Examples
    --------
    >>> from gralis.features import columns
    >>> jumping_by_type(columns(["age", "city"]), [np.array([False, True])]).discrete.tolist()
    [False, True]
    """
    owners = [labels[by_type] for labels, by_type in zip(features.labels, whole, strict=True)]
    chosen = features.meta.get("chosen_arrays")
    if chosen is None and features.chosen:
        return features
    # If the user has chosen for some arrays of x only, the types of the others decide.
    by_type = [own for array, own in enumerate(owners) if array not in (chosen or ())]  # type: ignore[operator]
    jumping = np.unique(np.concatenate([*by_type, np.flatnonzero(features.discrete)]))
    return features.jumping(jumping.tolist()) if len(jumping) or features.chosen else features
