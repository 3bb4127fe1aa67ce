"""The comparison of two runs of one explanation, hash by hash and number by number."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gralis.results.explanation import Explanation

__all__ = ["Difference", "Replay", "compared"]

#: How far two runs of one network may differ by rounding alone, relative to the largest number.
_ROUNDING = {"float64": 1e-9, "float32": 1e-4}
_COARSE = 2e-2  # for types of 16 bits
_HASHED = {"x": "input", "baseline": "baseline", "features": "features", "model": "model"}


@dataclass(frozen=True)
class Difference:
    """A number that differs from the saved one.

    Attributes
    ----------
    name : str
        What the number is.
    then, now : float
        The saved number and the new one.
    tolerance : float
        The largest absolute deviation that would count as equal.
    """

    name: str
    then: float
    now: float
    tolerance: float

    def __str__(self) -> str:
        gap = abs(self.now - self.then)
        numbers = f"{self.name} was {self.then:.6g} and is {self.now:.6g}"
        return f"{numbers} (off by {gap:.2g}, {self.tolerance:.2g} allowed)"


@dataclass(frozen=True, repr=False, eq=False)
class Replay:
    """The comparison of an explanation with the one that was computed again; it prints as a sentence.

    Attributes
    ----------
    explanation : Explanation
        The new explanation.
    hashes : tuple of str
        Which hashes differ: "input", "baseline", "features", "model".
    differences : tuple of Difference
        The numbers that deviate by more than their tolerance, the worst first.
    n_numbers : int
        How many numbers were compared.
    tolerance : float
        The largest absolute deviation of a value that counts as equal.
    largest : float
        The largest deviation of a value.
    notes : tuple of str
        Sentences about how the comparison was made, and about versions that differ.
    """

    explanation: Explanation
    hashes: tuple[str, ...]
    differences: tuple[Difference, ...]
    n_numbers: int
    tolerance: float
    largest: float
    notes: tuple[str, ...] = ()

    @property
    def same(self) -> bool:
        """Whether every hash equals the saved one and every number agrees within its tolerance."""
        return not self.hashes and not self.differences

    def to_dict(self) -> dict[str, Any]:
        """The verdict in plain values, ready for JSON."""
        rows = [{"name": d.name, "then": d.then, "now": d.now, "tolerance": d.tolerance} for d in self.differences]
        return {
            "same": self.same,
            "hashes": list(self.hashes),
            "differences": rows,
            "n_numbers": self.n_numbers,
            "tolerance": self.tolerance,
            "largest": self.largest,
            "notes": list(self.notes),
        }

    def __repr__(self) -> str:
        n = self.n_numbers
        close = f"{n} numbers agree within {self.tolerance:.2g} (the largest deviation is {self.largest:.2g})"
        parts = []
        if self.hashes:
            parts.append(f"the hash of the {_listed(self.hashes)} differs")
        if self.differences:
            parts.append(f"{len(self.differences)} of {n} numbers differ, most of all: {self.differences[0]}")
        if self.same:
            parts.append(f"all {close}, and so do the hashes of input, baseline, features and model")
        elif not self.differences:
            parts.append(f"though all {close}")
        notes = "".join(f" {note}" for note in self.notes)
        return f"{'Same' if self.same else 'Different'}: {', '.join(parts)}.{notes}"


def compared(
    e: Explanation,
    again: Explanation,
    hashes: Mapping[str, str],
    tolerance: float | None,
    notes: tuple[str, ...],
    layer_gap: float,
) -> Replay:
    """Compare an explanation with the one that was computed again.

    Parameters
    ----------
    e : Explanation
        The saved explanation.
    again : Explanation
        The new one.
    hashes : mapping
        The hashes of the new run.
    tolerance : float or None
        The relative tolerance; None allows for rounding.
    notes : tuple of str
        Sentences to add.
    layer_gap : float
        How far the output of the layer deviates, if a layer was explained; else 0.

    Returns
    -------
    Replay
    """
    relative = tolerance
    if relative is None:
        relative = max(_ROUNDING.get(name, _COARSE) for name in str(e.provenance["dtype"]).split(", "))
    then, now = (np.concatenate([[run.f_x], run.f_baselines, run.values]) for run in (e, again))
    allowed = relative * float(np.nanmax(np.abs(then), initial=0.0))
    gaps = np.where(np.isnan(then) & np.isnan(now), 0.0, np.abs(now - then))
    wrong = np.flatnonzero(~(gaps <= allowed))
    worst = wrong[np.argsort(-np.nan_to_num(gaps[wrong], nan=np.inf), kind="stable")]
    differences = [Difference(_name(e, int(i)), float(then[i]), float(now[i]), allowed) for i in worst]
    in_vain = e.provenance["max_seconds"] is not None or e.provenance["on_interrupt"] == "return"
    more = again.cost.n_gradients - e.cost.n_gradients
    if more > 0 or (more < 0 and not in_vain):  # a run that was stopped may have spent some in vain
        differences.append(Difference("the number of gradients", e.cost.n_gradients, again.cost.n_gradients, 0.0))
    scale = float(np.abs(e.endpoints.x[0]).max())
    if layer_gap > relative * scale:
        differences.append(Difference("the layer's output", 0.0, layer_gap, relative * scale))
    versions = [
        f"{name} {e.provenance[name]} then, {again.provenance[name]} now"
        for name in ("gralis", "torch", "numpy")
        if e.provenance[name] != again.provenance[name]
    ]
    return Replay(
        explanation=again,
        hashes=tuple(word for key, word in _HASHED.items() if hashes[key] != e.provenance["hashes"][key]),
        differences=tuple(differences),
        n_numbers=len(then),
        tolerance=allowed,
        largest=float(np.nanmax(gaps)),
        notes=(*notes, *([f"({'; '.join(versions)}.)"] if versions else [])),
    )


def _name(e: Explanation, index: int) -> str:
    n_baselines = len(e.f_baselines)
    if index == 0:
        return "F(x)"
    if index <= n_baselines:
        return "F(x')" if n_baselines == 1 else f"F(x') of baseline {index - 1}"
    return f"phi of {e.names[index - 1 - n_baselines]}"


def _listed(words: tuple[str, ...]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
