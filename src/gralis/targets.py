"""How a model's output becomes one number per row: outputs -> (rows,)."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import torch
from torch import Tensor

from gralis.errors import GralisError, bad

#: None: the output is already one number per row; int: outputs[:, k]; tuple: outputs[:, i, j, ...];
#: callable: receives exactly what the model returned and gives (rows,).
Target: TypeAlias = int | tuple[int, ...] | Callable[[Any], Tensor] | None
#: Several at once: a list of targets, or "all" for every output of a classifier.
Targets: TypeAlias = list[Target] | list[int] | Literal["all"]


class OnTensors:
    """A function of tensors, also where the model's own outputs are arrays of another framework."""


@dataclass(frozen=True, repr=False)
class Readout(OnTensors):
    """A named function of the logits (rows, classes) -> (rows,); made by the functions below.

    The formula is a module-level function, so that a readout can be pickled and compared.
    """

    formula: Callable[..., Tensor]
    k: int
    against: int | None = None

    def __call__(self, outputs: Any) -> Tensor:
        logits = _tensor(outputs, repr(self))
        if logits.ndim != 2:
            raise GralisError(f"{self!r} needs outputs of shape (rows, classes). Got {_rows_by(logits)} instead.")
        k = _position(self.k, logits.shape[1], repr(self))
        if self.against is None:
            return self.formula(logits, k)
        against = _position(self.against, logits.shape[1], repr(self))
        if against == k:
            raise GralisError(f"{self!r} compares class {k} with itself; choose two different classes.")
        return self.formula(logits, k, against)

    def __repr__(self) -> str:
        against = "" if self.against is None else f", against={self.against}"
        return f"{self.formula.__name__.lstrip('_')}({self.k}{against})"


def logit(k: int) -> Readout:
    """z_k, the raw output of class k.

    >>> logit(1)(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor([2., 4.])
    """
    return Readout(_logit, _index(k, "logit", "k"))


def probability(k: int) -> Readout:
    """exp(z_k) / sum_j exp(z_j), the softmax over axis 1.

    >>> probability(0)(torch.tensor([[0.0, 0.0]]))
    tensor([0.5000])
    """
    return Readout(_probability, _index(k, "probability", "k"))


def log_odds(k: int) -> Readout:
    """log p_k / (1 - p_k) = z_k - log sum_{j != k} exp(z_j); no rounding to 0 or 1 on the way.

    >>> log_odds(0)(torch.tensor([[200.0, 0.0]]))
    tensor([200.])
    """
    return Readout(_log_odds, _index(k, "log_odds", "k"))


def margin(k: int, against: int | None = None) -> Readout:
    """z_k - max_{j != k} z_j, or z_k - z_against.

    >>> margin(0)(torch.tensor([[5.0, 1.0, 3.0]])), margin(0, against=1)(torch.tensor([[5.0, 1.0, 3.0]]))
    (tensor([2.]), tensor([4.]))
    """
    other = None if against is None else _index(against, "margin", "against")
    return Readout(_margin, _index(k, "margin", "k"), other)


def _logit(logits: Tensor, k: int) -> Tensor:
    return logits[:, k]


def _probability(logits: Tensor, k: int) -> Tensor:
    _others(logits, k, "probability")  # the softmax of a single output is the constant 1
    return torch.softmax(logits, dim=1)[:, k]


def _log_odds(logits: Tensor, k: int) -> Tensor:
    return logits[:, k] - torch.logsumexp(_others(logits, k, "log_odds"), dim=1)


def _margin(logits: Tensor, k: int, against: int | None = None) -> Tensor:
    rival = _others(logits, k, "margin").amax(dim=1) if against is None else logits[:, against]
    return logits[:, k] - rival


def _others(logits: Tensor, k: int, owner: str) -> Tensor:
    """The logits of every class but k, shape (rows, classes - 1)."""
    if logits.shape[1] < 2:
        raise GralisError(
            f"{owner} needs at least two classes, but the model returns one output per row; "
            "leave target=None, or give a function such as lambda z: z[:, 0].sigmoid()."
        )
    return torch.cat([logits[:, :k], logits[:, k + 1 :]], dim=1)


def check(target: object, owner: str = "explain") -> Target:
    """The target itself, integers made plain, or a sentence saying what a target may be."""
    if target is None or callable(target):
        return target
    if isinstance(target, tuple) and target:
        return tuple(_index(i, owner, "target") for i in target)
    return _index(target, owner, "target")


def listed(target: Target | Targets, owner: str = "explain") -> tuple[Target, ...]:
    """The targets one by one; none of them for "all", which only the outputs can tell.

    >>> listed(3), listed([0, 3]), listed("all")
    ((3,), (0, 3), ())
    """
    if isinstance(target, str) and target == "all":
        return ()
    if not isinstance(target, list):
        return (check(target, owner),)
    found = tuple(check(one, owner) for one in target)
    if not found or len(set(found)) < len(found):
        raise bad("target", owner, "a list of different targets", repr(target))
    return found


def total(outputs: Any) -> Tensor:
    """The sum of all outputs of a row: depends on whatever any of them depends on."""
    return _tensor(outputs, "target='all'").flatten(1).sum(1)


def select(outputs: object, target: Target, owner: str = "explain") -> Tensor:
    """One number per row, (rows,), from whatever the model returned; the graph is kept.

    >>> select(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), -1)
    tensor([2., 4.])
    """
    target = check(target, owner)
    if callable(target):
        return _called(outputs, target)
    tensor = _tensor(outputs, f"target={target!r}")
    if tensor.ndim == 0:
        raise GralisError("The model returns a single number for the whole batch; it must return one per row.")
    if target is None:
        return _scalar(tensor)
    if isinstance(target, tuple):
        return _indexed(tensor, target)
    if tensor.ndim == 1:
        raise GralisError(f"The model returns one number per row, so target={target} has no choice; use target=None.")
    if tensor.ndim > 2:
        raise GralisError(
            f"target={target} does not give one number per row: the model returns outputs of shape "
            f"{_rows_by(tensor)}; use a tuple of {tensor.ndim - 1} indices, or a function of the outputs."
        )
    return _indexed(tensor, (target,))


def describe(target: Target) -> str:
    """The target in words, for provenance.

    >>> describe(None), describe(3), describe((1, 0)), describe(margin(2, against=5))
    ('output', 'output[3]', 'output[1, 0]', 'margin(2, against=5)')
    """
    if target is None:
        return "output"
    if isinstance(target, tuple):
        return f"output[{', '.join(map(str, target))}]"
    if not callable(target):
        return f"output[{target}]"
    return repr(target) if isinstance(target, Readout) else str(getattr(target, "__qualname__", repr(target)))


_INDICES = re.compile(r"(?:output\[)?(-?\d+(?:\s*,\s*-?\d+)*)\]?")
_NAMED = re.compile(r"(logit|probability|log_odds|margin)\((-?\d+)(?:,\s*(?:against=)?(-?\d+))?\)")


def parse(text: str) -> Target:
    """The inverse of `describe`; a bare "3" or "1, 0" will do. A function cannot be found again by its name.

    >>> parse("output"), parse("3"), parse("output[1, 0]"), parse("margin(2, against=5)")
    (None, 3, (1, 0), margin(2, against=5))
    """
    text = text.strip()
    if text == "output":
        return None
    if found := _INDICES.fullmatch(text):
        indices = tuple(int(part) for part in found[1].split(","))
        return indices if len(indices) > 1 else indices[0]
    if (found := _NAMED.fullmatch(text)) and (found[3] is None or found[1] == "margin"):
        readout = {"logit": logit, "probability": probability, "log_odds": log_odds, "margin": margin}[found[1]]
        return readout(int(found[2])) if found[3] is None else margin(int(found[2]), int(found[3]))
    allowed = "'output', an index such as '3' or '1,0', or logit(k), probability(k), log_odds(k), margin(k, against=j)"
    raise bad("target", "targets.parse", allowed, repr(text))


def _scalar(outputs: Tensor) -> Tensor:
    if outputs.ndim == 1:
        return outputs
    if outputs.ndim == 2 and outputs.shape[1] == 1:
        return outputs[:, 0]
    if outputs.ndim == 2:
        n = outputs.shape[1]
        what, choice = f"{n} outputs per row", f"target=k (0..{n - 1}), a tuple"
    else:
        what, choice = f"outputs of shape {_rows_by(outputs)}", f"a tuple of {outputs.ndim - 1} indices"
    raise GralisError(f"The model returns {what}; choose one with {choice}, or a function from gralis.targets.")


def _indexed(outputs: Tensor, indices: tuple[int, ...]) -> Tensor:
    if len(indices) != outputs.ndim - 1:
        raise GralisError(
            f"target={indices} has {len(indices)} indices, but outputs of shape {_rows_by(outputs)} need "
            f"{outputs.ndim - 1} to give one number per row."
        )
    for index, size in zip(indices, outputs.shape[1:], strict=True):
        _position(index, size, f"target={indices[0] if len(indices) == 1 else indices}")
    values = outputs
    for index in indices:
        values = values[:, index]
    return values


def _called(outputs: object, target: Callable[[Any], Tensor]) -> Tensor:
    values: object = target(outputs)
    rows = outputs.shape[0] if isinstance(outputs, Tensor) and outputs.ndim else None
    if isinstance(values, Tensor) and values.ndim == 1 and rows in (None, values.shape[0]):
        return values
    got = f"shape {tuple(values.shape)}" if isinstance(values, Tensor) else f"a {type(values).__name__}"
    given = f"outputs of shape {tuple(outputs.shape)}" if isinstance(outputs, Tensor) else f"{_kind(outputs)} outputs"
    wanted = "(rows,)" if rows is None else f"({rows},)"
    raise GralisError(f"The target {describe(target)} must return a tensor {wanted} from {given}. Got {got} instead.")


def _tensor(outputs: object, wanted_by: str) -> Tensor:
    """The outputs as a tensor; an object with a `.logits` tensor (HuggingFace) counts as its logits."""
    if isinstance(outputs, Tensor):
        return outputs
    logits = getattr(outputs, "logits", None)
    if isinstance(logits, Tensor):
        return logits
    advice = "give a function as target, e.g. target=lambda outputs: outputs[0][:, 3]"
    if isinstance(outputs, Mapping):
        advice = f"give a function as target, e.g. target=lambda outputs: outputs[{next(iter(outputs), '')!r}][:, 3]"
    elif type(outputs).__module__ == "numpy":
        advice = "wrap a NumPy function with gralis.models.function or gralis.models.blackbox"
    raise GralisError(f"The model returned {_kind(outputs)}, where {wanted_by} needs a tensor; {advice}.")


def _kind(outputs: object) -> str:
    name = type(outputs).__name__
    if isinstance(outputs, Mapping):
        return f"a {name} with keys {', '.join(map(repr, outputs))}"
    return f"a {name} of {len(outputs)}" if isinstance(outputs, tuple | list) else f"a {name}"


def _rows_by(outputs: Tensor) -> str:
    """The shape in words: (rows, 21, 7, 7)."""
    return f"({', '.join(['rows', *map(str, outputs.shape[1:])])})" if outputs.ndim else "()"


def _index(value: object, owner: str, parameter: str) -> int:
    allowed = "an int"
    if parameter == "target":
        allowed = "None, an int, a tuple of ints, or a function of the outputs"
        allowed += ", or a list of these, or 'all'" if owner == "explain" else ""
    try:
        if isinstance(value, bool):
            raise TypeError
        return operator.index(value)  # type: ignore[arg-type]  # also numpy and torch integers
    except TypeError:
        raise bad(parameter, owner, allowed, repr(value)) from None


def _position(index: int, size: int, owner: str) -> int:
    """The index counted from the front; negative ones count from the end, as in Python."""
    if not -size <= index < size:
        raise GralisError(f"{owner} is out of range: the model returns {size} outputs per row, 0..{size - 1}.")
    return index % size
