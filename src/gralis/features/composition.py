"""One partition of an input of several arrays from the partitions of its arrays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from gralis.features.coordinate_names import CoordinateNames
from gralis.features.features import Features

__all__ = ["compose"]


def compose(parts: Sequence[Features], keys: Sequence[str]) -> Features:
    """The features of all parts, one part per array of x, numbered one after the other.

    A name that occurs in several parts gets the key of its array in front. If the user has chosen the discrete
    features of one part, the choice holds for that part; those of the others follow from the types of x.

    Parameters
    ----------
    parts : sequence of Features
        The features of every array of x, each over one array.
    keys : sequence of str
        The names of the arrays.

    Returns
    -------
    Features

    Examples
    --------
    >>> from gralis.features import columns, windows
    >>> both = compose([columns(["age", "dose"]), windows(6, 3)], ["table", "signal"])
    >>> both, both.names
    (Features(several, 4 features over (2,) and (6,)), ('age', 'dose', 't0-2', 't3-5'))
    """
    if len(parts) == 1:
        return parts[0]
    starts = [sum(part.n_features for part in parts[:k]) for k in range(len(parts))]
    labels = tuple(part.labels[0] + start for part, start in zip(parts, starts, strict=True))
    seen = Counter(name for part in parts for name in set(_own_names(part)))
    names = [
        name if seen[name] < 2 and not isinstance(part.names, CoordinateNames) else f"{key}{_joint(part)}{name}"
        for part, key in zip(parts, keys, strict=True)
        for name in _own_names(part)
    ]
    chosen = [k for k, part in enumerate(parts) if part.chosen]
    meta: dict[str, object] = {"kinds": [part.kind for part in parts], "starts": starts}
    if chosen:
        meta |= {
            "discrete": [int(i) + starts[k] for k in chosen for i in parts[k].discrete.nonzero()[0]],
            "chosen_arrays": chosen,
        }
    return Features(labels, names, "several", meta)


def _own_names(part: Features) -> Sequence[str]:
    """The names of the part; those of coordinates without their prefix, because the key replaces it."""
    if isinstance(part.names, CoordinateNames):
        prefix = len(part.names.prefixes[0])
        return [name[prefix:] for name in part.names]
    return part.names


def _joint(part: Features) -> str:
    return "" if isinstance(part.names, CoordinateNames) else ": "
