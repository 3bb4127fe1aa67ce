"""Metrics from outside, what is refused, and that every metric shows and documents every parameter."""

from __future__ import annotations

import inspect
import re

import numpy as np
import pytest

from gralis import GralisError, faithfulness
from gralis.faithfulness import METRICS, NoisyLinear, Score

BUILT_IN = tuple(METRICS)


def largest(model, x, attribution, **keywords):
    return Score("largest", float(np.max(attribution)), "higher")


def test_a_registered_metric_is_among_the_metrics() -> None:
    faithfulness.register("largest", largest)
    assert list(METRICS) == [*BUILT_IN, "largest"]
    assert METRICS["largest"](None, None, np.array([1.0, 3.0])).value == 3.0


@pytest.mark.parametrize("name", ["gini", "deletion", "", 3, None])
def test_names_of_gralis_and_what_is_no_name_are_refused(name: object) -> None:
    with pytest.raises(GralisError, match=r"'name' parameter of faithfulness\.register .*'gini'.* Got"):
        faithfulness.register(name, largest)  # type: ignore[arg-type]
    with pytest.raises(GralisError, match=r"'metric' parameter of faithfulness\.register must be a function"):
        faithfulness.register("largest", "gini")  # type: ignore[arg-type]
    assert tuple(METRICS) == BUILT_IN


@pytest.mark.parametrize("metric", [*METRICS.values(), faithfulness.rank_agreement], ids=lambda metric: metric.__name__)
def test_every_parameter_is_in_the_signature_and_in_the_documentation(metric) -> None:
    parameters = inspect.signature(metric).parameters
    assert {"target", "baseline", "features", "seed", "batch_size"} <= set(parameters)
    assert all(p.kind is not p.VAR_KEYWORD for p in parameters.values())
    for name in parameters:
        entries = re.findall(rf"^{name} : .+\n    \S", inspect.getdoc(metric), flags=re.MULTILINE)
        assert len(entries) == 1, name


@pytest.mark.parametrize("name", ["road_morf", "road_lerf", "road_gap"])
def test_road_shows_that_it_imputes_unless_it_gets_another_baseline(name: str) -> None:
    metric = METRICS[name]
    default = inspect.signature(metric).parameters["baseline"].default
    assert default == NoisyLinear()
    x, values = np.arange(16.0).reshape(4, 4), np.arange(16.0)
    by_default, explicit, zeros = (
        metric(lambda z: (z**2).sum((1, 2)), x, values, **baseline).value
        for baseline in ({}, {"baseline": default}, {"baseline": 0.0})
    )
    assert by_default == explicit != zeros
