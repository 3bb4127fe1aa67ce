"""A small table of credit with numbers, missing values and categories, and targets that depend on them."""

from __future__ import annotations

import numpy as np
import pandas as pd


def credit(n_rows, seed=0, *, categories=True, missing=True):
    """Rows with three columns of numbers, one of zeros and ones, and two of categories."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "income": rng.normal(size=n_rows) * 3,
            "age": rng.integers(18, 70, n_rows).astype(float),
            "debt": rng.exponential(size=n_rows),
            "owner": rng.integers(0, 2, n_rows).astype(float),
        }
    )
    if categories:
        table["job"] = pd.Categorical(rng.choice(list("abcdefg"), n_rows), categories=list("abcdefg"))
        table["town"] = pd.Categorical(rng.choice(["x", "y", "z"], n_rows), categories=["x", "y", "z"])
    if missing:
        for name in ("income", "age", "job"):
            if name in table:
                table.loc[rng.random(n_rows) < 0.15, name] = np.nan
    return table


def score(table, seed=1):
    """A number per row."""
    rng = np.random.default_rng(seed)
    number = table.income.fillna(-1.0) - table.debt + 0.05 * table.age.fillna(40.0) * table.owner
    if "job" in table:
        number = number + 2.0 * table.job.isin(["a", "f"]) - table.town.isin(["y"])
    return (number + 0.1 * rng.normal(size=len(table))).to_numpy(dtype=float)


def two_classes(table):
    return (score(table) > 0).astype(int)


def three_classes(table):
    return np.digitize(score(table), [-1.0, 1.5])
