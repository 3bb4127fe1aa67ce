"""An explanation in words: the table that `print` shows, and the sentences below it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gralis.errors import GralisError
from gralis.results.both_answers import BothAnswers, conflict_sentence
from gralis.results.certified import Certified
from gralis.results.feature_table import feature_table
from gralis.results.tables import doubt_lines

__all__ = ["Printed"]


class Printed(Certified, BothAnswers):
    """The part of an `Explanation` that puts it into words. Every view takes its sentences from here."""

    provenance: Mapping[str, Any]
    complete: bool
    reached: bool | None

    @property
    @abstractmethod
    def can_grow(self) -> bool:
        """Whether `extend` can add replicates."""

    @property
    def headline(self) -> str:
        """What the values are: the number of features, the kernel if one enters, and the estimator."""
        kernel = f"{self.kernel}, " if self.design.estimator.has_kernel else ""
        jumping = int(self.features.discrete.sum())
        discrete = f" ({jumping} discrete)" if jumping else ""
        name = self.provenance.get("class")
        return f"{self.n_features} features{discrete}, {kernel}{self.method}{f' of class {name!r}' if name else ''}"

    @property
    def notes(self) -> tuple[str, ...]:
        """The sentences below a table: the facts, then the doubts."""
        return (*self.facts, *doubt_lines(self.doubts))

    @property
    def facts(self) -> tuple[str, ...]:
        """What was decided for the user, opposite signs, the sums, the cost, and whether the run was completed."""
        notes = [
            *self.choices,
            *([conflict_sentence(self.sign_conflicts, float(abs(self.values).max()))] if self.sign_conflicts else []),
        ]
        notes += [f"{self.sum_sentence}; {self.residual_sentence}", self.cost_sentence]
        if self.table is not None:
            notes.append(f"compared with {self.provenance['baseline']}")
        if not self.complete:
            notes.append("the run stopped before the plan was done; all numbers are from the rays evaluated so far")
        if self.reached is not None:
            notes.append(self.tolerance_sentence)
        if self.provenance.get("paced"):
            notes.append(self.pace_sentence)
        return tuple(notes)

    @property
    def choices(self) -> tuple[str, ...]:
        """What was decided for the user, in sentences: a batch axis left out, a picture cut into regions."""
        return tuple(f"note: {sentence}" for sentence in self.provenance.get("choices", ()))

    @property
    def sum_sentence(self) -> str:
        """What the values sum to, and what the Shapley values beside them sum to, which is always the difference."""
        own = "phi" if self.design.estimator.has_kernel else "the Shapley values"
        beside = "" if self.shapley_beside is None else f", of Shapley {self.shapley_beside.values.sum():.6g}"
        return f"sum of {own} {self.values.sum():.6g}{beside}"

    @property
    def residual_sentence(self) -> str:
        """The residual and its split, or the residual alone where coalition values are missing."""
        try:
            return repr(self.residual)
        except (GralisError, np.linalg.LinAlgError):  # the second: rows from a file that cannot be fitted
            return f"residual F(x) - F(x') - sum = {self.delta - self.values.sum():.6g}"

    @property
    def tolerance_sentence(self) -> str:
        """Whether the tolerance was reached, and if not, which budget would reach it."""
        tolerance, atol, level = (float(self.provenance[name]) for name in ("tolerance", "atol", "level"))
        if self.reached:
            return f"tolerance {tolerance:g} reached"
        sentence = f"tolerance {tolerance:g} not reached within the budget"
        goal = max(tolerance, atol / abs(self.delta)) if self.delta else 0.0
        if not goal or np.isnan(self.stderr).any():
            return sentence
        unit = "gradients" if self.ledger.has_points or self.cost.n_gradients else "forwards"
        return f"{sentence}: about {self.budget_for(goal, level):.2g} {unit} would do it"

    @property
    def pace_sentence(self) -> str:
        """Why the default budget of a slow model was cut, and how to go on."""
        seconds, tolerance = (float(self.provenance[name]) for name in ("max_seconds", "tolerance"))
        limits = f"a tolerance of {100 * tolerance:g}% or {seconds:g} s"
        go_on = "; explanation.extend(budget) goes on" if self.can_grow else ""
        return f"the model is slow, so the default budget stops at {limits}{go_on}, and budget=1024 takes all"

    @property
    def cost_sentence(self) -> str:
        """What the explanation cost."""
        spent = f"{self.cost.n_gradients} gradients on {self.cost.n_rays} rays, {self.cost.n_forwards} forwards"
        spent = spent if self.cost.n_forwards else "no call of the model"
        return f"{spent}, {self.cost.seconds:.1f} s, plan {self.plan.get('name', 'unknown')}"

    def __repr__(self) -> str:
        table = feature_table(self)
        width = max(7, *(len(row.name) for row in table.rows)) if table.rows else 7
        ends = f"F(x) = {self.f_x:.6g}   F(x') = {self.f_baseline:.6g}   difference {self.delta:.6g}"
        lines = [f"GRALIS explanation, {self.headline}", ends, "", _line("feature", width, table.headings)]
        lines += [_line(row.name, width, row.cells, row.mark) for row in table.rows]
        return "\n".join([*lines, "", *self.notes])


def _line(name: str, width: int, cells: Sequence[str], mark: str = "") -> str:
    """A row of the table: values in wide columns, half-widths in narrow ones."""
    columns = (f"{cell:>{9 if place % 2 else 11}}" for place, cell in enumerate(cells))
    return "  ".join([f"{name:<{width}}", *columns, *([mark] if mark else [])]).rstrip()
