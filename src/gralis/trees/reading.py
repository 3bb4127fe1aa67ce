"""From an estimator of scikit-learn, XGBoost, LightGBM or CatBoost to a `TreeEnsemble`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gralis.errors import GralisError, bad
from gralis.trees.catboost_json import read_catboost
from gralis.trees.ensemble import TreeEnsemble
from gralis.trees.lightgbm_dump import read_lightgbm
from gralis.trees.pipelines import is_pipeline, through_pipeline
from gralis.trees.sklearn_forests import read_forest
from gralis.trees.sklearn_gradient_boosting import read_gradient_boosting
from gralis.trees.sklearn_histogram_boosting import read_histogram_boosting
from gralis.trees.xgboost_json import read_xgboost

__all__ = ["has_trees", "read", "why_unread"]

_FORESTS = ("DecisionTree", "ExtraTree", "RandomForest", "ExtraTrees")
_READERS: dict[tuple[str, str], Callable[[Any], TreeEnsemble]] = {
    **{("sklearn", f"{name}{kind}"): read_forest for name in _FORESTS for kind in ("Classifier", "Regressor")},
    ("sklearn", "IsolationForest"): read_forest,
    ("sklearn", "GradientBoostingClassifier"): read_gradient_boosting,
    ("sklearn", "GradientBoostingRegressor"): read_gradient_boosting,
    ("sklearn", "HistGradientBoostingClassifier"): read_histogram_boosting,
    ("sklearn", "HistGradientBoostingRegressor"): read_histogram_boosting,
    ("xgboost", "Booster"): read_xgboost,
    ("xgboost", "XGBModel"): read_xgboost,
    ("lightgbm", "Booster"): read_lightgbm,
    ("lightgbm", "LGBMModel"): read_lightgbm,
    ("catboost", "CatBoost"): read_catboost,
}


_SEARCH = ("sklearn", "BaseSearchCV")  # GridSearchCV and its like predict with the best of their estimators
_PREDICTIONS = ("predict", "predict_proba", "decision_function", "score_samples")


def _reader(estimator: object) -> Callable[[Any], TreeEnsemble] | None:
    """The reader of the first class among the estimator's bases that has one. No library is imported."""
    for base in type(estimator).__mro__:
        found = _READERS.get((base.__module__.partition(".")[0], base.__name__))
        if found is not None:
            return found
    return None


def _chosen(estimator: object) -> object:
    """The estimator that a search of scikit-learn has fitted last, and every other estimator as it is."""
    kinds = ((base.__module__.partition(".")[0], base.__name__) for base in type(estimator).__mro__)
    return getattr(estimator, "best_estimator_", estimator) if _SEARCH in kinds else estimator


def _check_predictions(estimator: object) -> None:
    """Refuse an estimator whose predictions are redefined outside its library, because its trees may say otherwise."""
    libraries = {library for library, _ in _READERS}
    for owner in (estimator, *type(estimator).__mro__):
        if isinstance(owner, type) and owner.__module__.partition(".")[0] in libraries:
            return
        own = [name for name in _PREDICTIONS if name in getattr(owner, "__dict__", ())]
        if own:
            raise GralisError(
                f"This {type(estimator).__name__} has a {own[0]} of its own, which may change what its trees predict; "
                f"explain this function with gralis.models.blackbox, or pass the library's own estimator."
            )


def _read_pipeline(pipeline: Any) -> TreeEnsemble:
    """The trees at the end of a pipeline."""
    return through_pipeline(pipeline, read(pipeline.steps[-1][1]))


def has_trees(estimator: object) -> bool:
    """Whether `read` knows this kind of estimator."""
    estimator = _chosen(estimator)
    if is_pipeline(estimator):
        return has_trees(estimator.steps[-1][1])  # type: ignore[attr-defined]
    return isinstance(estimator, TreeEnsemble) or _reader(estimator) is not None


def read(estimator: object) -> TreeEnsemble:
    """The trees of a fitted estimator as plain arrays, whose `predict` is the library's raw output.

    Parameters
    ----------
    estimator : object
        A decision tree, random forest, extra trees, gradient boosting, histogram gradient boosting or isolation forest
        of scikit-learn, or a model of XGBoost, LightGBM or CatBoost. Also a pipeline that ends in one of them, if its
        other steps act on each column by itself: scalers, imputers, one-hot and ordinal codes. A search over
        parameters, such as GridSearchCV, stands for its best estimator.

    Returns
    -------
    TreeEnsemble
        For a classifier the outputs are the raw margins of its classes, or one margin if it has two classes. A decision
        tree or a forest has no margin; its outputs are the mean class shares of its leaves. Those of an isolation
        forest are mean path lengths.

    Raises
    ------
    GralisError
        If the estimator is of another kind, is not fitted, or has parts that are not trees.

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> read(DecisionTreeRegressor().fit([[0.0], [1.0]], [2.0, 3.0])).predict([[0.2], [0.8]]).tolist()
    [2.0, 3.0]
    """
    if isinstance(estimator, TreeEnsemble):
        return estimator
    if (chosen := _chosen(estimator)) is not estimator:
        _check_predictions(estimator)
        return read(chosen)
    reader = _reader(estimator)
    if is_pipeline(estimator) and has_trees(estimator):
        reader = _read_pipeline
    if reader is None:
        allowed = (
            "a fitted decision tree, forest or gradient boosting of scikit-learn, or a model of XGBoost, LightGBM or "
            "CatBoost"
        )
        raise bad("estimator", "models.trees", allowed, f"a {type(estimator).__name__}")
    _check_predictions(estimator)
    try:
        return reader(estimator)
    except GralisError:
        raise
    except Exception as error:
        raise GralisError(
            f"The trees of this {type(estimator).__name__} cannot be read ({error!r}); fit it first. If it is fitted, "
            f"its version is not known to gralis: explain its predict function with gralis.models.blackbox."
        ) from error


def why_unread(estimator: object) -> str:
    """Why the trees of an estimator are not summed up exactly, as part of a sentence; empty if nothing prevents it.

    >>> from sklearn.tree import DecisionTreeRegressor
    >>> why_unread(DecisionTreeRegressor().fit([[0.0], [1.0]], [2.0, 3.0]))
    ''
    """
    if not has_trees(estimator):
        return ""
    try:
        read(estimator)
    except GralisError as error:
        said = str(error).split("; ")[0].rstrip(".")
        return said[:1].lower() + said[1:]
    return ""
