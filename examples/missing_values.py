"""Explain a row with a missing value: a fill-in value and an indicator column form one feature.

NaN cannot move along a ray, so gralis refuses it. Give the values that the model itself sees: the fill-in value, and a
column that is 1 where the value is missing. When both columns are grouped, the attribution of "income" includes the
effect of its value *and of its absence*.
"""

from __future__ import annotations

import numpy as np
import torch

import gralis

COLUMNS = ["age", "income", "debt"]


def represent(rows: np.ndarray, fill: np.ndarray) -> np.ndarray:
    """(n, 3) with NaN to (n, 6): the values with fill-ins, then an indicator for each column."""
    missing = np.isnan(rows)
    return np.concatenate([np.where(missing, fill, rows), missing], axis=1).astype(np.float64)


def main() -> gralis.Explanation:
    rng = np.random.default_rng(0)
    table = rng.normal([40, 3, 1], [10, 1, 0.5], (500, 3))
    table[rng.random(table.shape) < 0.1] = np.nan
    fill = np.nanmean(table, axis=0)

    def risk(z: torch.Tensor) -> torch.Tensor:  # (rows, 6) -> (rows,): a hidden income raises the risk
        age, income, debt, _, hidden, _ = z.unbind(1)
        return 0.02 * (age - 40) - 0.5 * income + debt * (1 + hidden) + 1.5 * hidden

    applicant = np.array([[31.0, np.nan, 1.8]])
    try:
        gralis.explain(risk, applicant[0])
    except gralis.GralisError as refused:
        print(refused)

    indicators = [f"{name} missing" for name in COLUMNS]
    features = gralis.features.columns(
        [*COLUMNS, *indicators], groups={name: [name, f"{name} missing"] for name in COLUMNS}
    )
    known = table[~np.isnan(table).any(axis=1)]
    explanation = gralis.explain(
        risk,
        represent(applicant, fill)[0],
        baseline=gralis.baselines.sample(represent(known, fill), n=50),
        features=features,
        budget=2000,
    )
    print(explanation)
    return explanation


if __name__ == "__main__":
    main()
