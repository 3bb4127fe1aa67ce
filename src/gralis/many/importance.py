"""The explanations of a data set in a few numbers per feature, made of sums that several sites can add up.

mean |phi_i|, mean phi_i and Var(phi_i), for all inputs and for every class, and two shares of variance:

alone_i  = (Var(phi_i) - mean stderr_i^2) / Var(F)
within_i = Cov(phi_i, sum_j phi_j) / Var(sum_j phi_j)

alone_i is Sobol's index S_i if F is additive, the features are independent and the baseline is their mean. The
within_i of all features add up to 1.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np

from gralis.arrays import Array
from gralis.checks import as_path, flag, one_of, printable, probability, whole
from gralis.errors import GralisError, bad
from gralis.many.mean_intervals import difference_half_widths, mean_half_widths
from gralis.many.moments import Moments
from gralis.many.result import Results
from gralis.notebook import InNotebooks, more, n_shown
from gralis.storage.container import write_text
from gralis.storage.json_values import plain
from gralis.views.plots import axes
from gralis.views.row_summaries import size_bars

__all__ = ["Importance", "global_importance"]

SCHEMA = "gralis.importance/1"


@dataclass(frozen=True, eq=False)
class Importance(InNotebooks):
    """The importance of every feature in a data set, from `global_importance`, or merged from several sites.

    Attributes
    ----------
    names : tuple of str
        The names of the features.
    everyone : Moments
        The sums over all inputs.
    classes : mapping of str to Moments
        The sums over the inputs of every class.
    """

    names: tuple[str, ...]
    everyone: Moments
    classes: Mapping[str, Moments]

    @property
    def n_inputs(self) -> int:
        """The number of inputs with a result."""
        return self.everyone.n

    @property
    def mean_abs(self) -> Array:
        """Mean |phi_i|, (n_features,)."""
        return self.everyone.mean_abs

    @property
    def mean(self) -> Array:
        """Mean phi_i, (n_features,)."""
        return self.everyone.mean

    @property
    def variance(self) -> Array:
        """Var(phi_i) over the inputs. It includes sampling noise, and is NaN for a single input."""
        return _over(self.everyone.squares, self.n_inputs - 1)

    @property
    def by_class(self) -> dict[str, Array]:
        """Mean phi of every class."""
        return {name: moments.mean for name, moments in self.classes.items()}

    @property
    def alone(self) -> Array:
        """(Var(phi_i) - mean stderr_i^2) / Var(F): Sobol's first-order index where F is additive."""
        return _over(self.variance - self.everyone.noise, self.everyone.f_squares / max(self.n_inputs - 1, 1))

    @property
    def within(self) -> Array:
        """Cov(phi_i, sum phi) / Var(sum phi); these add up to 1."""
        return _over(self.everyone.with_total, float(self.everyone.with_total.sum()))

    def half_widths(self, level: float = 0.95, *, simultaneous: bool = True) -> dict[str, Array]:
        """The half-widths of `mean_abs` and `mean`, for the data set as a sample of many more inputs.

        The variance over the inputs contains the error of each explanation, if the explanations have errors that are
        independent of each other. In case they share their draws, the mean error of an explanation is added, which
        also covers the bias of |phi| where phi is smaller than its error. The intervals are Student's with (n - 1) / 4
        degrees of freedom, because attributions are often skewed.

        Parameters
        ----------
        level : float, default=0.95
            The probability with which the intervals hold.
        simultaneous : bool, default=True
            Whether the intervals of all features hold together (by Bonferroni), or each by itself.

        Returns
        -------
        dict from str to array of shape (n_features,)
            "mean_abs" and "mean"; NaN for a single input.
        """
        simultaneous = flag(simultaneous, "simultaneous", "half_widths")
        share = (1 - probability(level, "level", "half_widths")) / (len(self.names) if simultaneous else 1)
        moments, n = self.everyone, self.n_inputs
        folded = np.maximum(moments.squares + n * (moments.mean**2 - moments.mean_abs**2), 0.0)
        return {
            "mean_abs": mean_half_widths(moments, folded, share),
            "mean": mean_half_widths(moments, moments.squares, share),
        }

    def of_class(self, name: str) -> Importance:
        """The importance over the inputs of one class.

        Parameters
        ----------
        name : str
            A key of `classes`.

        Returns
        -------
        Importance
            Without classes.
        """
        one_of(name, tuple(self.classes), "name", "Importance.of_class")
        return Importance(self.names, self.classes[name], {})

    def difference(self, a: str, b: str, level: float = 0.95) -> tuple[Array, Array]:
        """Mean phi of class a less mean phi of class b, and the half-widths of the differences.

        Parameters
        ----------
        a, b : str
            Keys of `classes`.
        level : float, default=0.95
            The probability with which the intervals of all features hold together (by Bonferroni).

        Returns
        -------
        (array of shape (n_features,), array of shape (n_features,))
            The half-widths are NaN if a class has a single input.
        """
        share = (1 - probability(level, "level", "Importance.difference")) / len(self.names)
        one, other = (self.of_class(name).everyone for name in (a, b))
        return one.mean - other.mean, difference_half_widths(one, other, share)

    def merge(self, other: Importance) -> Importance:
        """The importance that one run over the inputs of both would give; the inputs themselves are not needed.

        Parameters
        ----------
        other : Importance
            The importance of another data set with the same features in the same order.

        Returns
        -------
        Importance
            The importance of both together.
        """
        if not isinstance(other, Importance):
            raise bad("other", "Importance.merge", "the importances of another data set", f"a {type(other).__name__}")
        if self.names != other.names:
            raise GralisError(
                "Importances can be merged only over the same features in the same order; these have "
                f"{len(self.names)} and {len(other.names)} features with different names."
            )
        classes = dict(self.classes)
        for name, moments in other.classes.items():
            classes[name] = classes[name].merge(moments) if name in classes else moments
        return Importance(self.names, self.everyone.merge(other.everyone), classes)

    def save(self, path: str | Path, least: int = 5) -> Path:
        """Write the sums as JSON, so that they can be sent to others without any input.

        Every sum in the file is over at least `least` inputs, and so is every difference of two of them. Classes with
        fewer than `least` inputs are left out. Subtracting the classes in the file from the total gives the sum over
        the inputs that are in none of them; if these are fewer than `least`, they are left out of the total as well.
        The promise holds for one file: two files of nearly the same inputs reveal the difference between them.

        Parameters
        ----------
        path : str or Path
            The file to be written.
        least : int, default=5
            The smallest number of inputs that a sum may stand for.

        Returns
        -------
        Path
            The file.
        """
        whole(least, "least", 1, "Importance.save")
        if self.n_inputs < least:
            raise GralisError(f"These are {self.n_inputs} inputs, and fewer than least={least} could be recognised.")
        shown = {name: moments for name, moments in self.classes.items() if moments.n >= least}
        rest = self.n_inputs - sum(moments.n for moments in shown.values())
        everyone = self.everyone if rest == 0 or rest >= least else reduce(Moments.merge, shown.values())
        content = {
            "schema": SCHEMA,
            "names": list(self.names),
            "everyone": plain(vars(everyone)),
            "classes": {name: plain(vars(moments)) for name, moments in shown.items()},
        }
        return write_text(path, json.dumps(content, allow_nan=False))

    @staticmethod
    def load(path: str | Path) -> Importance:
        """Read what another site saved, and check it.

        Parameters
        ----------
        path : str or Path
            A file that `save` wrote.

        Returns
        -------
        Importance
            To be merged with others.
        """
        path = as_path(path, "Importance.load")
        if not path.is_file():
            raise GralisError(f"There is no file {path}.")
        try:
            known = json.loads(path.read_text(encoding="utf-8"))
            if known["schema"] != SCHEMA:
                raise GralisError(f"{path} has the schema {known['schema']!r}, this gralis reads {SCHEMA!r}.")
            names = tuple(printable(str(name)) for name in known["names"])
            classes = {
                printable(str(name)): Moments.checked(sums, len(names)) for name, sums in known["classes"].items()
            }
            everyone = Moments.checked(known["everyone"], len(names))
            if sum(moments.n for moments in classes.values()) > everyone.n:
                raise ValueError("the classes have more inputs than there are")
            return Importance(names, everyone, classes)
        except GralisError:
            raise
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError) as error:
            raise GralisError(f"{path} does not hold the importances of a data set ({error}).") from error

    def plot(self, top: int = 15, level: float = 0.95, ax: Any = None) -> Any:
        """Draw mean |phi| of the largest features with simultaneous intervals. This needs the extra `plot`.

        Parameters
        ----------
        top : int, default=15
            How many features to draw.
        level : float, default=0.95
            The level of the intervals.
        ax : matplotlib.axes.Axes, optional
            Where to draw; by default on a new figure.

        Returns
        -------
        matplotlib.figure.Figure
            The figure, which a notebook shows.
        """
        order = np.argsort(-self.mean_abs, kind="stable")[: whole(top, "top", 1, "plot")]
        ax = axes(ax, 6.8, 1.6 + 0.34 * len(order))
        half = self.half_widths(level)["mean_abs"]
        caption = f"mean |phi| of {self.n_inputs} inputs\nlines: {100 * level:.4g}% intervals for all features together"
        size_bars(ax, [self.names[i] for i in order], self.mean_abs[order], half[order], caption)
        return ax.figure.figure

    def _frame_columns(self) -> Mapping[str, Any]:
        half = self.half_widths()
        numbers = {"mean_abs": self.mean_abs, "mean_abs_half_width": half["mean_abs"]}
        numbers |= {"mean": self.mean, "mean_half_width": half["mean"], "within": self.within, "alone": self.alone}
        return {"feature": list(self.names), **numbers, **{f"mean of {k}": v for k, v in self.by_class.items()}}

    def __repr__(self) -> str:
        order = np.argsort(-self.mean_abs, kind="stable")[: n_shown(len(self.names))]
        width = max([7, *(len(self.names[i]) for i in order)])
        lines = [f"{self.n_inputs} inputs, {len(self.names)} features, {len(self.classes)} classes"]
        head = f"{'mean |phi|':>10}    {'+-':>7}  {'mean phi':>10}    {'+-':>7}  {'within':>8}  {'alone':>8}"
        lines.append(f"{'feature':<{width}}  {head}")
        half = self.half_widths()
        for i in order:
            numbers = f"{self.mean_abs[i]:>10.4g} +- {half['mean_abs'][i]:>7.2g}  {self.mean[i]:>10.4g} +- "
            numbers += f"{half['mean'][i]:>7.2g}  {self.within[i]:>8.3g}  {self.alone[i]:>8.3g}"
            lines.append(f"{self.names[i]:<{width}}  {numbers}")
        return "\n".join([*lines, *more(len(self.names), len(order))])


def global_importance(results: object, by: str = "label") -> Importance:
    """Mean |phi|, means per class and shares of variance, from the results of `explain_many`, read block by block.

    Parameters
    ----------
    results : Results, str, Path, Importance, or a list of them
        One run or several. All must have the same features.
    by : {"label", "target"}, default="label"
        The column of the inputs table that holds the class. Inputs with null there belong to no class.

    Returns
    -------
    Importance
        The numbers per feature; `print` shows the largest.

    Examples
    --------
    >>> import gralis, tempfile, torch
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     results = gralis.explain_many(lambda z: 3 * z[:, 0] - z[:, 1], torch.eye(2), out=folder)
    ...     global_importance(results).mean_abs.round(6).tolist()
    [1.5, 0.5]
    """
    one_of(by, ("label", "target"), "by", "global_importance")
    runs = results if isinstance(results, list | tuple) else [results]
    if not runs:
        raise bad("results", "global_importance", "at least one run", "none")
    return reduce(Importance.merge, [_of_run(run, by) for run in runs])


def _of_run(run: object, by: str) -> Importance:
    if isinstance(run, Importance):
        return run
    if isinstance(run, str | Path):
        run = Results(run)
    if not isinstance(run, Results):
        raise bad("results", "global_importance", "results of explain_many, or their folder", f"a {type(run).__name__}")
    pooled: Importance | None = None
    for values, inputs in zip(run.parts("values"), run.parts("inputs"), strict=True):
        part = _of_block(values, inputs, by)
        if part is not None:
            pooled = part if pooled is None else pooled.merge(part)
    if pooled is None:
        raise GralisError(f"No input in {run.path} has a result.")
    return pooled


def _of_block(values: Any, inputs: Any, by: str) -> Importance | None:
    kept = [row for row in inputs.select(["f_x", "n_features", by, "failure"]).to_pylist() if row["failure"] is None]
    if not kept:
        return None
    counts = {row["n_features"] for row in kept}
    n = counts.pop()
    all_names = values["name"].to_pylist()
    names = tuple(all_names[:n])
    if counts or all_names != list(names) * len(kept):
        raise GralisError(
            "The inputs have different features (for example, each has its superpixels), so they cannot be added up; "
            "explain with features that all inputs share: a grid, columns, channels."
        )
    phi, stderr = (values[name].to_numpy().reshape(len(kept), n) for name in ("phi", "stderr"))
    f_x = np.array([row["f_x"] for row in kept])
    groups: dict[str, list[int]] = {}
    for place, row in enumerate(kept):
        if row[by] is not None:
            groups.setdefault(row[by], []).append(place)
    classes = {name: Moments.of(phi[places], stderr[places], f_x[places]) for name, places in groups.items()}
    return Importance(names, Moments.of(phi, stderr, f_x), classes)


def _over(numbers: Array, total: float) -> Array:
    with np.errstate(over="ignore"):  # sums of others may be as large as they like
        return np.asarray(numbers / total) if total > 0 else np.full(len(numbers), np.nan)
