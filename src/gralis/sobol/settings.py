"""The options of `sensitivity` and `hoeffding`, checked, and how the budget becomes replicates and rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gralis.checks import whole
from gralis.errors import BudgetError, bad

METHODS = ("auto", "quadrature", "sampling")
_REPLICATES = 16  # the least that is taken by itself; up to twice as many, so that little of the budget is left over
_ROWS = 4  # the least per replicate


@dataclass(frozen=True)
class Settings:
    """`owner` is the function whose options these are."""

    owner: str
    method: str
    budget: int | None
    level: float
    replicates: int | None
    seed: int

    @classmethod
    def check(
        cls, owner: str, method: object, budget: object, level: object, replicates: object, seed: object
    ) -> Settings:
        """Every option, or the sentence that says what it may be."""
        if not isinstance(method, str) or method not in METHODS:
            raise bad("method", owner, f"one of {', '.join(map(repr, METHODS))}", repr(method))
        if budget is None and method != "quadrature":
            advice = "None, as much as it takes, goes with method='quadrature'."
            raise bad("budget", owner, "a whole number of model evaluations", "None", advice)
        if isinstance(level, bool) or not isinstance(level, float | np.floating) or not 0 < level < 1:
            raise bad("level", owner, "a number > 0 and < 1", repr(level))
        return cls(
            owner,
            method,
            None if budget is None else whole(budget, "budget", 1, owner),
            float(level),
            None if replicates is None else whole(replicates, "replicates", 2, owner),
            int(np.random.SeedSequence().generate_state(1)[0]) if seed is None else whole(seed, "seed", 0, owner),
        )

    def least(self, cost_of_a_row: int) -> int:
        """The fewest evaluations that sampling can do with."""
        return (self.replicates or _REPLICATES) * _ROWS * cost_of_a_row

    def split(self, cost_of_a_row: int, spent: int) -> tuple[int, int]:
        """(replicates, rows of each), rows a power of two, for what is left of the budget."""
        assert self.budget is not None
        least = self.replicates or _REPLICATES
        rows = max(self.budget - spent, 0) // cost_of_a_row
        if rows < least * _ROWS:
            needed = spent + self.least(cost_of_a_row)
            raise BudgetError(
                f"The 'budget' parameter of {self.owner} must be at least {needed} here: {least} replicates of {_ROWS} "
                f"rows, {cost_of_a_row} model evaluations each{f', after {spent} to look' if spent else ''}. "
                f"Got {self.budget} instead."
            )
        n_rows = 2 ** int(np.log2(rows // least))
        return self.replicates or min(rows // n_rows, 2 * least - 1), n_rows
