"""All results share one base. Each test guards against one way in which four copies of it had drifted apart."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch

import gralis
from gralis import Explanation, GralisError, Uniform
from gralis.results import Attribution, Explanations, Interactions
from gralis.results.result import Result


def network(n_inputs: int, n_outputs: int) -> torch.nn.Module:
    torch.manual_seed(0)
    layers = [torch.nn.Linear(n_inputs, 8), torch.nn.Tanh(), torch.nn.Linear(8, n_outputs)]
    return torch.nn.Sequential(*layers).double().eval()


def two_arrays(age: torch.Tensor, dose: torch.Tensor) -> torch.Tensor:
    return (age.sum(1) * dose[:, 0]).tanh() + dose[:, 1]


X = torch.linspace(-1, 1, 9, dtype=torch.float64)


@pytest.fixture(scope="module")
def explanation() -> Explanation:
    return gralis.explain(network(9, 1), X, budget=200)


@pytest.fixture(scope="module")
def targets() -> Explanations:
    return gralis.explain(network(9, 3), X, target=[0, 2], budget=400)


def test_every_result_has_the_same_base(explanation: Explanation, targets: Explanations) -> None:
    levels = [gralis.features.grid((1, 4, 4), 1), gralis.features.grid((1, 4, 4), 2)]
    model = torch.nn.Sequential(torch.nn.Flatten(), network(16, 1)).eval()
    scales = gralis.multiscale(model, torch.rand(1, 4, 4, dtype=torch.float64), levels, budget=300)
    results = [
        explanation,
        explanation.shapley(),
        explanation.interactions(),
        targets,
        scales,
        explanation.sweep([1.0]),
    ]
    for result in results:
        assert isinstance(result, Result)
        half = result.half_widths(0.9)
        interval = result.interval(0.9)
        assert interval.shape == (*half.shape, 2)
        assert np.allclose((interval[..., 1] - interval[..., 0]) / 2, half, equal_nan=True)
        assert "<" in result._repr_html_()


def test_a_dict_comes_back_as_a_dict_whoever_is_asked() -> None:
    x = {"age": torch.ones(2, dtype=torch.float64), "dose": torch.ones(2, dtype=torch.float64)}
    e = gralis.explain(two_arrays, x)
    for result in (e, e.shapley(), e.integrated_gradients(), e.lime(), e.on(e.features)):
        on_input = result.to_input()
        assert list(on_input) == ["age", "dose"]
        assert on_input["dose"].shape == (2,)


def test_values_on_other_regions_have_a_place_on_the_input() -> None:
    x = torch.rand(1, 4, 4, dtype=torch.float64)
    model = torch.nn.Sequential(torch.nn.Flatten(), network(16, 1)).eval()
    e = gralis.explain(model, x, features=gralis.features.grid(x.shape, 2))
    halves = gralis.features.grid(x.shape, (4, 2))
    carried = e.on(halves)
    on_input = carried.to_input()
    assert on_input.shape == (1, 4, 4)
    assert np.allclose(on_input[0, 0], carried.values[[0, 0, 1, 1]])


def test_the_notebook_shows_no_kernel_for_shapley_values_and_tells_a_missed_tolerance() -> None:
    shapley = gralis.explain(network(9, 1), X, plan="values", budget=200)
    assert "Gaussian" not in shapley._repr_html_()
    assert "Gaussian" not in repr(shapley)
    missed = gralis.explain(network(9, 1), X, tolerance=1e-9, budget=200)
    assert not missed.reached
    assert "not reached" in missed._repr_html_()
    assert "not reached" in repr(missed)


def test_plus_minus_is_a_simultaneous_half_width_everywhere(explanation: Explanation, targets: Explanations) -> None:
    swept = explanation.sweep([0.75])
    i = int(np.argmax(np.abs(explanation.values)))
    shown = f"{explanation.half_widths()[i]:.2g}"
    assert shown != f"{explanation.stderr[i]:.2g}"
    assert re.search(rf"\+-{re.escape(shown)}\b", repr(swept))
    row = next(line for line in repr(explanation).splitlines() if line.startswith(f"{explanation.names[i]} "))
    assert f" {shown} " in row
    j = int(np.argmax(np.abs(targets.values).max(0)))
    row = next(line for line in repr(targets).splitlines() if line.startswith(f"{targets[0].names[j]} "))
    assert f"+- {targets[0].half_widths()[j]:.2g}" in row
    pairs: Interactions = explanation.interactions()
    coalition, _ = pairs.top(1)[0]
    width = pairs.half_widths()[pairs.coalitions.index(coalition)]
    assert f"+- {width:.2g}" in repr(pairs)
    attribution: Attribution = explanation.shapley()
    assert f"+- {attribution.half_widths()[i]:.2g}" in repr(attribution)


def test_after_loading_a_contrast_knows_its_input_and_costs_do_not_double(targets: Explanations, tmp_path) -> None:
    paths = [e.save(tmp_path / f"{number}.gralis") for number, e in enumerate(targets)]
    again = Explanations(tuple(gralis.load(path) for path in paths), targets.labels)
    assert np.array_equal(again.contrast(0, 1).values, targets.contrast(0, 1).values)
    assert again.cost.n_forwards == targets.cost.n_forwards == targets[0].cost.n_forwards
    assert again.cost.n_rays == targets.cost.n_rays
    other = gralis.explain(network(9, 3), X + 1, target=1, budget=200)
    with pytest.raises(GralisError, match="different inputs"):
        Explanations((again[0], other), ("a", "b")).contrast(0, 1)


def test_two_inputs_of_a_batch_are_counted_both_even_if_they_are_equal() -> None:
    both = gralis.explain_batch(network(9, 1), torch.stack([X, X]), budget=200)
    assert both.cost.n_forwards == sum(e.cost.n_forwards for e in both)


def test_a_difference_refuses_rays_that_were_drawn_separately() -> None:
    model = network(9, 2)
    apart = [gralis.explain(model, X, target=target, budget=200, seed=target) for target in (0, 1)]
    with pytest.raises(GralisError, match="same rays"):
        Explanations(tuple(apart), ("a", "b")).contrast(0, 1)


def test_a_design_is_shared_by_the_questions_of_one_input(targets: Explanations) -> None:
    assert targets[0].design is targets[1].design
    assert targets[0].with_kernel(Uniform()).design.estimator is targets[0].design.estimator
