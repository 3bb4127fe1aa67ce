"""Errors of the user's code, told with the shapes that caused them; out of memory is not an error of the code."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from gralis.errors import GralisError, ModelError
from gralis.models.points import shapes
from gralis.models.protocol import Points

_ALLOCATION = ("out of memory", "can't allocate memory", "DefaultCPUAllocator", "RESOURCE_EXHAUSTED")  # the last: JAX


def out_of_memory(error: BaseException) -> bool:
    """Whether a smaller batch might have gone through."""
    if isinstance(error, MemoryError | torch.cuda.OutOfMemoryError):
        return True
    if type(error).__name__ == "ResourceExhaustedError":  # TensorFlow's own
        return True
    return isinstance(error, RuntimeError) and any(text in str(error) for text in _ALLOCATION)


def kind(given: object) -> str:
    """What was given, in words: 'the class Linear', 'a Linear'."""
    return f"the class {given.__name__}" if isinstance(given, type) else f"a {type(given).__name__}"


def full_name(fn: Callable[..., Any]) -> str:
    """module.qualname, of the class if the callable is an instance, of the inner function if it is a partial."""
    inner = getattr(fn, "func", fn)
    named = inner if hasattr(inner, "__qualname__") else type(inner)
    return f"{named.__module__}.{named.__qualname__}"


@contextmanager
def report_failure(culprit: str, points: Points, advice: str = "") -> Iterator[None]:
    """Re-raise an error of the user's code as a ModelError naming the culprit and the points; memory errors pass."""
    try:
        yield
    except GralisError:
        raise  # already a sentence
    except Exception as error:
        if out_of_memory(error):
            raise
        text = (str(error).strip().splitlines() or ["(no text)"])[0]
        sentence = f"{culprit} raised {type(error).__name__} on points of shape {shapes(points)}: {text}"
        raise ModelError(f"{sentence} {advice}".rstrip()) from error
