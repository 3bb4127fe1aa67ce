"""What explain promises to repeat: the same seed, any batch size, any layout, nothing left behind."""

from __future__ import annotations

import gc
import random
import weakref

import numpy as np
import pytest
import torch

import gralis
from explained import BUDGETS, SAMPLED, draw, setting, smooth, spread
from gralis import Uniform


@pytest.mark.parametrize("plan", BUDGETS)
@pytest.mark.parametrize(("dtype", "close"), [(torch.float32, 1e-6), (torch.float64, 1e-10)])
def test_same_seed_same_result_at_any_batch_size(plan, dtype, close):
    x = spread(6).to(dtype)
    options = {**setting(plan), "seed": 5}
    first, *others = (gralis.explain(smooth, x, batch_size=size, **options) for size in ("auto", 1, 3, 17))
    for other in others:
        assert np.array_equal(other.ledger.masks, first.ledger.masks)
        assert np.abs(other.values - first.values).max() <= close * np.abs(first.values).max()
        assert np.abs(other.stderr - first.stderr).max() <= close * np.abs(first.values).max()


def test_the_layout_of_the_batches_does_not_matter():
    """A fixed batch size keeps the plain layout for a small image; the search tries channels_last too."""
    weight, x = draw(4, 3, 5, 5, seed=1), draw(3, 20, 20, seed=2)

    def conv(z: torch.Tensor) -> torch.Tensor:
        return torch.tanh(torch.nn.functional.conv2d(z, weight)).mean((1, 2, 3))

    options = {"features": gralis.features.grid(x.shape, 10), "plan": "permutation", "budget": 400}
    plain = gralis.explain(conv, x, batch_size=16, **options)
    searched = gralis.explain(conv, x, **options)
    np.testing.assert_allclose(searched.values, plain.values, rtol=1e-10)
    strided = gralis.explain(conv, x.permute(1, 2, 0).contiguous().permute(2, 0, 1), **options)
    np.testing.assert_allclose(strided.values, plain.values, rtol=1e-10)
    assert strided.to_input().shape == (3, 20, 20)


def test_nothing_outlives_its_explanation():
    """No cycle holds the ledger: it goes when the explanation goes, not when the collector comes."""
    gc.collect()
    gc.disable()
    try:
        found = gralis.explain(smooth, spread(6), budget=300)
        left = weakref.ref(found.ledger)
        del found
        assert left() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("batch_size", [8, "auto"])
def test_a_model_that_needs_the_plain_layout_gets_it(batch_size):
    """view() refuses points with their channels innermost, and many networks flatten with it."""
    weight, x = draw(3 * 80 * 80, seed=1), draw(3, 80, 80, seed=2)

    def viewing(z: torch.Tensor) -> torch.Tensor:
        return torch.tanh(z.view(len(z), -1) @ weight / 50)

    options = {"features": gralis.features.grid(x.shape, 40), "budget": 100, "batch_size": batch_size}
    found = gralis.explain(viewing, x, **options)
    reshaped = gralis.explain(lambda z: torch.tanh(z.reshape(len(z), -1) @ weight / 50), x, **options)
    np.testing.assert_allclose(found.values, reshaped.values, rtol=1e-10)
    assert found.cost.layout == "contiguous"
    assert found.cost.n_gradients == reshaped.cost.n_gradients
    assert gralis.faithfulness.deletion(viewing, x, found).value == pytest.approx(
        gralis.faithfulness.deletion(lambda z: viewing(z.contiguous()), x, found).value
    )


@pytest.mark.parametrize("plan", SAMPLED)
def test_another_seed_another_plan(plan):
    a, b = (gralis.explain(smooth, spread(6), **setting(plan), seed=seed) for seed in (0, 1))
    assert not np.array_equal(a.values, b.values)
    assert not np.array_equal(a.ledger.masks, b.ledger.masks)


def test_no_seed_is_a_seed_of_its_own_that_can_be_used_again():
    options = {"model": smooth, "x": spread(6), "budget": 300}
    a, b = gralis.explain(seed=None, **options), gralis.explain(seed=None, **options)
    assert a.provenance["seed"] != b.provenance["seed"]
    again = gralis.explain(seed=a.provenance["seed"], **options)
    np.testing.assert_allclose(again.values, a.values, rtol=1e-12)


@pytest.mark.parametrize("plan", BUDGETS)
def test_global_random_numbers_are_left_alone(plan):
    before = torch.get_rng_state(), np.random.get_state()[1].copy(), random.getstate()  # noqa: NPY002
    for seed in (0, None):
        explanation = gralis.explain(smooth, spread(6), **setting(plan), seed=seed)
    gralis.cost(smooth, spread(6), **setting(plan))
    explanation.with_kernel(Uniform())
    assert torch.equal(torch.get_rng_state(), before[0])
    assert np.array_equal(np.random.get_state()[1], before[1])  # noqa: NPY002
    assert random.getstate() == before[2]
