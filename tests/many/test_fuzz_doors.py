"""The doors for data sets, methods and metrics: given anything, they return a value or raise a GralisError."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from torch.utils import data

import gralis
from gralis import faithfulness, methods
from many.test_fuzz import ANY, JUNK, QUIET, SIZES, TARGETS, arrays, bounded_memory, fuzz, harmless, model

__all__ = ["bounded_memory"]

CELLS = [
    "1",
    "2.5",
    "-3",
    "",
    "nan",
    "1e400",
    "Rome",
    " 7 ",
    '"',
    '"8"',
    "a",
    "b",
    "\x00",
    "\ud800",
    "\xe9",
    ";",
    "1_0",
]


def explained(inputs: Any, **options: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        found = harmless(gralis.explain_many, model, inputs, **{"out": folder, "target": 0, **QUIET, **options})
        if found is not None:
            assert len(list(found.ids)) == found.inputs_table().num_rows > 0
            harmless(gralis.global_importance, found)


@fuzz(30)
@given(ANY, st.one_of(st.none(), SIZES), st.sampled_from(["plain", "shuffle", "sampler", "batches", "odd"]))
def test_loaders(inputs: Any, size: Any, kind: str) -> None:
    options: dict[str, Any] = {"batch_size": size}
    if kind == "shuffle":
        options["shuffle"] = True
    elif kind == "sampler":
        options["sampler"] = data.SubsetRandomSampler([0])
    elif kind == "batches":
        options = {"batch_sampler": [[0]]}
    elif kind == "odd":
        options["collate_fn"] = lambda batch: batch
    try:
        loader = data.DataLoader(inputs, **options)
    except Exception:  # torch's own sentence: there is no such loader
        return
    try:
        list(loader)
    except Exception:  # the loader itself cannot be iterated: its error is the user's
        return
    explained(loader)


@fuzz(30)
@given(st.dictionaries(st.one_of(st.text(max_size=3), st.integers(), st.floats(), st.none()), ANY, max_size=3))
def test_dicts(inputs: Any) -> None:
    explained(inputs)


@fuzz(30)
@given(st.lists(st.one_of(ANY, st.tuples(arrays(), st.one_of(JUNK, arrays(), st.text(max_size=3)))), max_size=4), JUNK)
def test_generators_and_pairs(elements: Any, ids: Any) -> None:
    explained(element for element in elements)
    explained((element for element in elements), ids=ids)
    explained(elements, target="label", block_size=2)
    explained(elements, target="predicted")


@fuzz(50)
@given(
    st.lists(st.lists(st.sampled_from(CELLS), max_size=4), max_size=5),
    st.sampled_from(["a", None, "b", "x"]),
    st.sampled_from(["a", None, "b", 3]),
    st.sampled_from([(), ["a"], "a", None, ["x"]]),
    st.sampled_from([",", ";", "\t"]),
    st.booleans(),
)
def test_tables(lines: Any, name: Any, label: Any, drop: Any, delimiter: str, header: bool) -> None:
    text = "\n".join(delimiter.join(line) for line in ([["a", "b", "c"]] if header else []) + lines)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "t.csv")
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
        explained(path)
        source = harmless(gralis.many.table, path, id=name, label=label, drop=drop)
        if source is not None:
            explained(source)
        harmless(gralis.many.means, path, drop=drop)


@fuzz(40)
@given(st.one_of(ANY, st.lists(JUNK, max_size=2)), JUNK)
def test_global_importance(results: Any, by: Any) -> None:
    harmless(gralis.global_importance, results)
    harmless(gralis.global_importance, results, by)
    harmless(gralis.many.Results, results)
    harmless(gralis.many.folder, results, size=by)


def even(thing: Any) -> bool:
    """Whether it is an array, or becomes one."""
    try:
        np.asarray(thing)
    except Exception:
        return False
    return True


EVEN = ANY.filter(even)
METRICS = sorted(set(faithfulness.METRICS) - {"stability"})


ANNOTATED: dict[str, Any] = {"annotation": np.eye(2, dtype=bool)}
EXPLAINED: dict[str, Any] = {"method": methods.occlusion}
NEEDED = dict.fromkeys(("iou", "mass_inside", "pointing_game"), ANNOTATED)
NEEDED |= dict.fromkeys(("max_sensitivity", "model_randomisation"), EXPLAINED)


@pytest.mark.parametrize("name", METRICS)
@fuzz(20)
@given(EVEN, EVEN, TARGETS, st.one_of(st.just(0.0), ANY), st.one_of(st.none(), ANY), SIZES)
def test_metrics(name: str, x: Any, attribution: Any, target: Any, baseline: Any, regions: Any, seed: Any) -> None:
    call = getattr(faithfulness, name)
    easy = np.linspace(-1.0, 1.0, 12).reshape(3, 2, 2)
    for arguments, options in (
        ((x, attribution), {"target": target, "baseline": baseline, "features": regions}),
        ((x, x), {"target": 0}),
        ((easy, attribution), {"target": 0}),
        ((easy, easy), {"target": target, "seed": seed}),
        ((easy, easy), {"target": 0, "baseline": baseline}),
        ((easy, easy), {"target": 0, "features": regions}),
        ((easy, easy), {"target": 0, "batch_size": seed}),
    ):
        harmless(call, model, *arguments, **NEEDED.get(name, {}), **options)


@pytest.mark.parametrize("name", sorted(methods.METHODS))
@fuzz(20)
@given(ANY, TARGETS, st.one_of(st.just(0.0), ANY), st.one_of(st.none(), ANY), SIZES)
def test_methods(name: str, x: Any, target: Any, baseline: Any, regions: Any, size: Any) -> None:
    call = methods.METHODS[name]
    easy = np.linspace(-1.0, 1.0, 4)
    for point, options in (
        (x, {"target": target, "baseline": baseline, "features": regions}),
        (x, {"target": 0}),
        (easy, {"target": 0, "budget": size if not isinstance(size, int) or size < 100 else 100}),
        (easy, {"target": 0, "seed": size if name != "random" else 0}),
        (easy, {"target": 0, "batch_size": size}),
        (easy, {"target": 0, "features": regions}),
    ):
        harmless(call, model, point, **options)


@pytest.mark.parametrize("name", ["deletion", "infidelity", "gini"])
def test_uneven_attributions(name: str) -> None:
    harmless(getattr(faithfulness, name), model, np.ones(3), [[1.0], [1.0, 2.0]], target=0)


@pytest.mark.parametrize("name", sorted(methods.FROM_LEDGER))
def test_a_ledger_that_is_none(name: str) -> None:
    harmless(methods.METHODS[name], model, np.ones(3), target=0, ledger=0.5)


def test_a_negative_seed_of_random() -> None:
    harmless(methods.random, model, np.ones(3), target=0, seed=-7)


def test_the_easy_calls_do_give_values() -> None:
    """Else every fuzz above could pass by refusing everything."""
    x = np.linspace(-1, 1, 4)
    for name in set(methods.METHODS) - {"gradcam", "gradcam_lin"}:
        assert harmless(methods.METHODS[name], model, x, target=0) is not None, name
    assert harmless(faithfulness.deletion, model, x, x, target=0) is not None
