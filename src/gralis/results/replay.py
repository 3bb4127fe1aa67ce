"""Same or different: two runs of one explanation compared, hash by hash and number by number."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gralis.results.explanation import Explanation

#: How far two runs of one network may lie apart by rounding alone, relative to the largest number.
_ROUNDING = {"float64": 1e-9, "float32": 1e-4}
_COARSE = 2e-2  # for 16 bits
_HASHED = {"x": "input", "baseline": "baseline", "features": "features", "model": "model"}


@dataclass(frozen=True)
class Difference:
    """A number that is not what it was."""

    name: str
    then: float
    now: float
    tolerance: float

    def __str__(self) -> str:
        apart = abs(self.now - self.then)
        numbers = f"{self.name} was {self.then:.6g} and is {self.now:.6g}"
        return f"{numbers} (off by {apart:.2g}, {self.tolerance:.2g} allowed)"


@dataclass(frozen=True, repr=False, eq=False)
class Replay:
    """What came out when an explanation was computed again; prints as a sentence."""

    explanation: Explanation  # the new one
    hashes: tuple[str, ...]  # which differ, of input, baseline, features and model
    differences: tuple[Difference, ...]  # numbers beyond their tolerance, the worst first
    n_numbers: int  # how many were compared
    tolerance: float  # absolute, for every value
    largest: float  # the largest deviation of a value
    notes: tuple[str, ...] = ()

    @property
    def same(self) -> bool:
        """Whether every number and every hash is what it was."""
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
    found: Explanation,
    hashes: Mapping[str, str],
    tolerance: float | None,
    notes: tuple[str, ...],
    apart: float,
) -> Replay:
    """The verdict on an explanation `e` that was computed again as `found`, with these hashes."""
    relative = tolerance
    if relative is None:
        relative = max(_ROUNDING.get(name, _COARSE) for name in str(e.provenance["dtype"]).split(", "))
    then, now = (np.concatenate([[run.f_x], run.f_baselines, run.values]) for run in (e, found))
    allowed = relative * float(np.nanmax(np.abs(then), initial=0.0))
    gaps = np.where(np.isnan(then) & np.isnan(now), 0.0, np.abs(now - then))
    wrong = np.flatnonzero(~(gaps <= allowed))
    worst = wrong[np.argsort(-np.nan_to_num(gaps[wrong], nan=np.inf), kind="stable")]
    differences = [Difference(_name(e, int(i)), float(then[i]), float(now[i]), allowed) for i in worst]
    if found.cost.n_gradients != e.cost.n_gradients:
        differences.append(Difference("the number of gradients", e.cost.n_gradients, found.cost.n_gradients, 0.0))
    scale = float(np.abs(e.endpoints.x[0]).max())
    if apart > relative * scale:
        differences.append(Difference("the layer's output", 0.0, apart, relative * scale))
    versions = [
        f"{name} {e.provenance[name]} then, {found.provenance[name]} now"
        for name in ("gralis", "torch", "numpy")
        if e.provenance[name] != found.provenance[name]
    ]
    return Replay(
        explanation=found,
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
