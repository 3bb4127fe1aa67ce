"""explain end to end: what comes back, and how sure it is."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

import gralis
from explained import smooth, spread, truth
from gralis import Explanation, Gaussian, SizeKernel, Uniform, plans


def test_the_five_lines():
    torch_seed = torch.Generator().manual_seed(3)
    model = torch.nn.Sequential(torch.nn.Linear(5, 8), torch.nn.Tanh(), torch.nn.Linear(8, 4)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=torch_seed))
    x = torch.linspace(-1, 1, 5)
    explanation = gralis.explain(model, x, baseline=0.1, target=3)
    assert explanation.values.shape == explanation.stderr.shape == (5,)
    assert explanation.values.dtype == np.float64
    assert list(explanation.names) == ["x[0]", "x[1]", "x[2]", "x[3]", "x[4]"]
    with torch.no_grad():
        assert explanation.f_x == pytest.approx(model(x[None])[0, 3].item())
        assert explanation.f_baseline == pytest.approx(model(torch.full((1, 5), 0.1))[0, 3].item())
    assert explanation.delta == explanation.f_x - explanation.f_baseline
    assert explanation.complete is True
    assert explanation.reached is None
    assert explanation.plan["name"] == "exhaustive"  # by itself: 31 rays fit into the default budget
    assert explanation.provenance["seed"] == 0
    assert explanation.provenance["target"] == "output[3]"
    assert set(explanation.provenance["hashes"]) == {"x", "baseline", "features", "model"}
    assert explanation.cost.n_gradients <= 1024
    assert explanation.cost.seconds > 0
    assert explanation.to_dict()["values"] == explanation.values.tolist()


def test_the_table_says_what_was_found_and_what_it_cost():
    explanation = gralis.explain(smooth, spread(20), budget=400)
    text = str(explanation)
    assert "residual" in text
    assert f"{explanation.cost.n_gradients} gradients on {explanation.cost.n_rays} rays" in text
    assert f"{explanation.cost.n_forwards} forwards" in text
    assert "plan shared" in text
    assert "5 more" in text  # 15 of the 20 features have a row of their own
    assert explanation.top(1)[0][0] in text


def test_top_is_sorted_by_size():
    explanation = gralis.explain(smooth, spread(6))
    found = explanation.top(4)
    assert [abs(phi) for _, phi, _ in found] == sorted(np.abs(explanation.values), reverse=True)[:4]
    assert len(explanation.top(99)) == 6


def test_intervals_are_simultaneous_and_widen_with_the_level():
    explanation = gralis.explain(smooth, spread(8), budget=400)
    narrow, usual, wide = (explanation.interval(level) for level in (0.5, 0.95, 0.999))
    assert usual.shape == (8, 2)
    assert np.array_equal(explanation.interval(), usual)
    np.testing.assert_allclose(usual.mean(1), explanation.values, rtol=1e-12)
    assert (np.diff(narrow) < np.diff(usual)).all()
    assert (np.diff(usual) < np.diff(wide)).all()
    assert (np.diff(usual)[:, 0] / 2 > 2.7 * explanation.stderr).all()  # Bonferroni over eight, beyond 1.96


def test_an_exact_explanation_has_no_width():
    explanation = gralis.explain(smooth, spread(4))
    assert explanation.stderr.tolist() == [0] * 4
    assert 0 < np.diff(explanation.interval(), axis=1).max() < 1e-13  # rounding
    assert "exact" in str(explanation)


def test_a_single_replicate_does_not_know_its_error():
    explanation = gralis.explain(smooth, spread(6), plan=plans.permutation(n_permutations=2))
    assert np.isnan(explanation.stderr).all()
    assert np.isnan(explanation.interval()).all()
    assert "unknown" in str(explanation)


def test_a_sweep_is_one_explanation_per_sigma():
    explanation = gralis.explain(smooth, spread(6), budget=300)
    sweep = explanation.sweep([0.2, 0.75, math.inf])
    assert sweep.settings == (0.2, 0.75, math.inf)
    assert sweep.values.shape == sweep.stderr.shape == (3, 6)
    assert np.array_equal(sweep.values[1], explanation.values)
    assert np.array_equal(sweep.values[2], explanation.with_kernel(Uniform()).values)
    assert isinstance(sweep.explanations[0], Explanation)
    assert "sigma" in repr(sweep)


@pytest.mark.parametrize("sigma", [1e-300, 1e-9, 1e9, 1e300])
def test_any_sigma_is_a_kernel(sigma):
    explanation = gralis.explain(smooth, spread(5), kernel=Gaussian(sigma))
    limit = "uniform" if sigma > 1 else "singles"
    expected = {
        "uniform": truth(smooth, spread(5), kernel=Uniform()),
        "singles": truth(smooth, spread(5), kernel=SizeKernel(lambda s: float(s == 0))),
    }
    np.testing.assert_allclose(explanation.values, expected[limit], rtol=1e-6)
