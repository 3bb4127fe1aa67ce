"""Estimators from files: .skops, which runs no code of the file, and pickles where the user allows them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gralis.errors import GralisError
from gralis.models.estimator_model import is_estimator

__all__ = ["load_skops", "load_unpickled"]

#: What skops does not trust by itself. The state of fitted trees and boosters is arrays, or a file of their library; a
#: type of numbers is that of an empty array; and a partial is not called when it is loaded, and names its function.
_TRUSTED = {
    "collections.OrderedDict",
    "functools.partial",
    "numpy.dtype",
    "sklearn.utils.validation.check_array",
    "catboost.core.CatBoostClassifier",
    "catboost.core.CatBoostRegressor",
    "lightgbm.basic.Booster",
    "lightgbm.sklearn.LGBMClassifier",
    "lightgbm.sklearn.LGBMRegressor",
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
    "sklearn.tree._tree.Tree",
    "xgboost.core.Booster",
    "xgboost.sklearn.XGBClassifier",
    "xgboost.sklearn.XGBRegressor",
}


def load_skops(path: Path, *, allow_pickle: bool = False) -> Any:
    """The estimator in a .skops file; types that may run code are refused unless the user trusts the file."""
    try:
        from skops.io import get_untrusted_types, load
    except ImportError as error:
        raise GralisError('Reading .skops needs skops: pip install "gralis[tables]".') from error
    try:
        unknown = get_untrusted_types(file=path)
        strange = [name for name in unknown if name not in _TRUSTED]
        if strange and not allow_pickle:
            raise GralisError(
                f"{path} holds types that may run code when they are loaded ({', '.join(strange[:3])}); if you trust "
                f"whoever made it add --allow-pickle."
            )
        return _checked(load(path, trusted=unknown), path)
    except GralisError:
        raise
    except Exception as error:  # skops raises whatever the parts of the file raise
        text = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
        raise GralisError(f"{path} is not a whole .skops file ({text}).") from error


def load_unpickled(path: Path) -> Any:
    """The estimator in a pickle or in a file of joblib."""
    try:
        import joblib
    except ImportError as error:
        raise GralisError('Reading pickled estimators needs joblib: pip install "gralis[tables]".') from error
    try:
        return _checked(joblib.load(path), path)
    except GralisError:
        raise
    except Exception as error:  # a pickle may raise anything
        text = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
        raise GralisError(f"{path} cannot be unpickled ({text}).") from error


def _checked(model: Any, path: Path) -> Any:
    if not is_estimator(model):
        raise GralisError(f"{path} holds a {type(model).__name__}, not an estimator.")
    return model
