"""Explain a model without gradients: the predict_proba of a random forest.

`plan="values"` spends its budget on coalition values. The result holds Shapley values with their errors.
"""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier

import gralis


def main() -> gralis.Explanation:
    table = load_breast_cancer()
    columns = [name for name in table.feature_names if name.startswith("mean")]
    X = table.data[:, : len(columns)]
    forest = RandomForestClassifier(n_estimators=20, random_state=0).fit(X, table.target)

    explanation = gralis.explain(
        gralis.models.blackbox(forest.predict_proba),
        X[0],
        target=0,  # malignant
        baseline=np.median(X, axis=0),
        features=gralis.features.columns(columns),
        plan="values",
        budget=600,
    )
    print(explanation)
    return explanation


if __name__ == "__main__":
    main()
