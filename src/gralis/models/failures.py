"""Errors of the user's code, reported with the shapes that caused them; out of memory is not an error of the code."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any

import torch

from gralis.errors import GralisError, ModelError
from gralis.models.points import leaves, shapes
from gralis.models.protocol import Points

__all__ = ["class_of", "full_name", "kind", "out_of_memory", "report_failure"]

_ALLOCATION = ("out of memory", "can't allocate memory", "DefaultCPUAllocator", "RESOURCE_EXHAUSTED")  # the last: JAX


def out_of_memory(error: BaseException) -> bool:
    """Whether the error means that the batch was too large for the memory."""
    if isinstance(error, MemoryError | torch.cuda.OutOfMemoryError):
        return True
    if type(error).__name__ == "ResourceExhaustedError":  # of TensorFlow
        return True
    return isinstance(error, RuntimeError) and any(text in str(error) for text in _ALLOCATION)


def kind(value: object) -> str:
    """What a value is, in words: 'the class Linear', 'a Linear'."""
    return f"the class {value.__name__}" if isinstance(value, type) else f"a {type(value).__name__}"


def class_of(module: object) -> str:
    """The name of the class of a module; what gralis puts around a network of the user is called by that network."""
    shown = getattr(module, "shown_as", None)
    return shown if isinstance(shown, str) else type(module).__name__


def full_name(fn: Callable[..., Any]) -> str:
    """module.qualname of a function, of the class of a callable instance, or of the function inside a partial."""
    inner = getattr(fn, "func", fn)
    named = inner if hasattr(inner, "__qualname__") else type(inner)
    return f"{named.__module__}.{named.__qualname__}"


def report_failure(culprit: str, points: Points, advice: str = "") -> AbstractContextManager[None]:
    """Re-raise an error of the user's code as a ModelError with the culprit and the points; memory errors pass."""
    return _Reported(culprit, points, advice)


class _Reported(AbstractContextManager[None]):
    """What `report_failure` returns: a class, because a generator takes longer than some models."""

    def __init__(self, culprit: str, points: Points, advice: str) -> None:
        self._culprit, self._points, self._advice = culprit, points, advice

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not isinstance(error, Exception) or isinstance(error, GralisError) or out_of_memory(error):
            return  # no error, one that is a sentence already, or one that a smaller batch may cure
        text = (str(error).strip().splitlines() or ["(no text)"])[0]
        sentence = f"{self._culprit} raised {type(error).__name__} on points of shape {shapes(self._points)}: {text}"
        raise ModelError(f"{sentence} {self._advice or _advice(self._points, text)}".rstrip()) from error


def _advice(points: Points, text: str) -> str:
    """What to do about the two mistakes that are made most often."""
    if "indices" in text and "scalar type" in text:
        return (
            "(The model looks its input up in an embedding, which takes whole numbers: give x as integers, such as "
            "x.long(), whose tokens jump from x' to x, or explain the output of the embedding with layer=...)"
        )
    return _batch_advice(points)


def _batch_advice(points: Points) -> str:
    """What to do if every input has a first axis of one, which is often the batch axis of other libraries."""
    if not all(leaf.ndim > 2 and leaf.shape[1] == 1 for leaf in leaves(points)):
        return ""
    return "(x is one input without a batch axis; if its first axis is a batch axis, give x[0].)"
