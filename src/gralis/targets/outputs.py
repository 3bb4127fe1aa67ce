"""The outputs of a model as a tensor, and in the words of error messages."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from gralis.errors import GralisError

__all__ = ["as_tensor", "kind_of", "logits_of", "position", "shape_in_rows"]


def as_tensor(outputs: object, wanted_by: str) -> Tensor:
    """The outputs as a tensor; of a dict or an object with a tensor `logits` (transformers) the logits."""
    logits = logits_of(outputs)
    if isinstance(logits, Tensor):
        return logits
    advice = "give a function as target, e.g. target=lambda outputs: outputs[0][:, 3]"
    if isinstance(outputs, Mapping):
        advice = f"give a function as target, e.g. target=lambda outputs: outputs[{next(iter(outputs), '')!r}][:, 3]"
    elif type(outputs).__module__ == "numpy":
        advice = "wrap a NumPy function with gralis.models.function or gralis.models.blackbox"
    raise GralisError(f"The model returned {kind_of(outputs)}, where {wanted_by} needs a tensor; {advice}.")


def logits_of(outputs: object) -> object:
    """The entry `logits` of a dict or an object that has one; anything else as it is.

    >>> logits_of({"logits": 3, "hidden": 4}), logits_of(5)
    (3, 5)
    """
    if isinstance(outputs, Mapping) and "logits" in outputs:
        return outputs["logits"]
    return getattr(outputs, "logits", outputs)


def kind_of(outputs: object) -> str:
    """The type of the outputs in words."""
    name = type(outputs).__name__
    if isinstance(outputs, Mapping):
        return f"a {name} with keys {', '.join(map(repr, outputs))}"
    return f"a {name} of {len(outputs)}" if isinstance(outputs, tuple | list) else f"a {name}"


def shape_in_rows(outputs: Tensor) -> str:
    """The shape in words: (rows, 21, 7, 7)."""
    return f"({', '.join(['rows', *map(str, outputs.shape[1:])])})" if outputs.ndim else "()"


def position(index: int, size: int, owner: str) -> int:
    """The index counted from the front; a negative index counts from the end, as in Python."""
    if not -size <= index < size:
        raise GralisError(f"{owner} is out of range: the model returns {size} outputs per row, 0..{size - 1}.")
    return index % size
