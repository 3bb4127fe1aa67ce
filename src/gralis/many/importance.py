"""A data set in a few numbers per feature, from sums alone: they stream, and sites can add theirs up.

mean |phi_i|, mean phi_i, Var(phi_i), all of it per class, and two shares of variance:

alone_i  = (Var(phi_i) - mean stderr_i^2) / Var(F)   F additive, features independent, baseline their mean: Sobol's S_i
within_i = Cov(phi_i, sum_j phi_j) / Var(sum_j phi_j)   sums to 1 over the features
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np

from gralis.arrays import Array
from gralis.errors import GralisError, bad
from gralis.many.result import Results
from gralis.storage.container import write_text

SCHEMA = "gralis.importance/1"
_SQUARES = ("mean_abs", "squares", "noise", "f_squares")  # cannot be negative


@dataclass(frozen=True, eq=False)
class Moments:
    """Sums over inputs, about their means (Chan's update), so that merging loses no digits."""

    n: int
    mean: Array  # of phi
    mean_abs: Array
    squares: Array  # sum (phi - mean)^2
    noise: Array  # mean stderr^2
    with_total: Array  # sum (phi_i - mean_i) (s - mean s), s = sum_j phi_j
    f_mean: float  # of F(x)
    f_squares: float

    @staticmethod
    def of(phi: Array, stderr: Array, f_x: Array) -> Moments:
        """Of these inputs: phi (n_inputs, n_features)."""
        mean, total = phi.mean(0), phi.sum(1)
        return Moments(
            len(phi),
            mean,
            np.abs(phi).mean(0),
            ((phi - mean) ** 2).sum(0),
            (stderr**2).mean(0),
            ((phi - mean) * (total - total.mean())[:, None]).sum(0),
            float(f_x.mean()),
            float(((f_x - f_x.mean()) ** 2).sum()),
        )

    def merge(self, other: Moments) -> Moments:
        """The moments of both together."""
        n = self.n + other.n
        share, cross = other.n / n, self.n * other.n / n
        step, f_step = other.mean - self.mean, other.f_mean - self.f_mean
        return Moments(
            n,
            self.mean + share * step,
            self.mean_abs + share * (other.mean_abs - self.mean_abs),
            self.squares + other.squares + cross * step**2,
            self.noise + share * (other.noise - self.noise),
            self.with_total + other.with_total + cross * step * step.sum(),
            self.f_mean + share * f_step,
            self.f_squares + other.f_squares + cross * f_step**2,
        )


@dataclass(frozen=True, eq=False)
class Importance:
    """What a data set's explanations have in common; `merge` pools it with that of another site."""

    names: tuple[str, ...]
    everyone: Moments
    classes: Mapping[str, Moments]

    @property
    def n_inputs(self) -> int:
        return self.everyone.n

    @property
    def mean_abs(self) -> Array:
        """Mean |phi_i|."""
        return self.everyone.mean_abs

    @property
    def mean(self) -> Array:
        return self.everyone.mean

    @property
    def variance(self) -> Array:
        """Var(phi_i) over the inputs, sampling noise included; NaN for a single input."""
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
        """Cov(phi_i, sum phi) / Var(sum phi): sums to 1."""
        return _over(self.everyone.with_total, float(self.everyone.with_total.sum()))

    def merge(self, other: Importance) -> Importance:
        """As if the inputs of both had been explained in one run; no input is needed for it."""
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
        """The sums as JSON, to be sent to others; none of them, and no difference of them, is over fewer than `least`.

        Classes of fewer than `least` inputs are left out. These and the inputs without a class are what remains when
        the classes in the file are subtracted from the total: if they are fewer than `least` together, the total is
        without them, too. This holds for one file; two files of nearly the same inputs tell of the difference.
        """
        if isinstance(least, bool) or not isinstance(least, int) or least < 1:
            raise bad("least", "Importance.save", "a whole number >= 1", repr(least))
        if self.n_inputs < least:
            raise GralisError(f"These are {self.n_inputs} inputs, and fewer than least={least} could be recognised.")
        shown = {name: moments for name, moments in self.classes.items() if moments.n >= least}
        rest = self.n_inputs - sum(moments.n for moments in shown.values())
        everyone = self.everyone if rest == 0 or rest >= least else reduce(Moments.merge, shown.values())
        content = {
            "schema": SCHEMA,
            "names": list(self.names),
            "everyone": _plain(everyone),
            "classes": {name: _plain(moments) for name, moments in shown.items()},
        }
        return write_text(path, json.dumps(content, allow_nan=False))

    @staticmethod
    def load(path: str | Path) -> Importance:
        """What another site saved; checked."""
        try:
            known = json.loads(Path(path).read_text(encoding="utf-8"))
            if known["schema"] != SCHEMA:
                raise GralisError(f"{path} has the schema {known['schema']!r}, this gralis reads {SCHEMA!r}.")
            names = tuple(map(str, known["names"]))
            classes = {str(name): _moments(one, len(names)) for name, one in known["classes"].items()}
            everyone = _moments(known["everyone"], len(names))
            if sum(one.n for one in classes.values()) > everyone.n:
                raise ValueError("the classes have more inputs than there are")
            return Importance(names, everyone, classes)
        except GralisError:
            raise
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise GralisError(f"{path} does not hold the importances of a data set ({error}).") from error

    def __repr__(self) -> str:
        order = np.argsort(-self.mean_abs, kind="stable")[:15]
        width = max([7, *(len(self.names[i]) for i in order)])
        lines = [f"{self.n_inputs} inputs, {len(self.names)} features, {len(self.classes)} classes"]
        lines.append(f"{'feature':<{width}}  {'mean |phi|':>10}  {'mean phi':>10}  {'within':>8}  {'alone':>8}")
        for i in order:
            numbers = f"{self.mean_abs[i]:>10.4g}  {self.mean[i]:>10.4g}  {self.within[i]:>8.3g}  {self.alone[i]:>8.3g}"
            lines.append(f"{self.names[i]:<{width}}  {numbers}")
        return "\n".join(lines)


def global_importance(results: object, by: str = "label") -> Importance:
    """Mean |phi|, per-class means and shares of variance of an `explain_many` run (or several), read block by block.

    >>> import gralis, tempfile, torch
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     found = gralis.explain_many(lambda z: 3 * z[:, 0] - z[:, 1], torch.eye(2), out=folder)
    ...     global_importance(found).mean_abs.round(6).tolist()
    [1.5, 0.5]

    by: the column of the inputs table that tells classes apart, "label" or "target"; where it is null, no class.
    """
    if by not in ("label", "target"):
        raise bad("by", "global_importance", "'label' or 'target'", repr(by))
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
            "The inputs have different features (superpixels of their own, say), so there is nothing to add up; "
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
    return np.asarray(numbers / total) if total > 0 else np.full(len(numbers), np.nan)


def _plain(moments: Moments) -> dict[str, Any]:
    return {
        field.name: value.tolist() if isinstance(value := getattr(moments, field.name), np.ndarray) else value
        for field in fields(moments)
    }


def _moments(known: Mapping[str, Any], n_features: int) -> Moments:
    read: dict[str, Any] = {}
    for field in fields(Moments):
        value = known[field.name]
        if isinstance(value, Sequence):
            value = np.array(value, dtype=np.float64)
            if value.shape != (n_features,):
                raise ValueError(f"{field.name} has the shape {value.shape}")
        elif isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError(f"{field.name} is {value!r}")
        if not np.isfinite(value).all():
            raise ValueError(f"{field.name} is not finite")
        if field.name in _SQUARES and (np.asarray(value) < 0).any():
            raise ValueError(f"{field.name} is negative")
        read[field.name] = value
    if not isinstance(read["n"], int) or read["n"] < 1:
        raise ValueError(f"n is {read['n']!r}")
    return Moments(**read)
