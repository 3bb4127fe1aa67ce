"""An explanation as shap's own: its plots draw it."""

from __future__ import annotations

from typing import Any

import numpy as np

from gralis.errors import GralisError
from gralis.results.explanation import Explanation


def to_shap(explanation: Explanation, *, residual: bool = False) -> Any:
    """`shap.Explanation` with phi as values, F(x') as base value and the feature's own data.

    GRALIS values need not sum to F(x) - F(x'): shap's waterfall then ends beside F(x). `residual=True` adds what is
    left as a last feature, so that it ends at F(x).
    """
    try:
        import shap
    except ImportError:
        raise GralisError('to_shap needs the package shap: pip install "gralis[interop]".') from None
    values, names = explanation.values, list(explanation.names)
    data = explanation.endpoints.of_features(explanation.features)
    if residual:
        values = np.append(values, explanation.delta - values.sum())
        names, data = [*names, "residual"], np.append(data, np.nan)
    return shap.Explanation(values=values, base_values=explanation.f_baseline, data=data, feature_names=names)
