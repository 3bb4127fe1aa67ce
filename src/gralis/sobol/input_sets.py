"""Sets of inputs: which sets T the user asks for, and their subsets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations

from gralis.checks import is_whole, printable
from gralis.errors import bad

#: The numbers of the inputs of a set, in increasing order.
InputSet = tuple[int, ...]


def named_sets(sets: object, names: Sequence[str], owner: str) -> tuple[InputSet, ...]:
    """The sets that the user names by the numbers or by the names of their inputs, each once."""
    allowed = f"sets of inputs, each a tuple of numbers from 0 to {len(names) - 1} or of names"
    if isinstance(sets, str) or not isinstance(sets, Iterable):
        raise bad("sets", owner, allowed, repr(sets))
    return tuple(dict.fromkeys(_members(one, names, allowed, owner) for one in sets))


def with_pairs(sets: tuple[InputSet, ...], n: int) -> tuple[InputSet, ...]:
    """Every pair of n inputs, and then the sets that are no pairs."""
    return (*combinations(range(n), 2), *(t for t in sets if len(t) != 2))


def _members(one: object, names: Sequence[str], allowed: str, owner: str) -> InputSet:
    parts = list(one) if isinstance(one, Iterable) and not isinstance(one, str) else []
    shown = [printable(part) if isinstance(part, str) else part for part in parts]
    places = [names.index(part) if isinstance(part, str) and part in names else part for part in shown]
    good = [int(place) for place in places if is_whole(place, 0, len(names) - 1)]
    if not parts or len(good) != len(parts) or len(set(good)) != len(good):
        raise bad("sets", owner, f"{allowed}, without repetition", f"the set {one!r}")
    return tuple(sorted(good))


def subsets(t: InputSet, least: int = 0) -> list[InputSet]:
    """The subsets of T with at least `least` inputs, the small ones first.

    >>> subsets((0, 2))
    [(), (0,), (2,), (0, 2)]
    """
    return [part for size in range(least, len(t) + 1) for part in combinations(t, size)]
