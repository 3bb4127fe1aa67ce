"""An explanation as a `shap.Explanation`, which shap's plots draw."""

from __future__ import annotations

from typing import Any

import numpy as np

from gralis.checks import flag
from gralis.errors import GralisError
from gralis.results.explanation import Explanation

__all__ = ["to_shap"]


def to_shap(explanation: Explanation, *, residual: bool = False) -> Any:
    """`shap.Explanation` with phi as values, F(x') as base value and the values of the features as data.

    GRALIS values need not sum to F(x) - F(x'), so shap's waterfall plot may end beside F(x).

    Parameters
    ----------
    explanation : Explanation
        The explanation to convert.
    residual : bool, default=False
        Whether to add F(x) - F(x') - sum of phi as a last feature, so that the waterfall ends at F(x).

    Returns
    -------
    shap.Explanation
        One value per feature.

    Raises
    ------
    GralisError
        If the package shap is not installed.
    """
    try:
        import shap
    except ImportError:
        raise GralisError('to_shap needs the package shap: pip install "gralis[interop]".') from None
    residual = flag(residual, "residual", "to_shap")
    values, names = explanation.values, list(explanation.names)
    data = explanation.data
    if residual:
        values = np.append(values, explanation.delta - values.sum())
        names, data = [*names, "residual"], np.append(data, np.full(1, np.nan, dtype=data.dtype))
    return shap.Explanation(values=values, base_values=explanation.f_baseline, data=data, feature_names=names)
