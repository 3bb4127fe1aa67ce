"""One sentence for every bad input: it names the parameter, what is allowed, what it got, and what to do."""

from __future__ import annotations

__all__ = ["BudgetError", "GralisError", "ModelError", "NoGradientError", "bad"]


class GralisError(ValueError):
    """Every error that gralis raises on purpose; its text is one sentence for the user."""


class ModelError(GralisError):
    """The model failed: it raised an error, or it returned something that cannot be explained."""


class NoGradientError(ModelError):
    """The model has no gradient; plans that need values only still work."""


class BudgetError(GralisError):
    """The budget is too small for the plan; the text names the smallest one that suffices."""


def bad(parameter: str, owner: str, allowed: str, got: object, advice: str = "") -> GralisError:
    """The error for one bad parameter, to be raised by the caller.

    Parameters
    ----------
    parameter : str
        The name of the parameter.
    owner : str
        The function or class to which it belongs.
    allowed : str
        What the parameter must be, as the end of a sentence.
    got : object
        What it is instead.
    advice : str, optional
        One more sentence, which says what to do.

    Returns
    -------
    GralisError

    Examples
    --------
    >>> raise bad("sigma", "Gaussian", "a number > 0", -1)
    Traceback (most recent call last):
        ...
    gralis.errors.GralisError: The 'sigma' parameter of Gaussian must be a number > 0. Got -1 instead.
    """
    sentence = f"The '{parameter}' parameter of {owner} must be {allowed}. Got {got} instead."
    return GralisError(f"{sentence} {advice}".rstrip())
