"""Whatever the public doors are given, they return a value or raise a GralisError: nothing else, ever."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import gralis
from attack.bounded import bounded_memory
from gralis import GralisError, baselines, features

__all__ = ["bounded_memory"]  # a fixture

NUMBERS = [0.0, 1.0, -1.0, 0.5, -2.5, 1e-30, -1e30, 1e300, np.nan, np.inf, -np.inf, 7.0, 3.0]
WHOLE = [0, 1, 2, 3, 4, 5, -1, -7, 2**31, -(2**31), 2**62, 10**12]
DTYPES = ["float16", "float32", "float64", "int8", "int64", "uint8", "bool", "complex64", "object", "U3"]
QUIET = {"progress": False, "budget": 40}


@st.composite
def arrays(draw: Any) -> Any:
    """Any shape (also empty), dtype, order and strides, NumPy or torch; most of them finite floats."""
    shape = tuple(draw(st.lists(st.integers(0, 4), max_size=4)))
    easy = draw(st.booleans())
    dtype = draw(st.sampled_from(["float32", "float64"] if easy else DTYPES))
    n = int(np.prod(shape))
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    numbers = rng.normal(size=n) if easy else rng.choice(NUMBERS if dtype[0] in "fc" else WHOLE, size=n)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        array = numbers.astype(object).astype(dtype, copy=False) if dtype in ("object", "U3") else numbers.astype(dtype)
    array = array.reshape(shape)
    layout = draw(st.sampled_from(["plain", "transposed", "reversed", "strided", "broadcast", "read-only"]))
    if layout == "transposed":
        array = array.T
    elif layout == "reversed" and array.ndim:
        array = array[::-1]
    elif layout == "strided" and array.ndim:
        array = np.repeat(array, 2, axis=0)[::2]
    elif layout == "broadcast":
        array = np.broadcast_to(array, (2, *array.shape))
    elif layout == "read-only":
        array.flags.writeable = False
    if draw(st.booleans()):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return torch.from_numpy(array)
        except (TypeError, ValueError):
            return array
    return array


JUNK = st.sampled_from(
    [
        None,
        "text",
        "",
        b"bytes",
        -3,
        0,
        1e308,
        float("nan"),
        True,
        [],
        (),
        {},
        [[1.0], [1.0, 2.0]],
        object(),
        print,
        2**70,
    ]
)
SIZES = st.one_of(st.sampled_from([*WHOLE, 2**70]), JUNK)
ANY = st.one_of(
    arrays(),
    JUNK,
    st.lists(arrays(), max_size=2),
    st.tuples(arrays(), arrays()),
    st.dictionaries(st.sampled_from(["a", "b", "points"]), arrays(), max_size=2),
)
TARGETS = st.one_of(st.sampled_from([None, 0, 1, -1, 10**9, "all", "none", (0, 0), (1,), 2.5, [0, 1], [], "0"]), JUNK)


def model(*points: torch.Tensor, **named: torch.Tensor) -> torch.Tensor:
    """Two classes from whatever comes."""
    parts = [*points, *named.values()]
    total = sum(part.reshape(len(part), -1).sum(1) for part in parts)
    return torch.stack([torch.tanh(total), total], dim=1)


def harmless(call: Any, *arguments: Any, **options: Any) -> Any:
    """Call it; a GralisError with a sentence in it, and a warning, are as good as a value."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return call(*arguments, **options)
        except GralisError as error:
            assert len(str(error)) > 10  # noqa: PT017
            return None


def fuzz(n: int) -> Any:
    checks = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
    return settings(max_examples=n, deadline=None, suppress_health_check=checks)


@fuzz(60)
@given(ANY, TARGETS, st.one_of(st.just(0.0), ANY), st.one_of(st.none(), ANY))
def test_explain(x: Any, target: Any, baseline: Any, regions: Any) -> None:
    found = harmless(gralis.explain, model, x, target=target, baseline=baseline, features=regions, **QUIET)
    if found is not None:
        assert np.isfinite(found.values).all()


@fuzz(30)
@given(arrays(), st.sampled_from([0, 1]))
def test_explain_of_arrays_alone(x: Any, target: int) -> None:
    found = harmless(gralis.explain, model, x, target=target, **QUIET)
    if found is not None:
        assert found.n_features == np.asarray(x).size
        assert np.isfinite(found.values).all()


@fuzz(40)
@given(ANY, TARGETS)
def test_explain_batch(xs: Any, target: Any) -> None:
    harmless(gralis.explain_batch, model, xs, target=target, **QUIET)


@fuzz(25)
@given(arrays(), st.lists(st.one_of(SIZES, ANY), max_size=2), st.one_of(st.just("uniform"), ANY), JUNK)
def test_multiscale(x: Any, levels: Any, weights: Any, on: Any) -> None:
    harmless(gralis.multiscale, model, x, levels, weights=weights, target=0, **QUIET)
    harmless(gralis.multiscale, model, x, levels, on=on, target=0, **QUIET)


@pytest.mark.parametrize("name", ["coordinates", "groups", "columns", "tokens", "slic", "slic_ensemble"])
@fuzz(40)
@given(ANY, ANY)
def test_features_of_things(name: str, thing: Any, other: Any) -> None:
    harmless(getattr(features, name), thing)
    harmless(getattr(features, name), thing, other)


@fuzz(60)
@given(st.one_of(st.lists(SIZES, max_size=4).map(tuple), ANY), SIZES, SIZES, SIZES)
def test_features_of_shapes(shape: Any, first: Any, second: Any, third: Any) -> None:
    harmless(features.grid, shape, first)
    harmless(features.grid, shape, (first, second))
    harmless(features.channels, shape, first)
    harmless(features.windows, first, second, third)
    harmless(features.groups, shape, shape=shape, relabel=True)
    harmless(features.coordinates, shape)


@fuzz(60)
@given(ANY, ANY, SIZES, SIZES)
def test_baselines(x: Any, given_x: Any, size: Any, other: Any) -> None:
    for name in ("zeros", "mean", "mean_color", "blur", "noise", "constant"):
        make = getattr(baselines, name, None)
        if make is None:
            continue
        for arguments in ((), (size,), (x,)):
            try:
                recipe = harmless(make, *arguments)
            except TypeError as error:  # the wrong number of arguments is Python's own sentence
                assert "positional argument" in str(error)  # noqa: PT017
                continue
            if recipe is not None:
                harmless(gralis.explain, model, given_x, baseline=recipe, target=0, **QUIET)
    harmless(baselines.sample, x, size, other)
    drawn = harmless(baselines.sample, x, 2)
    if drawn is not None:
        harmless(gralis.explain, model, given_x, baseline=drawn, target=0, **QUIET)


@fuzz(25)
@given(ANY, st.one_of(st.none(), ANY), SIZES)
def test_explain_many(inputs: Any, ids: Any, size: Any) -> None:
    import tempfile

    if isinstance(inputs, str) and not inputs:  # Path("") is the current folder: not ours to read
        return
    with tempfile.TemporaryDirectory() as folder:
        harmless(gralis.explain_many, model, inputs, ids=ids, out=folder, target=0, block_size=size, **QUIET)
        found = harmless(gralis.explain_many, model, inputs, out=f"{folder}/plain", target=0, block_size=2, **QUIET)
        if found is not None:
            assert len(list(found.ids)) == found.inputs_table().num_rows > 0
