"""What a target may be, and the check of it."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Literal, TypeAlias

from torch import Tensor

from gralis.errors import bad

__all__ = ["OnTensors", "Target", "Targets", "as_index", "check", "listed"]

#: None: the output is already one number per row. int: outputs[:, k]. tuple: outputs[:, i, j, ...].
#: A callable receives exactly what the model returned, and returns (rows,).
Target: TypeAlias = int | tuple[int, ...] | Callable[[Any], Tensor] | None
#: Several targets at once: a list of targets, or "all" for every output of a classifier.
Targets: TypeAlias = list[Target] | list[int] | Literal["all"]


class OnTensors:
    """The base of targets that receive tensors even if the outputs of the model are arrays of another framework."""


def check(target: object, owner: str = "explain") -> Target:
    """The target, with integers of any kind as Python ints; anything that cannot be a target is refused.

    Parameters
    ----------
    target : object
        None, an int, a tuple of ints, or a function of the outputs.
    owner : str, default='explain'
        The function that error messages name.

    Returns
    -------
    Target
    """
    if target is None or callable(target):
        return target
    if isinstance(target, tuple) and target:
        return tuple(as_index(i, owner, "target") for i in target)
    return as_index(target, owner, "target")


def listed(target: Target | Targets, owner: str = "explain") -> tuple[Target, ...]:
    """The targets one by one.

    Parameters
    ----------
    target : Target or Targets
        One target, a list of different targets, or "all".
    owner : str, default='explain'
        The function that error messages name.

    Returns
    -------
    tuple of Target
        Empty for "all", because only the outputs show how many there are.

    Examples
    --------
    >>> listed(3), listed([0, 3]), listed("all")
    ((3,), (0, 3), ())
    """
    if isinstance(target, str) and target == "all":
        return ()
    if not isinstance(target, list):
        return (check(target, owner),)
    targets = tuple(check(each, owner) for each in target)
    if not targets or len(set(targets)) < len(targets):
        raise bad("target", owner, "a list of different targets", repr(target))
    return targets


def as_index(value: object, owner: str, parameter: str) -> int:
    """The value as a Python int; NumPy and torch integers are accepted."""
    allowed = "an int"
    if parameter == "target":
        allowed = "None, an int, a tuple of ints, or a function of the outputs"
        allowed += ", or a list of these, or 'all'" if owner == "explain" else ""
    try:
        if isinstance(value, bool):
            raise TypeError
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise bad(parameter, owner, allowed, repr(value)) from None
