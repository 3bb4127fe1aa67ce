"""Methods from outside: one line makes them known to `run`, to the metrics and to the names; and what is refused."""

from __future__ import annotations

import inspect
import re

import numpy as np
import pytest

from gralis import GralisError, faithfulness, methods
from gralis.methods import FROM_LEDGER, METHODS

BUILT_IN = tuple(METHODS)


def shapley(model, x, *, ledger=None, seed=0, **keywords):
    return ledger.shapley()


def product(z):
    return z[:, 0] * z[:, 1] + z[:, 1]


def test_a_registered_method_of_the_ledger_gets_the_ledger_that_the_others_read() -> None:
    methods.register("shapley", shapley, from_ledger=True)
    assert "shapley" in METHODS
    assert "shapley" in FROM_LEDGER
    attributions = methods.run(["gralis", "shapley"], product, np.array([2.0, 3.0]))
    assert attributions["shapley"].values == pytest.approx([3.0, 6.0])
    assert methods.run(["shapley"], product, np.array([2.0, 3.0]))["shapley"].values == pytest.approx([3.0, 6.0])


def test_a_name_may_be_registered_again_and_then_means_the_new_method() -> None:
    methods.register("mine", shapley, from_ledger=True)
    methods.register("mine", methods.occlusion)
    assert METHODS["mine"] is methods.occlusion
    assert "mine" not in FROM_LEDGER


def test_metrics_run_a_registered_method_by_its_name() -> None:
    methods.register("mine", methods.random)
    values = methods.random(product, np.array([2.0, 3.0]))
    score = faithfulness.stability(product, np.array([2.0, 3.0]), values, method="mine")
    assert score.value == faithfulness.stability(product, np.array([2.0, 3.0]), values, method="random").value


def test_a_layer_goes_to_the_methods_that_have_one() -> None:
    layers = []

    def with_layer(model, x, *, layer="none", **keywords):
        layers.append(layer)
        return methods.occlusion(model, x, **keywords)

    methods.register("with_layer", with_layer)
    methods.run(["with_layer", "occlusion"], product, np.ones(2), layer="conv")
    methods.run(["with_layer"], product, np.ones(2))
    assert layers == ["conv", "none"]


@pytest.mark.parametrize("name", ["gralis", "random", "", 3, None])
def test_names_of_gralis_and_what_is_no_name_are_refused(name: object) -> None:
    with pytest.raises(GralisError, match=r"'name' parameter of methods\.register .*'gralis'.* Got"):
        methods.register(name, shapley)  # type: ignore[arg-type]
    with pytest.raises(GralisError, match=r"'method' parameter of methods\.register must be a function"):
        methods.register("mine", 3)  # type: ignore[arg-type]
    assert tuple(METHODS) == BUILT_IN


@pytest.mark.parametrize(
    "function", [*METHODS.values(), methods.run, methods.gradcam_map], ids=lambda function: function.__name__
)
def test_every_parameter_is_in_the_signature_and_in_the_documentation(function) -> None:
    parameters = inspect.signature(function).parameters.values()
    assert all(p.kind is not p.VAR_KEYWORD for p in parameters)
    for p in parameters:
        entries = re.findall(rf"^{p.name} : .+\n    \S", inspect.getdoc(function), flags=re.MULTILINE)
        assert len(entries) == 1, p.name
