"""Named functions of the logits, and targets in words."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from gralis.errors import GralisError, bad
from gralis.targets.outputs import as_tensor, position, shape_in_rows
from gralis.targets.target import OnTensors, Target, as_index

__all__ = ["Readout", "describe", "log_odds", "logit", "margin", "parse", "probability"]


@dataclass(frozen=True, repr=False)
class Readout(OnTensors):
    """A named function of the logits, (rows, classes) -> (rows,). `logit`, `probability` and others make it.

    Attributes
    ----------
    formula : callable
        The function, defined in a module, so that a readout can be pickled and compared.
    k : int
        The class that is explained.
    against : int or None
        The class with which it is compared.
    """

    formula: Callable[..., Tensor]
    k: int
    against: int | None = None

    def __call__(self, outputs: Any) -> Tensor:
        """The number of every row, from the outputs of the model."""
        logits = as_tensor(outputs, repr(self))
        if logits.ndim != 2:
            raise GralisError(f"{self!r} needs outputs of shape (rows, classes). Got {shape_in_rows(logits)} instead.")
        k = position(self.k, logits.shape[1], repr(self))
        if self.against is None:
            return self.formula(logits, k)
        against = position(self.against, logits.shape[1], repr(self))
        if against == k:
            raise GralisError(f"{self!r} compares class {k} with itself; choose two different classes.")
        return self.formula(logits, k, against)

    def __repr__(self) -> str:
        against = "" if self.against is None else f", against={self.against}"
        return f"{self.formula.__name__.lstrip('_')}({self.k}{against})"


def logit(k: int) -> Readout:
    """z_k, the raw output of class k.

    Parameters
    ----------
    k : int
        The class; a negative number counts from the end.

    Returns
    -------
    Readout

    Examples
    --------
    >>> logit(1)(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor([2., 4.])
    """
    return Readout(_logit, as_index(k, "logit", "k"))


def probability(k: int) -> Readout:
    """exp(z_k) / sum_j exp(z_j), the softmax over axis 1.

    Parameters
    ----------
    k : int
        The class; a negative number counts from the end.

    Returns
    -------
    Readout

    Examples
    --------
    >>> probability(0)(torch.tensor([[0.0, 0.0]]))
    tensor([0.5000])
    """
    return Readout(_probability, as_index(k, "probability", "k"))


def log_odds(k: int) -> Readout:
    """log p_k / (1 - p_k) = z_k - log sum_{j != k} exp(z_j), computed without rounding p_k to 0 or 1.

    Parameters
    ----------
    k : int
        The class; a negative number counts from the end.

    Returns
    -------
    Readout

    Examples
    --------
    >>> log_odds(0)(torch.tensor([[200.0, 0.0]]))
    tensor([200.])
    """
    return Readout(_log_odds, as_index(k, "log_odds", "k"))


def margin(k: int, against: int | None = None) -> Readout:
    """z_k - max_{j != k} z_j, or z_k - z_against.

    Parameters
    ----------
    k : int
        The class; a negative number counts from the end.
    against : int, optional
        The class with which it is compared; by default the strongest other class of each row.

    Returns
    -------
    Readout

    Examples
    --------
    >>> margin(0)(torch.tensor([[5.0, 1.0, 3.0]])), margin(0, against=1)(torch.tensor([[5.0, 1.0, 3.0]]))
    (tensor([2.]), tensor([4.]))
    """
    other = None if against is None else as_index(against, "margin", "against")
    return Readout(_margin, as_index(k, "margin", "k"), other)


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
    """The logits of every class except k, (rows, classes - 1)."""
    if logits.shape[1] < 2:
        raise GralisError(
            f"{owner} needs at least two classes, but the model returns one output per row; "
            "leave target=None, or give a function such as lambda z: z[:, 0].sigmoid()."
        )
    return torch.cat([logits[:, :k], logits[:, k + 1 :]], dim=1)


def describe(target: Target) -> str:
    """The target in words, as the provenance of a result holds it.

    Parameters
    ----------
    target : Target
        None, an index, a tuple of indices, or a function.

    Returns
    -------
    str

    Examples
    --------
    >>> describe(None), describe(3), describe((1, 0)), describe(margin(2, against=5))
    ('output', 'output[3]', 'output[1, 0]', 'margin(2, against=5)')
    """
    if target is None:
        return "output"
    if isinstance(target, tuple):
        return f"output[{', '.join(map(str, target))}]"
    if not callable(target):
        return f"output[{target}]"
    if isinstance(target, functools.partial):
        return f"partial of {describe(target.func)}"
    name = None if isinstance(target, Readout) else getattr(target, "__qualname__", None)
    return str(name or re.sub(r" at 0x[0-9a-f]+", "", repr(target)))  # an address differs from process to process


_READOUTS = {"logit": logit, "probability": probability, "log_odds": log_odds, "margin": margin}
_INDICES = re.compile(r"(?:output\[)?(-?\d+(?:\s*,\s*-?\d+)*)\]?")
_NAMED = re.compile(rf"({'|'.join(_READOUTS)})\((-?\d+)(?:,\s*(?:against=)?(-?\d+))?\)")


def parse(text: str) -> Target:
    """The target that `describe` wrote; functions other than those of `gralis.targets` cannot be read back.

    Parameters
    ----------
    text : str
        What `describe` returns, or bare indices: "3" or "1, 0".

    Returns
    -------
    Target

    Examples
    --------
    >>> parse("output"), parse("3"), parse("output[1, 0]"), parse("margin(2, against=5)")
    (None, 3, (1, 0), margin(2, against=5))
    """
    allowed = "'output', an index such as '3' or '1,0', or logit(k), probability(k), log_odds(k), margin(k, against=j)"
    if not isinstance(text, str):
        raise bad("target", "targets.parse", allowed, repr(text))
    text = text.strip()
    if text == "output":
        return None
    if match := _INDICES.fullmatch(text):
        indices = tuple(int(part) for part in match[1].split(","))
        return indices if len(indices) > 1 else indices[0]
    if (match := _NAMED.fullmatch(text)) and (match[3] is None or match[1] == "margin"):
        name, *numbers = match.groups()
        return _READOUTS[name](*(int(number) for number in numbers if number is not None))
    raise bad("target", "targets.parse", allowed, repr(text))
