"""One row of a data frame under a scikit-learn pipeline: columns are features, whatever their type."""

from __future__ import annotations

from typing import Any, Unpack

from gralis.api.explain import explain
from gralis.api.signature import options_of_explain
from gralis.options import Choices
from gralis.results.explanation import Explanation
from gralis.targets import Target

__all__ = ["explain_row"]


@options_of_explain(without=("baseline",))
def explain_row(
    estimator: Any,
    row: Any,
    background: Any,
    *,
    target: Target | str = None,
    **options: Unpack[Choices],
) -> Explanation:
    """v(T) = mean prediction with the columns T from the row and the others from every background row: Shapley values.

    This is `explain(estimator, row, baseline=background, plan="values")`. Columns may contain text and categories:
    their entries are exchanged, never added up. The other options are those of `explain`.

    Parameters
    ----------
    estimator : object
        A fitted pipeline or estimator with `predict_proba`, `decision_function` or `predict`.
    row : data frame with one row, series, dict or array
        The row that is explained.
    background : data frame or array
        The reference rows, with the same columns. All of them are used.
    target : int, tuple, callable or str, optional
        Which output is explained, for example the number of a class. A regression needs no target.

    Returns
    -------
    Explanation
        One value per column.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> table = pd.DataFrame({"age": [30, 50], "height": [1.8, 1.8]})
    >>> tree = DecisionTreeRegressor().fit(table, [1.0, 2.0])
    >>> explain_row(tree, table.iloc[0], table).values.round(9).tolist()
    [-0.5, 0.0]
    """
    asked: dict[str, Any] = {"plan": "values", **options, "baseline": background}
    return explain(estimator, row, target=target, **asked)
