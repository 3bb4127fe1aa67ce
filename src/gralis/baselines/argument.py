"""The `baseline` argument of `explain`, in all its forms, as points that fit x."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from numbers import Real
from typing import Any, TypeAlias, TypeGuard

import numpy as np
import torch
from numpy.typing import NDArray

from gralis.arrays import Shape, describe, plain, to_numpy
from gralis.baselines.baselines import Baselines
from gralis.baselines.distribution import ALLOWED, Sample, as_numbers, shape_of
from gralis.baselines.recipes import RECIPES, Recipe
from gralis.errors import GralisError, bad

__all__ = ["resolve"]

Leaf: TypeAlias = NDArray[Any] | torch.Tensor

_MOST_KEPT = 2**12  # numbers of a leaf whose constant baseline is kept for the next input


def resolve(
    baseline: object,
    x_leaves: tuple[Leaf, ...],
    *,
    keys: tuple[str, ...] | None = None,
    x_user: object = None,
    as_given: bool = False,
) -> Baselines:
    """The `baseline` argument of `explain` as points over these leaves, with the dtype and device of each leaf.

    Parameters
    ----------
    baseline : object
        A number, an array like x, a name, a recipe, a `Sample`, a function x -> x', or a tuple or dict of these with
        one entry per leaf. `Baselines` are returned as they are.
    x_leaves : tuple of array or tensor
        The leaves of x.
    keys : tuple of str, optional
        The keys of the leaves if x is a dict.
    x_user : object, optional
        x in the form in which the user gave it, for a baseline that is a function.
    as_given : bool, default=False
        Whether points of an integer leaf keep its dtype, because a layer turns them into numbers that can move. By
        default they get torch's default dtype.

    Returns
    -------
    Baselines

    Examples
    --------
    >>> resolve("mean-color", (np.ones((3, 8, 8)),))
    Baselines(mean-color, 1 point)
    >>> from gralis.baselines import sample
    >>> resolve(sample(np.eye(4)), (np.ones(4),)).weights.tolist()
    [0.25, 0.25, 0.25, 0.25]
    """
    if isinstance(baseline, Baselines):
        return baseline
    name = _name(baseline)
    if isinstance(baseline, float) and not torch.is_inference_mode_enabled() and _are_few(x_leaves):
        return _constant(baseline, name, tuple((tuple(x.shape), x.dtype, x.device) for x in x_leaves), keys)
    return _resolved(baseline, name, x_leaves, keys, x_user, as_given)


def _are_few(x_leaves: tuple[Leaf, ...]) -> TypeGuard[tuple[torch.Tensor, ...]]:
    """Whether the leaves are floating tensors with so few numbers that a baseline for them may be kept."""
    return all(isinstance(x, torch.Tensor) and x.is_floating_point() and x.numel() <= _MOST_KEPT for x in x_leaves)


@lru_cache(maxsize=32)
def _constant(
    number: float,
    name: str,
    kinds: tuple[tuple[Shape, torch.dtype, torch.device], ...],
    keys: tuple[str, ...] | None,
) -> Baselines:
    """The same number everywhere, made once for all inputs with leaves of these shapes, types and devices."""
    leaves = tuple(torch.empty(shape, dtype=dtype, device=device) for shape, dtype, device in kinds)
    return _resolved(number, name, leaves, keys, None, False)


def _resolved(
    baseline: object,
    name: str,
    x_leaves: tuple[Leaf, ...],
    keys: tuple[str, ...] | None,
    x_user: object,
    as_given: bool,
) -> Baselines:
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
    if n_leaves > 1 and not isinstance(baseline, str | Recipe) and shape_of(baseline):
        raise bad("baseline", "explain", f"a tuple of arrays, for the {n_leaves} leaves of x", describe(baseline))
    return (baseline,) * n_leaves


def _point(part: object, leaf: Leaf, index: int) -> NDArray[Any]:
    """x' of one leaf, shaped like the leaf."""
    if isinstance(part, str):
        if part not in RECIPES:
            raise bad("baseline", "explain", ALLOWED, repr(part))
        part = RECIPES[part]()
    if isinstance(part, Recipe):
        part = part.point(to_numpy(leaf).astype(np.float64), index)
    if isinstance(part, Sample):
        raise bad("baseline", "explain", "sample((X0, X1, ...)), which draws whole rows", "a sample for a single leaf")
    array, shape = as_numbers(part), tuple(leaf.shape)
    try:
        return np.broadcast_to(array, shape)
    except ValueError as error:
        advice = "x has no batch axis; for several baselines use gralis.baselines.sample(X)."
        raise bad("baseline", "explain", f"of shape {shape}, as x", f"shape {array.shape}", advice) from error


def _rows(part: object, rows: NDArray[np.int64]) -> NDArray[Any]:
    """These rows of the data of one leaf; a tensor is indexed on its device, so that only these rows are copied."""
    if isinstance(part, torch.Tensor):
        return as_numbers(part[torch.from_numpy(rows).to(part.device)])
    return as_numbers(part)[rows]


def _tensor(points: NDArray[Any], leaf: Leaf, leaf_name: str, as_given: bool) -> torch.Tensor:
    """(n_baselines, *leaf.shape) with the leaf's dtype and device, every entry finite."""
    shape = tuple(leaf.shape)
    if points.shape[1:] != shape:
        allowed = f"rows shaped like {leaf_name}, (N, {', '.join(map(str, shape))})"
        raise bad("X", "sample", allowed, f"shape {points.shape}")
    like = leaf if isinstance(leaf, torch.Tensor) else torch.from_numpy(np.empty(0, dtype=leaf.dtype))
    dtype = like.dtype if as_given or like.dtype.is_floating_point else torch.get_default_dtype()
    if points.dtype.kind == "u" and points.dtype.itemsize == 8:  # torch knows no such numbers
        points = points.astype(np.float64)
    tensor = torch.from_numpy(plain(points)).to(device=like.device, dtype=dtype)
    finite = torch.isfinite(tensor)
    if not finite.all():
        row, *place = torch.argwhere(~finite)[0].tolist()
        where = f"{leaf_name} at index {tuple(place)}" + (f" of row {row}" if len(points) > 1 else "")
        raise bad("baseline", "explain", "finite", f"{tensor[row][tuple(place)].item()} in {where}")
    return tensor


def _name(baseline: object) -> str:
    """How the provenance names the baseline."""
    if isinstance(baseline, Real):
        return f"constant {baseline}"
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
    return "array"
