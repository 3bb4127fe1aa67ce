"""One row of a data frame under a scikit-learn pipeline: columns are features, whatever their type."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np

from gralis.api.explain import prepare
from gralis.api.signature import options_of_explain
from gralis.errors import GralisError, bad
from gralis.features import columns
from gralis.models import blackbox
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
    target: Target = None,
    **options: Unpack[Choices],
) -> Explanation:
    """v(T) = mean prediction with the columns T from the row and the others from every background row: Shapley values.

    Columns may contain text and categories: their entries are exchanged, never added up. The other options are those
    of `explain`, except that the default of `plan` is "values", which gives Shapley values.

    Parameters
    ----------
    estimator : object
        A fitted pipeline or estimator with `predict_proba` or, failing that, `predict`.
    row : data frame with one row, or series
        The row that is explained.
    background : data frame
        The reference rows, with the same columns. All of them are used.
    target : int, tuple or callable, optional
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
    frame = row.to_frame().T if getattr(row, "ndim", 2) == 1 else row
    names = list(getattr(background, "columns", ()))
    if not names or list(getattr(frame, "columns", ())) != names or len(frame) != 1 or not len(background):
        raise bad("row", "explain_row", "one row with the columns of the background", repr(list(frame.columns)))
    frame = frame.astype(background.dtypes.to_dict())
    predict = getattr(estimator, "predict_proba", None) or getattr(estimator, "predict", None)
    if predict is None:
        raise GralisError(f"A {type(estimator).__name__} has neither predict_proba nor predict, so it has no output.")

    def value(switches: Any) -> Any:
        """The mean prediction of every coalition, a row of zeros and ones."""
        import pandas as pd

        mixed = pd.concat([background] * len(switches), ignore_index=True)
        from_row = np.repeat(np.asarray(switches) > 0.5, len(background), axis=0)
        for k, name in enumerate(names):
            mixed.loc[from_row[:, k], name] = frame[name].iloc[0]
        predictions = np.asarray(predict(mixed), dtype=np.float64)
        return predictions.reshape(len(switches), len(background), *predictions.shape[1:]).mean(1)

    features = columns([str(name) for name in names])
    switched = {"plan": "values", "features": features, **options, "baseline": 0.0}
    return prepare(blackbox(value, target), np.ones(len(names)), switched, "explain_row").result()
