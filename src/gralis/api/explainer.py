"""`Explainer`: a model with its baseline and options, ready for the rows of a data set."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gralis.api.batch import explain_batch
from gralis.api.explain import complete
from gralis.results.explanations import Explanations
from gralis.targets import Target

__all__ = ["Explainer"]


class Explainer:
    """phi of every row of a data set, as one value: `Explainer(model, baseline=background)(X)`.

    All rows share their rays (see `explain_batch`); a tree ensemble is summed up in closed form.

    Parameters
    ----------
    model : torch.nn.Module, callable, estimator or Model
        The model, as in `gralis.explain`.
    baseline : object, default=0.0
        What the rows are compared with, as in `gralis.explain`; for an estimator some rows of the table.
    features : Features or array of int, optional
        What divides a row, as in `gralis.explain`.
    target : int, callable, str or None, default=None
        Which output to explain, as in `gralis.explain`. "predicted" takes that of each row.
    **options
        The other options of `gralis.explain`. The budget is that of each row.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> X = np.array([[0.0, 1.0], [1.0, 1.0], [2.0, 5.0], [3.0, 0.0]])
    >>> explainer = Explainer(LinearRegression().fit(X, X @ [2.0, -1.0]), baseline=X)
    >>> explainer(X[:2]).values.round(9).tolist()
    [[-3.0, 0.75], [-1.0, 0.75]]
    """

    def __init__(
        self,
        model: object,
        *,
        baseline: object = 0.0,
        features: object = None,
        target: Target | str = None,
        **options: Any,
    ) -> None:
        self.model, self.baseline, self.features, self.target = model, baseline, features, target
        complete(options, "Explainer")  # raises an error for an unknown name
        self.options: dict[str, Any] = dict(options)

    def __call__(self, X: object, *, target: Target | str | Sequence[Target | str] = None) -> Explanations:
        """The explanations of all rows.

        Parameters
        ----------
        X : data frame, array or list
            The rows. The index of a data frame names them.
        target : int, callable, str or a list with one of them for each row, optional
            Which output to explain, in place of the target of the explainer.

        Returns
        -------
        Explanations
            One explanation per row, with `values`, `stderr`, `data`, `to_frame`, `plot` and `save` for all of them.
        """
        asked = self.target if target is None else target
        return explain_batch(
            self.model, X, target=asked, baseline=self.baseline, features=self.features, **self.options
        )

    def __repr__(self) -> str:
        chosen = {"target": self.target, **self.options}
        shown = ", ".join(f"{name}={value!r}" for name, value in chosen.items() if value is not None)
        return f"Explainer({type(self.model).__name__}{', ' if shown else ''}{shown})"
