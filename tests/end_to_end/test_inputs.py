"""What explain takes: tuples, dicts, arrays of any kind, several baselines."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import gralis
from explained import BUDGETS, draw, smooth, spread
from gralis import Gaussian, SizeKernel, baselines


def test_tuples_and_dicts_are_the_same_as_one_array():
    x = spread(6)
    options = {"budget": 300, "kernel": Gaussian(0.5)}
    one = gralis.explain(smooth, x, **options)
    pair = gralis.explain(lambda a, b: smooth(torch.cat([a, b.flatten(1)], 1)), (x[:2], x[2:].reshape(2, 2)), **options)
    named = gralis.explain(
        lambda *, left, right: smooth(torch.cat([left, right.flatten(1)], 1)),
        {"left": x[:2], "right": x[2:].reshape(2, 2)},
        baseline={"right": np.zeros((2, 2)), "left": 0.0},
        **options,
    )
    for other in (pair, named):
        np.testing.assert_allclose(other.values, one.values, rtol=1e-12)
    assert list(pair.names) == ["x0[0]", "x0[1]", "x1[0,0]", "x1[0,1]", "x1[1,0]", "x1[1,1]"]
    assert named.names[2] == "right[0,0]"
    back = pair.to_input()
    assert isinstance(back, tuple)
    assert [leaf.shape for leaf in back] == [(2,), (2, 2)]
    assert np.concatenate([leaf.ravel() for leaf in back]).tolist() == pair.values.tolist()
    mapped = named.to_input()
    assert list(mapped) == ["left", "right"]
    assert mapped["right"].ravel().tolist() == named.values[2:].tolist()
    assert one.to_input().tolist() == one.values.tolist()
    single = gralis.explain(smooth, (x,), **options).to_input()
    assert isinstance(single, tuple)
    assert len(single) == 1


def test_a_feature_over_several_inputs():
    x = spread(6)
    labels = (np.array([0, 1]), np.array([1, 2, 2, 0]))
    pair = gralis.explain(lambda a, b: smooth(torch.cat([a, b], 1)), (x[:2], x[2:]), features=labels)
    one = gralis.explain(smooth, x, features=np.concatenate(labels))
    np.testing.assert_allclose(pair.values, one.values, rtol=1e-12)
    assert one.to_input()[[1, 2]].tolist() == [one.values[1]] * 2


def test_every_input_keeps_its_own_precision():
    def total(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        assert (a.dtype, b.dtype) == (torch.float16, torch.float64)
        return a.double().sum(1) + b.sum(1)

    x = (torch.ones(2, dtype=torch.float16), torch.full((2,), 1e-9, dtype=torch.float64))
    np.testing.assert_allclose(gralis.explain(total, x).values, [1, 1, 1e-9, 1e-9], rtol=1e-12)


@pytest.mark.parametrize(
    "array",
    [
        np.linspace(0.4, 1.3, 4)[::-1],
        np.linspace(0.4, 1.3, 8)[::2],
        np.linspace(0.4, 1.3, 4).astype(">f8"),
        np.linspace(0.4, 1.3, 4).astype(np.longdouble),
        np.broadcast_to(0.7, (4,)),
        [0.4, 0.7, 1.0, 1.3],
        torch.linspace(0.4, 1.3, 4).double().requires_grad_(),
        torch.linspace(0.4, 1.3, 4).double().to_sparse(),
    ],
    ids=["reversed", "strided", "big-endian", "longdouble", "read-only", "list", "with a graph", "sparse"],
)
@pytest.mark.parametrize("role", ["x", "baseline"])
def test_any_array_will_do(array, role):
    dense = array.detach().to_dense() if isinstance(array, torch.Tensor) else np.array(array, dtype=np.float64)
    if role == "baseline" and isinstance(array, torch.Tensor) and array.is_sparse:
        array = dense
    x, baseline = (array, 0.1) if role == "x" else (np.full(4, 2.0), array)
    same_x, same_baseline = (dense, 0.1) if role == "x" else (np.full(4, 2.0), dense)
    found = gralis.explain(smooth, x, baseline=baseline)
    expected = gralis.explain(smooth, same_x, baseline=same_baseline)
    np.testing.assert_allclose(found.values, expected.values, rtol=1e-12)


def test_a_single_number_is_an_input():
    explanation = gralis.explain(lambda z: z**2, 3.0)
    assert explanation.values.tolist() == pytest.approx([9.0])
    assert explanation.to_input().shape == ()


def test_a_feature_that_never_moves_has_value_zero():
    x = spread(7)
    for plan in BUDGETS:
        baseline = torch.zeros(7, dtype=torch.float64)
        baseline[2] = x[2]
        explanation = gralis.explain(smooth, x, baseline=baseline, plan=plan, budget=600)
        assert explanation.values[2] == pytest.approx(0, abs=1e-12)
        assert np.abs(explanation.values).max() > 0.01


def test_coalitions_are_made_of_x_and_the_baseline_to_the_last_bit():
    """A tree may split exactly at x: x' + (x - x') is not good enough."""
    x, baseline = draw(8, seed=1).numpy(), draw(8, seed=2).numpy()

    def box(z: np.ndarray) -> np.ndarray:
        assert ((z == x) | (z == baseline)).all()
        return z.sum(1)

    gralis.explain(gralis.models.blackbox(box), x, baseline=baseline, plan="endpoint", budget=100)


def test_several_baselines_are_averaged():
    x, rows, kernel = spread(5), draw(3, 5, seed=4), SizeKernel(lambda s: 0.7**s)
    options = {"plan": "exhaustive", "budget": None, "kernel": kernel}
    together = gralis.explain(smooth, x, baseline=baselines.sample(rows), **options)
    apart = [gralis.explain(smooth, x, baseline=row, **options) for row in rows]
    np.testing.assert_allclose(together.values, np.mean([e.values for e in apart], axis=0), rtol=1e-10)
    assert together.f_baseline == pytest.approx(np.mean([e.f_baseline for e in apart]))
    assert together.delta == pytest.approx(np.mean([e.delta for e in apart]))
    assert together.cost.n_gradients == sum(e.cost.n_gradients for e in apart)
    for plan, budget in (("shared", 700), ("independent", 700), ("endpoint", 80), ("permutation", 6000)):
        exact = together.values
        if plan == "endpoint":
            each = [gralis.explain(smooth, x, baseline=row, plan=plan, kernel=kernel) for row in rows]
            exact = np.mean([e.values for e in each], axis=0)
        sampled = gralis.explain(smooth, x, baseline=baselines.sample(rows), plan=plan, budget=budget, kernel=kernel)
        assert not sampled.estimate.exact
        assert (np.abs(sampled.values - exact) <= 5 * sampled.stderr + 0.02 * np.abs(exact).max()).all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.float64])
def test_a_single_number_cut_out_of_a_longer_array(dtype):
    """Its stride is not 1, and torch calls it contiguous all the same."""
    x = torch.ones(2, dtype=dtype)[::2]
    assert x.stride() == (2,)
    found = gralis.explain(lambda z: 3 * z.sum(1), x)
    assert found.values == pytest.approx([3.0])
    alone = gralis.explain(lambda z: 3 * z.sum(1), torch.ones(1, dtype=dtype))
    assert found.provenance["hashes"]["x"] == alone.provenance["hashes"]["x"]
    gralis.explain(lambda z: x * z.sum(1), x)  # nor does a model that holds it fail
