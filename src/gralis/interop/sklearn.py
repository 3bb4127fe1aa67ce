"""One row of a table under a scikit-learn pipeline: columns as features, whatever their type."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np

from gralis.api.explain import prepare
from gralis.errors import GralisError, bad
from gralis.features import columns
from gralis.models import blackbox
from gralis.options import Choices
from gralis.results.explanation import Explanation
from gralis.targets import Target


def explain_row(
    estimator: Any,
    row: Any,
    background: Any,
    *,
    target: Target = None,
    **options: Unpack[Choices],
) -> Explanation:
    """Shapley values (by default) of a row of a data frame: v(T) = mean prediction with T from the row, the rest from
    every row of the background. Text and categories are fine: columns are only ever exchanged, never added up.

    `estimator` has predict_proba (give target=class number) or predict; `row` is a one-row data frame or a series,
    `background` a data frame with the same columns, all of whose rows are used.
    """
    frame = row.to_frame().T if getattr(row, "ndim", 2) == 1 else row
    names = list(getattr(background, "columns", ()))
    if not names or list(getattr(frame, "columns", ())) != names or len(frame) != 1 or not len(background):
        raise bad("row", "explain_row", "one row with the columns of the background", repr(list(frame.columns)))
    frame = frame.astype(background.dtypes.to_dict())
    predict = getattr(estimator, "predict_proba", None) or getattr(estimator, "predict", None)
    if predict is None:
        raise GralisError(f"A {type(estimator).__name__} has neither predict_proba nor predict, so nothing to explain.")

    def value(switches: Any) -> Any:
        """The mean prediction of every coalition, a row of zeros and ones."""
        import pandas as pd

        everyone = pd.concat([background] * len(switches), ignore_index=True)
        from_row = np.repeat(np.asarray(switches) > 0.5, len(background), axis=0)
        for k, name in enumerate(names):
            everyone.loc[from_row[:, k], name] = frame[name].iloc[0]
        found = np.asarray(predict(everyone), dtype=np.float64)
        return found.reshape(len(switches), len(background), *found.shape[1:]).mean(1)

    model = blackbox(value, target)
    own = {"plan": "values", "features": columns([str(name) for name in names]), **options, "baseline": 0.0}
    return prepare(model, np.ones(len(names)), own, "explain_row").result()
