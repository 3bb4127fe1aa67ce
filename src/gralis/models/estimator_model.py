"""Anything that predicts rows of a table, as it is: estimators and pipelines of scikit-learn, boosters, and others."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from gralis.errors import GralisError, ModelError, bad
from gralis.models.black_box import BlackboxModel
from gralis.models.failures import kind, report_failure
from gralis.models.fingerprint import of_object
from gralis.models.numpy_function import numpy_points
from gralis.models.points import leaves
from gralis.models.protocol import Points, is_model
from gralis.tables import TableCoding
from gralis.tables.rows import is_frame, pandas
from gralis.targets import Readout, Target, check, describe, select
from gralis.targets.outputs import position
from gralis.trees import TreeEnsemble, has_trees, read

__all__ = ["EstimatorModel", "estimator", "is_estimator"]

_METHODS = ("predict_proba", "decision_function", "predict")
_NUMBERED = re.compile(r"(Column_|f|x)?\d+")  # how boosted trees call columns that have no names


def is_estimator(model: object) -> bool:
    """Whether the model predicts rows of a table by a method, and is not a function or a network itself.

    >>> from sklearn.linear_model import LinearRegression
    >>> is_estimator(LinearRegression()), is_estimator(nn.Linear(2, 1)), is_estimator(len)
    (True, False, False)
    """
    if isinstance(model, nn.Module | type) or is_model(model):
        return False
    return any(callable(getattr(model, name, None)) for name in _METHODS) and not _is_network(model)


def _is_network(model: object) -> bool:
    """Keras models have a method predict too; they are called by themselves."""
    return callable(model) and not hasattr(model, "get_params")


def estimator(model: object, target: Target = None, *, method: str = "auto") -> EstimatorModel:
    """F(row) = target(model.predict_proba(row)), or decision_function or predict, for a fitted estimator.

    `explain` makes this adapter by itself; call it to choose the method.

    Parameters
    ----------
    model : object
        A fitted estimator or pipeline of scikit-learn, xgboost, lightgbm or catboost, or any object with such a method.
    target : int, tuple of int, callable or None, default=None
        What F reads off the outputs, such as the number of a class. The readouts of `gralis.targets` get the logarithms
        of the probabilities, so that `targets.probability(k)` is the probability of class k. The number of a class
        of boosted trees is its raw margin, unless you choose the method.
    method : {"auto", "predict_proba", "decision_function", "predict"}, default="auto"
        The method that is called; "auto" takes the first of these that the model has. A classifier that has only
        `predict` returns 1 for the class that it predicts and 0 for the others.

    Returns
    -------
    EstimatorModel

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> line = LinearRegression().fit([[0.0], [1.0]], [1.0, 3.0])
    >>> estimator(line).value(torch.tensor([[2.0]])).round(decimals=9)
    tensor([5.], dtype=torch.float64)
    """
    if not is_estimator(model):
        allowed = "a fitted estimator with predict_proba, decision_function or predict"
        raise bad("model", "models.estimator", allowed, kind(model))
    owned = [name for name in _METHODS if callable(getattr(model, name, None))]
    if method != "auto" and method not in owned:
        raise bad("method", "models.estimator", f"'auto' or one of {', '.join(map(repr, owned))}", repr(method))
    chosen = owned[0] if method == "auto" else method
    margins = method == "auto" and chosen == "predict_proba" and has_trees(model)
    return EstimatorModel(
        _prediction(model, chosen), check(target, "models.estimator"), model, chosen, by_margin=margins
    )


@dataclass(frozen=True, eq=False, repr=False)
class EstimatorModel(BlackboxModel):
    """An estimator on rows of a table; made by `gralis.models.estimator`.

    Attributes
    ----------
    fn : callable
        Rows as the estimator takes them -> its outputs.
    target : Target, default=None
        What F reads off the outputs.
    estimator : object
        The estimator.
    method : str
        The method of the estimator that is called.
    table : TableCoding or None
        How points become rows; None if points are rows of numbers.
    by_margin : bool
        Whether the number of a class means its raw margin, as it does for tree ensembles, and not its probability.
    """

    estimator: Any = None
    method: str = "predict"
    table: TableCoding | None = None
    by_margin: bool = False

    @property
    def class_names(self) -> tuple[str, ...]:
        """The names of the classes, one per output; empty for a regression or if the estimator does not say."""
        classes = getattr(self.estimator, "classes_", None)
        if classes is None or np.ndim(classes) != 1 or (self.method == "predict" and not _votes(self.estimator)):
            return ()
        return tuple(map(str, classes))

    @property
    def column_names(self) -> tuple[str, ...]:
        """The names of the columns with which the estimator was fitted; empty if it does not know them."""
        return _column_names(self.estimator)

    @property
    def n_columns(self) -> int | None:
        """The number of columns with which the estimator was fitted; None if it does not say."""
        count = _attribute(self.estimator, "n_features_in_")
        return int(count) if isinstance(count, int | np.integer) and count > 0 else None

    def at(self, table: TableCoding) -> EstimatorModel:
        """The same estimator for points that this coding makes of rows."""
        return replace(self, table=table)

    @property
    def takes_frames(self) -> bool | None:
        """Whether rows must be data frames; None if the estimator does not say and takes what the user gives."""
        if self.column_names:
            return True
        return None if self.n_columns is None else False

    def named_target(self, name: str) -> int | None:
        """The number of the class with this name."""
        if name not in self.class_names:
            known = ", ".join(map(repr, self.class_names))
            allowed = f"a number, 'predicted', 'all' or the name of a class ({known})"
            if not known:
                unnamed = ", because the estimator names no classes (is it fitted?)"
                allowed = "None or a function" if self.method == "predict" else f"a number or a function{unnamed}"
            raise bad("target", "explain", allowed, repr(name))
        if self.method != "decision_function" or len(self.class_names) > 2:
            return self.class_names.index(name)
        if name == self.class_names[0]:
            other = self.class_names[1]
            raise bad("target", "explain", f"{other!r}, whose decision function the estimator has", repr(name))
        return None

    def values(self, points: Points, targets: Sequence[Target]) -> list[Tensor]:
        """F of every target, each (rows,), float64, by one call."""
        outputs, rows, values = self.outputs(points), leaves(points)[0].shape[0], []
        for target in targets:
            if (margins := self._margins(points, target)) is not None:
                values.append(margins)
                continue
            if target is None and isinstance(outputs, Tensor) and outputs.ndim == 2 and outputs.shape[1] > 1:
                raise GralisError(self._which_class(outputs.shape[1]))
            with report_failure(f"The target {describe(target)}", points):
                value = select(self._read_by(target, outputs), target)
            if value.shape[0] != rows:
                raise ModelError(f"The estimator {self.name} returned {value.shape[0]} values for {rows} rows.")
            values.append(value.detach())
        return values

    def _margins(self, points: Points, target: Target) -> Tensor | None:
        """The raw margin of a class of boosted trees, (rows,); None if the target is read off the outputs."""
        n_classes = len(self.class_names)
        if not (isinstance(target, int) or target is None) or n_classes < 2:
            return None
        trees = self._trees
        if trees is None or (target is None and trees.n_outputs > 1):
            return None
        found = trees.outputs(trees.encode(self._rows(numpy_points(points))))
        k = position(n_classes - 1 if target is None else target, n_classes, f"target={target}")
        margin = found[:, k] if trees.n_outputs > 1 else found[:, 0] if k else -found[:, 0]
        return torch.from_numpy(np.array(margin, dtype=np.float64))

    @cached_property
    def _trees(self) -> TreeEnsemble | None:
        """The trees, whose raw outputs the numbers of classes mean; None if there are none that can be read."""
        try:
            return read(self.estimator) if self.by_margin else None
        except GralisError:
            return None

    def outputs(self, points: Points) -> Any:
        """What the estimator returns for these points, as float64 tensors."""
        with report_failure(f"The estimator {self.name}", points):
            numbers = numpy_points(points)
            return self._tensors(self.fn(self._rows(numbers)))

    def _rows(self, numbers: Any) -> Any:
        if self.table is not None:
            return self.table.decode(numbers)
        if not self.column_names or not isinstance(numbers, np.ndarray) or numbers.ndim != 2:
            return numbers
        from pandas import DataFrame

        return DataFrame(numbers, columns=list(self.column_names))

    def _read_by(self, target: Target, outputs: Any) -> Any:
        """The outputs as a target expects them: readouts of logits get logarithms of probabilities."""
        if not isinstance(target, Readout) or self.method != "predict_proba" or not isinstance(outputs, Tensor):
            return outputs
        return torch.log(outputs)

    def _which_class(self, n_outputs: int) -> str:
        names = ", ".join(map(repr, self.class_names[:8])) or f"0..{n_outputs - 1}"
        more = ", ..." if len(self.class_names) > 8 else ""
        if not self.class_names:
            return f"The estimator {self.name} has {n_outputs} outputs; choose one with target=k ({names}) or 'all'."
        return (
            f"The estimator {self.name} has {n_outputs} classes; choose one with target=k, a class name "
            f"({names}{more}), 'predicted' or 'all'."
        )

    @property
    def name(self) -> str:
        """The class of the estimator and the method."""
        return f"{type(self.estimator).__name__}.{self.method}"

    def fingerprint(self) -> str:
        """The name of the class and the method, with a hash of everything that was fitted."""
        return f"{self.name} {of_object(self.estimator)[:16]}"

    def __repr__(self) -> str:
        return f"EstimatorModel({self.name}, target={describe(self.target)})"


def _prediction(model: Any, method: str) -> Callable[[Any], Any]:
    """The method, as a function of rows."""
    if type(model).__module__.startswith("xgboost") and type(model).__name__ == "Booster":
        known = _categories(model)
        return lambda rows: model.predict(_xgboost_matrix(model, _with_categories(rows, known)))
    if method == "predict" and _votes(model):
        classes = np.asarray(model.classes_)
        return lambda rows: (np.asarray(model.predict(rows)).reshape(-1, 1) == classes[None, :]).astype(np.float64)
    predict: Callable[[Any], Any] = getattr(model, method)
    if type(model).__module__.partition(".")[0] in ("lightgbm", "xgboost"):
        known = _categories(model)
        return lambda rows: predict(_with_categories(rows, known))
    return predict


def _categories(model: object) -> tuple[Any, ...]:
    """The categories of every column with which boosted trees were trained; empty if they cannot be read."""
    try:
        return read(model).columns.categories
    except GralisError:
        return ()


def _with_categories(rows: Any, known: Sequence[Any]) -> Any:
    """The rows with texts as categories, which boosters ask for; a file of a table has no categories."""
    if not is_frame(rows):
        return rows
    rows, pd = rows.copy(deep=False), pandas()
    for place, dtype in enumerate(rows.dtypes):
        entries = known[place] if len(known) == len(rows.columns) else ()
        texts = getattr(dtype, "kind", "O") not in "biuf"
        codes = not texts and (not entries or any(isinstance(entry, str) for entry in entries))
        if entries is None or codes or isinstance(dtype, pd.CategoricalDtype):
            continue
        rows.isetitem(place, pd.Categorical(rows.iloc[:, place], categories=list(entries) or None))
    return rows


def _xgboost_matrix(model: Any, rows: Any) -> Any:
    from xgboost import DMatrix

    return DMatrix(rows, feature_names=model.feature_names, enable_categorical=True)


def _votes(model: Any) -> bool:
    """Whether the estimator is a classifier, whose `predict` returns a class."""
    classes = getattr(model, "classes_", None)
    return classes is not None and np.ndim(classes) == 1 and len(classes) > 0  # regressors of CatBoost have none


def _column_names(model: Any) -> tuple[str, ...]:
    for attribute in ("feature_names_in_", "feature_names_", "feature_names", "feature_name"):
        names = _attribute(model, attribute)
        names = names() if callable(names) else names
        if names is not None and len(names) and not all(_NUMBERED.fullmatch(str(name)) for name in names):
            return tuple(map(str, names))
    return ()


def _attribute(model: Any, name: str) -> Any:
    """The attribute; None if it is missing or cannot be read before the fit."""
    try:
        return getattr(model, name, None)
    except Exception:  # properties of unfitted boosters raise errors of their own
        return None
