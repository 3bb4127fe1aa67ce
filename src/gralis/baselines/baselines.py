"""Baselines: the reference x' that features are switched to, one point or a distribution of points.

A recipe makes x' from x: `zeros()`, `mean()`, `mean_color()`, `blur(sigma)`, `noise(seed)`, or its name as a string.
`sample(X, n)` is a distribution: attributions are averaged over its rows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from gralis.arrays import Shape, describe, plain, to_numpy
from gralis.baselines.recipes import RECIPES, Recipe, blur, mean, mean_color, noise, zeros
from gralis.checks import is_whole
from gralis.errors import GralisError, bad

__all__ = ["Baselines", "Recipe", "Sample", "blur", "mean", "mean_color", "noise", "resolve", "sample", "zeros"]

Leaf: TypeAlias = NDArray[Any] | torch.Tensor

_ALLOWED = (
    "a number, an array like x (or a tuple or dict of them when x is one), a callable x -> baseline, "
    f"gralis.baselines.sample(X), or one of {', '.join(map(repr, RECIPES))}"
)


@dataclass(frozen=True, eq=False, repr=False)
class Baselines:
    """n_baselines reference points and their weights, which sum to one.

    >>> Baselines((torch.zeros(2, 3),), np.array([0.5, 0.5]), "two")
    Baselines(two, 2 points)
    """

    points: tuple[torch.Tensor, ...]  # one per leaf: (n_baselines, *leaf.shape)
    weights: NDArray[np.float64]  # (n_baselines,)
    name: str

    def __post_init__(self) -> None:
        rows = [len(points) for points in self.points]
        if not rows or set(rows) != {len(self.weights)} or not rows[0]:
            raise bad("points", "Baselines", f"{len(self.weights)} (one or more) rows on every leaf", f"{rows} rows")
        if (self.weights < 0).any() or not math.isclose(self.weights.sum(), 1.0, abs_tol=1e-9):
            raise bad("weights", "Baselines", ">= 0 with sum 1", f"the sum {self.weights.sum()}")
        weights = np.array(self.weights, dtype=np.float64)
        weights.flags.writeable = False
        object.__setattr__(self, "weights", weights)

    @property
    def n_baselines(self) -> int:
        """How many reference points."""
        return len(self.weights)

    def __repr__(self) -> str:
        return f"Baselines({self.name}, {self.n_baselines} {'point' if self.n_baselines == 1 else 'points'})"


@dataclass(frozen=True, eq=False)
class Sample:
    """A distribution of baselines: rows of X, each with weight 1 / n. Made by `sample`."""

    X: object
    n_rows: int
    n: int | None
    seed: int

    def rows(self) -> NDArray[np.int64]:
        """Which rows of X are used, in increasing order."""
        if self.n is None:
            return np.arange(self.n_rows)
        return np.sort(np.random.default_rng(self.seed).choice(self.n_rows, self.n, replace=False))

    def __repr__(self) -> str:
        part = "all rows" if self.n is None else f"n={self.n}, seed={self.seed}"
        return f"sample({self.n_rows} rows, {part})"


def sample(X: object, n: int | None = None, seed: int = 0) -> Sample:
    """x' ~ the rows of X (N, *x.shape), weight 1 / n each: attributions are averaged over them.

    n=None uses all N rows; n < N draws n rows without replacement. For several leaves X is a tuple (or dict) of
    arrays with N rows each, drawn together.

    >>> sample(np.zeros((200, 3)), n=50)
    sample(200 rows, n=50, seed=0)
    """
    parts = tuple(X.values()) if isinstance(X, Mapping) else X if isinstance(X, tuple) else (X,)
    shapes = [_shape(part) for part in parts]
    if not shapes or any(not shape or shape[0] != shapes[0][0] for shape in shapes) or not shapes[0][0]:
        raise bad("X", "sample", "an array (N, *x.shape) with N >= 1, or a tuple of them", f"shapes {shapes}")
    n_rows = shapes[0][0]
    if n is not None and (not is_whole(n, 1) or n > n_rows):
        raise bad("n", "sample", f"None (all rows) or an int from 1 to the {n_rows} rows of X", repr(n))
    if not is_whole(seed, 0):
        raise bad("seed", "sample", "an int >= 0", repr(seed))
    return Sample(X, n_rows, n, seed)


def resolve(
    baseline: object,
    x_leaves: tuple[Leaf, ...],
    *,
    keys: tuple[str, ...] | None = None,
    x_user: object = None,
    as_given: bool = False,
) -> Baselines:
    """What `explain(baseline=...)` accepts, as Baselines over these leaves.

    `keys`: the keys of the leaves when x is a dict. `x_user`: x as the user gave it, for a callable baseline.
    Points take the dtype and device of their leaf; an integer leaf gives torch's default float. `as_given`: it keeps
    its own dtype, for inputs that a layer turns into numbers that can move.

    >>> resolve("mean-color", (np.ones((3, 8, 8)),))
    Baselines(mean-color, 1 point)
    >>> resolve(sample(np.eye(4)), (np.ones(4),)).weights.tolist()
    [0.25, 0.25, 0.25, 0.25]
    """
    if isinstance(baseline, Baselines):
        return baseline
    name = _name(baseline)
    if callable(baseline) and not isinstance(baseline, Recipe):
        x = x_user if x_user is not None else x_leaves if len(x_leaves) > 1 else x_leaves[0]
        try:
            baseline = baseline(x)
        except Exception as error:
            raise GralisError(f"The 'baseline' parameter of explain, {name}, failed on x: {error!r}.") from error
    if isinstance(baseline, Sample):
        if isinstance(baseline.X, tuple) and len(baseline.X) != len(x_leaves):
            got = f"a sample of {len(baseline.X)} arrays"
            raise bad("baseline", "explain", f"one array of rows per leaf of x, {len(x_leaves)} in all", got)
        rows = baseline.rows()
        parts = [_rows(part, rows) for part in _per_leaf(baseline.X, len(x_leaves), keys)]
    else:
        rows = np.zeros(1, dtype=np.int64)
        per_leaf = _per_leaf(baseline, len(x_leaves), keys)
        parts = [_point(part, leaf, i)[None] for i, (part, leaf) in enumerate(zip(per_leaf, x_leaves, strict=True))]
    leaf_names = keys or (("x",) if len(parts) == 1 else tuple(f"x[{i}]" for i in range(len(parts))))
    points = tuple(_tensor(*each, as_given) for each in zip(parts, x_leaves, leaf_names, strict=True))
    return Baselines(points, np.full(len(rows), 1.0 / len(rows)), name)


def _per_leaf(baseline: object, n_leaves: int, keys: tuple[str, ...] | None) -> tuple[Any, ...]:
    """The baseline of every leaf; a number, a name or a recipe serves all of them."""
    if isinstance(baseline, Mapping):
        if keys is None or set(baseline) != set(keys):
            allowed = f"a dict with the keys {list(keys)}" if keys else "a dict only when x is one"
            raise bad("baseline", "explain", allowed, f"keys {list(baseline)}")
        return tuple(baseline[key] for key in keys)
    if isinstance(baseline, tuple | list) and n_leaves > 1:
        if len(baseline) != n_leaves:
            raise bad("baseline", "explain", f"one per leaf of x, {n_leaves} in all", f"{len(baseline)}")
        return tuple(baseline)
    if isinstance(baseline, tuple) and len(baseline) == 1:
        return baseline
    if n_leaves > 1 and not isinstance(baseline, str | Recipe) and _shape(baseline):
        raise bad("baseline", "explain", f"a tuple of arrays, for the {n_leaves} leaves of x", describe(baseline))
    return (baseline,) * n_leaves


def _point(part: object, leaf: Leaf, index: int) -> NDArray[Any]:
    """One leaf's x', shaped like the leaf."""
    if isinstance(part, str):
        if part not in RECIPES:
            raise bad("baseline", "explain", _ALLOWED, repr(part))
        part = RECIPES[part]()
    if isinstance(part, Recipe):
        part = part.point(to_numpy(leaf).astype(np.float64), index)
    if isinstance(part, Sample):
        raise bad("baseline", "explain", "sample((X0, X1, ...)), which draws whole rows", "a sample for a single leaf")
    array, shape = _numbers(part), tuple(leaf.shape)
    try:
        return np.broadcast_to(array, shape)
    except ValueError as error:
        advice = "x has no batch axis; for several baselines use gralis.baselines.sample(X)."
        raise bad("baseline", "explain", f"of shape {shape}, as x", f"shape {array.shape}", advice) from error


def _numbers(value: object) -> NDArray[Any]:
    try:
        array = to_numpy(value)
    except (TypeError, ValueError, RuntimeError) as error:  # torch refuses a list of tensors with a graph
        raise bad("baseline", "explain", _ALLOWED, f"{describe(value)} ({error})") from error
    if array.dtype.kind not in "biuf":
        raise bad("baseline", "explain", _ALLOWED, describe(value))
    return array


def _rows(part: object, rows: NDArray[np.int64]) -> NDArray[Any]:
    """These rows of one leaf's X; a tensor is indexed where it lives, so that only they are copied."""
    if isinstance(part, torch.Tensor):
        return _numbers(part[torch.from_numpy(rows).to(part.device)])
    return _numbers(part)[rows]


def _tensor(points: NDArray[Any], leaf: Leaf, leaf_name: str, as_given: bool) -> torch.Tensor:
    """(n_baselines, *leaf.shape) with the leaf's dtype and device, every entry finite."""
    shape = tuple(leaf.shape)
    if points.shape[1:] != shape:
        allowed = f"rows shaped like {leaf_name}, (N, {', '.join(map(str, shape))})"
        raise bad("X", "sample", allowed, f"shape {points.shape}")
    like = leaf if isinstance(leaf, torch.Tensor) else torch.from_numpy(np.empty(0, dtype=leaf.dtype))
    dtype = like.dtype if as_given or like.dtype.is_floating_point else torch.get_default_dtype()
    tensor = torch.from_numpy(plain(points)).to(device=like.device, dtype=dtype)
    wrong = torch.argwhere(~torch.isfinite(tensor))
    if len(wrong):
        row, *place = wrong[0].tolist()
        where = f"{leaf_name} at index {tuple(place)}" + (f" of row {row}" if len(points) > 1 else "")
        raise bad("baseline", "explain", "finite", f"{tensor[row][tuple(place)].item()} in {where}")
    return tensor


def _shape(value: object) -> Shape:
    shape = getattr(value, "shape", None)
    return tuple(_numbers(value).shape if shape is None else shape)


def _name(baseline: object) -> str:
    """What the provenance calls it."""
    if isinstance(baseline, str):
        return baseline
    if isinstance(baseline, Recipe | Sample):
        return repr(baseline)
    if callable(baseline):
        return f"callable {getattr(baseline, '__name__', type(baseline).__name__)}"
    if isinstance(baseline, Mapping):
        return ", ".join(f"{key}: {_name(part)}" for key, part in baseline.items())
    if isinstance(baseline, tuple) and not all(isinstance(part, Real) for part in baseline):
        return ", ".join(_name(part) for part in baseline)
    return f"constant {baseline}" if isinstance(baseline, Real) else "array"
