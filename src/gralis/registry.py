"""Things by name: those of gralis itself, and those that other code registers."""

from __future__ import annotations

from collections import UserDict
from collections.abc import Mapping
from typing import TypeVar

from gralis.errors import bad

Entry = TypeVar("Entry")

__all__ = ["Registry"]


class Registry(UserDict[str, Entry]):
    """A dict with the entries of gralis, which nobody can replace, then the registered ones in their order.

    Parameters
    ----------
    owner : str
        The function of gralis that registers an entry. Error messages name it.
    known : mapping
        The entries of gralis itself.
    key : str, default='name'
        The parameter of that function that takes the name.

    Examples
    --------
    >>> shapes = Registry("shapes.register", {"round": max})
    >>> shapes["flat"] = min
    >>> list(shapes)
    ['round', 'flat']
    >>> shapes["round"] = min
    Traceback (most recent call last):
        ...
    gralis.errors.GralisError: The 'name' parameter of shapes.register must be a string other than the names of gralis \
itself ('round'). Got 'round' instead.
    """

    def __init__(self, owner: str, known: Mapping[str, Entry], key: str = "name") -> None:
        self.data, self._built_in, self._owner, self._key = dict(known), tuple(known), owner, key

    def __setitem__(self, name: str, entry: Entry) -> None:
        if not isinstance(name, str) or not name or name in self._built_in:
            others = f"a string other than the names of gralis itself ({', '.join(map(repr, self._built_in))})"
            raise bad(self._key, self._owner, others if self._built_in else "a text", repr(name))
        self.data[name] = entry
