"""One sentence for every bad input: the parameter, what is allowed, what was got, what to do."""

from __future__ import annotations


class GralisError(ValueError):
    """Any error gralis raises on purpose; its text is one sentence meant for the user."""


class ModelError(GralisError):
    """The model itself misbehaved: it raised, or returned something that cannot be explained."""


class BudgetError(GralisError):
    """The budget is too small for what was asked; the text names the least that would do."""


def bad(parameter: str, owner: str, allowed: str, got: object, advice: str = "") -> GralisError:
    """The error for one bad parameter.

    >>> raise bad("sigma", "Gaussian", "a float > 0", -1)
    Traceback (most recent call last):
        ...
    gralis.errors.GralisError: The 'sigma' parameter of Gaussian must be a float > 0. Got -1 instead.
    """
    sentence = f"The '{parameter}' parameter of {owner} must be {allowed}. Got {got} instead."
    return GralisError(f"{sentence} {advice}".rstrip())
