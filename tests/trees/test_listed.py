"""What needs coalition values reads all of them from the trees if there are few features."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor

import gralis
from gralis.errors import GralisError

rng = np.random.default_rng(0)
X = rng.standard_normal((200, 13))
Y = X[:, 0] * X[:, 1] + X[:, 2] * X[:, 3] * X[:, 4] + X[:, 5]
ASKED = {
    "lime": lambda e: e.lime(),
    "kernel_shap": lambda e: e.kernel_shap(),
    "order=3": lambda e: e.interactions(order=3),
    "moebius": lambda e: e.moebius(3),
    "FSII": lambda e: e.interactions(order=2, index="FSII"),
}


def explained(n: int, plan: str = "auto") -> gralis.Explanation:
    forest = RandomForestRegressor(12, max_depth=5, random_state=0).fit(X[:, :n], Y)
    options = {} if plan == "auto" else {"plan": plan, "budget": None}
    return gralis.explain(forest, X[0, :n], baseline=X[:3, :n] + 0.1, progress=False, **options)


@pytest.mark.parametrize("name", ASKED)
def test_the_same_as_by_predictions_of_all_coalitions(name: str) -> None:
    by_trees, by_rows = ASKED[name](explained(6)), ASKED[name](explained(6, "values"))
    assert by_trees.exact
    np.testing.assert_allclose(by_trees.estimate.values, by_rows.estimate.values, atol=1e-10)
    assert np.abs(by_trees.estimate.values).max() > 1e-3


@pytest.mark.parametrize("name", ASKED)
def test_too_many_features_are_refused_in_a_sentence(name: str) -> None:
    with pytest.raises(
        GralisError, match=f"{name} needs the values of coalitions.*at most 12 features, and here are 13"
    ):
        ASKED[name](explained(13))
