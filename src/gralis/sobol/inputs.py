"""How the inputs are distributed: by bounds or distributions, by the columns of a data matrix, or by a sampler.

The inputs are always independent or treated as independent; the attribute `words` says which.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from gralis.arrays import Array, describe, to_numpy
from gralis.checks import printable
from gralis.errors import GralisError, bad

_ALLOWED = (
    "a sequence of (low, high) bounds (or scipy.stats distributions), one per input, a data matrix X (rows, inputs), "
    "or a function (rng, n) -> array (n, inputs)"
)
_MOST_DIMENSIONS = torch.quasirandom.SobolEngine.MAXDIM


@dataclass(frozen=True, eq=False)
class Tables:
    """Rows of inputs, (n_tables, n_rows, n_inputs), and their quantile levels (None if these are unknown)."""

    points: Array
    levels: Array | None


class Inputs(Protocol):
    """Independent inputs that can be sampled."""

    @property
    def n_inputs(self) -> int:
        """The number of inputs."""
        ...

    @property
    def words(self) -> str:
        """The distribution in words."""
        ...

    def tables(self, seed: np.random.SeedSequence, n_rows: int, n_tables: int) -> Tables:
        """Draw independent tables of rows; n_rows is a power of two."""
        ...


class Marginal(Protocol):
    """The distribution of one input."""

    def quantile(self, u: Array) -> Array:
        """The x with P(X <= x) = u, for every u in (0, 1)."""
        ...


@dataclass(frozen=True)
class UniformMarginal:
    """A uniform distribution on [low, high]."""

    low: float
    high: float

    def quantile(self, u: Array) -> Array:
        return self.low + (self.high - self.low) * u


@dataclass(frozen=True, eq=False)
class Distribution:
    """A frozen distribution of scipy.stats, or any object with a method `ppf`."""

    frozen: Any

    def quantile(self, u: Array) -> Array:
        return np.asarray(self.frozen.ppf(u), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Column:
    """The empirical distribution of one column."""

    ordered: Array

    def quantile(self, u: Array) -> Array:
        return np.asarray(self.ordered[np.minimum(len(self.ordered) * u, len(self.ordered) - 1).astype(np.int64)])

    @cached_property
    def atoms(self) -> tuple[Array, Array]:
        """The distinct values and their probabilities."""
        values, counts = np.unique(self.ordered, return_counts=True)
        return values, counts / counts.sum()


@dataclass(frozen=True, eq=False)
class Marginals:
    """Inputs with known marginals, which allow quasi-random rows and quadrature."""

    marginals: tuple[Marginal, ...]
    words: str

    @property
    def n_inputs(self) -> int:
        return len(self.marginals)

    def tables(self, seed: np.random.SeedSequence, n_rows: int, n_tables: int) -> Tables:
        n = self.n_inputs
        levels = uniforms(seed, n_rows, n_tables * n).reshape(n_rows, n_tables, n).transpose(1, 0, 2)
        return Tables(self.at(levels), levels)

    def at(self, u: Array) -> Array:
        """The inputs at these quantile levels, (..., n_inputs)."""
        return np.stack([marginal.quantile(u[..., j]) for j, marginal in enumerate(self.marginals)], axis=-1)


@dataclass(frozen=True, eq=False)
class Sampler:
    """A function (rng, n) -> (n, n_inputs).

    The columns of each table are shuffled separately, which makes dependent columns independent and leaves the
    distribution of independent columns unchanged.
    """

    draw: Callable[[np.random.Generator, int], Any]
    n_inputs: int
    words: str

    def tables(self, seed: np.random.SeedSequence, n_rows: int, n_tables: int) -> Tables:
        rng = np.random.default_rng(seed)
        drawn = [_drawn(self.draw, rng, n_rows, self.n_inputs) for _ in range(n_tables)]
        return Tables(np.stack([rng.permuted(table, axis=0) for table in drawn]), None)


def uniforms(seed: np.random.SeedSequence, n_rows: int, n_dimensions: int) -> Array:
    """Scrambled Sobol points in (0, 1), (n_rows, n_dimensions); independent numbers if the dimensions are too many."""
    if n_dimensions > _MOST_DIMENSIONS:
        return np.random.default_rng(seed).random((n_rows, n_dimensions))
    start = int(seed.generate_state(1)[0])
    engine = torch.quasirandom.SobolEngine(n_dimensions, scramble=True, seed=start)  # type: ignore[no-untyped-call]
    points = engine.draw(n_rows, dtype=torch.float64).numpy()
    return np.asarray(points + 2.0**-32)  # the points are multiples of 2^-30, so the result is never 0 or 1


def resolve(sampler: object, names: object, owner: str) -> tuple[Inputs, Sequence[str]]:
    """The inputs that the user described, and their names."""
    if callable(sampler) and not isinstance(sampler, type):
        inputs, default_names = _sampler(sampler, owner)
    elif isinstance(sampler, list | tuple):
        inputs, default_names = _marginals(sampler, owner)
    elif hasattr(sampler, "shape"):
        inputs, default_names = _columns(sampler, owner)
    else:
        raise bad("sampler", owner, _ALLOWED, describe(sampler))
    if names is None:
        return inputs, tuple(map(printable, default_names))
    if not isinstance(names, Sequence) or isinstance(names, str) or len(names) != inputs.n_inputs:
        raise bad("names", owner, f"one name per input, {inputs.n_inputs} in all", repr(names))
    return inputs, tuple(printable(str(name)) for name in names)


def _marginals(sampler: Sequence[Any], owner: str) -> tuple[Inputs, Sequence[str]]:
    if not sampler:
        raise bad("sampler", owner, _ALLOWED, "an empty sequence")
    marginals = tuple(_marginal(part, i, owner) for i, part in enumerate(sampler))
    uniform = all(isinstance(marginal, UniformMarginal) for marginal in marginals)
    words = "independent, uniform on their bounds" if uniform else "independent, with the distributions given"
    return Marginals(marginals, words), _numbered(len(marginals))


def _marginal(part: Any, i: int, owner: str) -> Marginal:
    if callable(getattr(part, "ppf", None)) and not isinstance(part, type):
        edges = np.asarray(part.ppf(np.array([0.25, 0.75])))
        if edges.shape != (2,) or not np.isfinite(edges).all():
            raise bad("sampler", owner, _ALLOWED, f"the distribution {part!r} for input {i}")
        return Distribution(part)
    if isinstance(part, np.ndarray | torch.Tensor):
        part = part.tolist()
    number = isinstance(part, list | tuple) and len(part) == 2 and all(isinstance(edge, Real) for edge in part)
    if not number or not -np.inf < part[0] < part[1] < np.inf:
        advice = "A data matrix must be an array, for example np.array(X)."
        allowed = "finite bounds with low < high for every input" if number else _ALLOWED
        raise bad("sampler", owner, allowed, f"{describe(part)} for input {i}", "" if number else advice)
    return UniformMarginal(float(part[0]), float(part[1]))


def _columns(X: Any, owner: str) -> tuple[Inputs, Sequence[str]]:
    array = to_numpy(X)
    if array.ndim != 2 or array.shape[0] < 2 or array.shape[1] < 1:
        raise bad("sampler", owner, "a data matrix (rows, inputs) with at least 2 rows", f"shape {array.shape}")
    if array.dtype.kind not in "biuf":
        raise bad("sampler", owner, "a data matrix of numbers", f"dtype {array.dtype}")
    array = array.astype(np.float64)
    _require_finite(array, owner, "X")
    words = f"the {array.shape[1]} columns of X ({len(array)} rows) treated as independent{_correlation(array)}"
    columns = getattr(X, "columns", None)
    names = _numbered(array.shape[1]) if columns is None else tuple(str(name) for name in columns)
    return Marginals(tuple(Column(np.sort(column)) for column in array.T), words), names


def _sampler(draw: Any, owner: str) -> tuple[Inputs, Sequence[str]]:
    rng = np.random.default_rng(0)  # these rows show the shape and the correlation; the estimates use other draws
    first = _drawn(draw, rng, 1024, None, owner)
    name = getattr(draw, "__name__", type(draw).__name__)
    words = f"the columns of the sampler {name} treated as independent{_correlation(first)}"
    return Sampler(draw, first.shape[1], words), _numbered(first.shape[1])


def _drawn(draw: Any, rng: np.random.Generator, n: int, n_inputs: int | None, owner: str = "sensitivity") -> Array:
    """Draw n rows from the user's sampler and check them."""
    try:
        rows = to_numpy(draw(rng, n))
    except Exception as error:
        raise GralisError(f"The 'sampler' parameter of {owner} failed on (rng, {n}): {error!r}.") from error
    wanted = f"({n}, {'inputs' if n_inputs is None else n_inputs})"
    if rows.ndim != 2 or len(rows) != n or rows.shape[1] != (n_inputs or rows.shape[1]) or not rows.shape[1]:
        raise bad("sampler", owner, f"a function (rng, n) -> array of shape {wanted}", f"shape {rows.shape}")
    if rows.dtype.kind not in "biuf":
        raise bad("sampler", owner, "a function that returns real numbers", f"dtype {rows.dtype}")
    _require_finite(rows, owner, "its rows")
    return rows.astype(np.float64)


def _require_finite(rows: NDArray[Any], owner: str, where: str) -> None:
    wrong = np.argwhere(~np.isfinite(rows))
    if len(wrong):
        row, column = wrong[0].tolist()
        raise bad("sampler", owner, "finite", f"{rows[row, column]} in {where} at row {row}, column {column}")


def _correlation(rows: Array) -> str:
    """The largest rank correlation between two columns in words, which shows how wrong independence is."""
    moving = rows[:, np.ptp(rows, axis=0) > 0]
    if moving.shape[1] < 2:
        return ""
    from scipy.stats import rankdata  # importing it takes long

    matrix = np.abs(np.corrcoef(rankdata(moving, axis=0), rowvar=False))
    np.fill_diagonal(matrix, 0.0)
    return f" (largest rank correlation of two: {matrix.max():.2f})"


def _numbered(n: int) -> tuple[str, ...]:
    return tuple(f"x[{i}]" for i in range(n))
