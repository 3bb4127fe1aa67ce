"""The options of `sensitivity` and `hoeffding`, checked, and the division of the budget into replicates and rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gralis.checks import is_auto, one_of, probability, whole
from gralis.errors import BudgetError, bad

METHODS = ("auto", "quadrature", "sampling")
_REPLICATES = 16  # by default at least so many, and fewer than twice as many, so that little of the budget is unused
_ROWS = 4  # the fewest rows of a replicate


@dataclass(frozen=True)
class Settings:
    """The checked options; `owner` is the function that takes them."""

    owner: str
    method: str
    budget: int | None
    level: float
    replicates: int | None
    seed: int
    batch_size: int | None

    @classmethod
    def check(
        cls, owner: str, method: str, budget: object, level: object, replicates: object, seed: object, batch: object
    ) -> Settings:
        """Check every option, or raise the sentence that says what is allowed."""
        if budget is None and method != "quadrature":
            advice = "None, which means no limit, is allowed with method='quadrature' only."
            raise bad("budget", owner, "a whole number of model evaluations", "None", advice)
        return cls(
            owner,
            one_of(method, METHODS, "method", owner),
            None if budget is None else whole(budget, "budget", 1, owner),
            probability(level, "level", owner),
            None if replicates is None else whole(replicates, "replicates", 2, owner),
            int(np.random.SeedSequence().generate_state(1)[0]) if seed is None else whole(seed, "seed", 0, owner),
            None if is_auto(batch) else whole(batch, "batch_size", 1, owner),
        )

    def least(self, cost_of_a_row: int) -> int:
        """The fewest model evaluations that sampling needs."""
        return (self.replicates or _REPLICATES) * _ROWS * cost_of_a_row

    def split(self, cost_of_a_row: int, spent: int) -> tuple[int, int]:
        """(n_replicates, n_rows of each) for what is left of the budget; n_rows is a power of two."""
        assert self.budget is not None
        least = self.replicates or _REPLICATES
        rows = max(self.budget - spent, 0) // cost_of_a_row
        if rows < least * _ROWS:
            needed = spent + self.least(cost_of_a_row)
            before = f", and {spent} evaluations that were made before" if spent else ""
            raise BudgetError(
                f"The 'budget' parameter of {self.owner} must be at least {needed} here: {least} replicates of {_ROWS} "
                f"rows with {cost_of_a_row} model evaluations per row{before}. Got {self.budget} instead."
            )
        n_rows = 2 ** int(np.log2(rows // least))
        return self.replicates or min(rows // n_rows, 2 * least - 1), n_rows
