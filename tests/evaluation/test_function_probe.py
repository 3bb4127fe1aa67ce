"""A model that is not a function of its input is found before the run, and no model that is one is suspected."""

from __future__ import annotations

import json
import random
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import gralis
from gralis import explain
from gralis.evaluation.function_probe import PROBE_FORWARDS

WEIGHT = torch.linspace(0.3, 1.2, 6)


def dropout_left_on(z: Tensor) -> Tensor:
    return functional.dropout(z, 0.5, training=True) @ WEIGHT


def batch_statistics(z: Tensor) -> Tensor:
    return ((z - z.mean(0)) / (z.var(0, correction=0) + 0.1).sqrt()) @ WEIGHT + z @ WEIGHT


def test_dropout_left_on_is_named_with_its_size() -> None:
    (doubt,) = explain(dropout_left_on, torch.ones(6), budget=100, seed=1).model_doubts
    assert "random" in doubt
    assert "model.eval()" in doubt
    low, high = (float(part) for part in doubt.split("between ")[1].split(", a difference")[0].split(" and "))
    assert f"{(high - low):.2g}, which is" in doubt


def test_one_draw_for_the_whole_batch_is_random_too() -> None:
    (doubt,) = explain(lambda z: z.sum(1) * (1 + torch.rand(())), torch.ones(4), budget=100).model_doubts
    assert "random" in doubt


def test_numpy_noise_in_a_model_is_random() -> None:
    model = gralis.models.function(
        lambda z: z.sum(1) + 0.1 * np.random.rand(len(z)),  # noqa: NPY002
        lambda z: np.ones_like(z),
    )
    (doubt,) = explain(model, np.ones(4), budget=100).model_doubts
    assert "random" in doubt


def test_batch_statistics_are_named_with_their_size() -> None:
    x, baseline = torch.linspace(1, 2, 6), torch.zeros(6)
    (doubt,) = explain(batch_statistics, x, budget=100).model_doubts
    f_x, other = (float(batch_statistics(torch.stack(rows))[0]) for rows in ([x, baseline], [x, baseline, x, x, x, x]))
    assert "other rows of its batch" in doubt
    assert f"{f_x:.5g} in one batch and {other:.5g} in another" in doubt
    assert f"{abs(f_x - other):.2g}" in doubt
    assert not explain(
        batch_statistics, x, budget=100, batch_size=1
    ).model_doubts  # alone in its batch it is a function


def test_a_place_in_the_batch_that_matters_is_dependence_on_the_batch() -> None:
    (doubt,) = explain(lambda z: z.sum(1) + torch.arange(len(z)), torch.ones(4), budget=100).model_doubts
    assert "other rows of its batch" in doubt


def test_only_the_target_that_is_random_is_doubted() -> None:
    def two(z: Tensor) -> Tensor:
        return torch.stack([z.sum(1), dropout_left_on(z)], dim=1)

    calm, restless = explain(two, torch.ones(6), target=[0, 1], budget=200)
    assert not calm.model_doubts
    assert len(restless.model_doubts) == 1


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True, dropout=0.3)
        self.head = nn.Linear(16, 3)

    def forward(self, z: Tensor) -> Tensor:
        return self.head(self.layer(z).mean(1))


def convolutional() -> nn.Module:
    layers = [nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Dropout(0.5), nn.Conv2d(8, 16, 3), nn.GELU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 3))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("make", [convolutional, Attention])
def test_networks_in_any_precision_are_not_suspected(make: type[nn.Module], dtype: torch.dtype) -> None:
    for seed in range(6):
        torch.manual_seed(seed)
        model = make().to(dtype).eval()
        x = torch.randn((3, 12, 12) if make is convolutional else (5, 16)).to(dtype)
        labels = np.arange(x.shape[-1]) // 4
        features = gralis.features.groups(np.broadcast_to(labels, x.shape))
        for target in (0, gralis.targets.probability(1), gralis.targets.margin(2)):
            assert not explain(model, x, target=target, features=features, budget=70).model_doubts


def test_float32_behind_a_black_box_is_not_suspected() -> None:
    weight = np.random.default_rng(0).standard_normal((400, 50)).astype(np.float32)
    model = gralis.models.function(
        lambda z: (np.tanh(z.astype(np.float32) @ weight)).sum(1).astype(np.float64), lambda z: np.zeros_like(z)
    )
    x = np.random.default_rng(1).standard_normal(400)
    assert not explain(model, x, features=np.arange(400) // 50, budget=70).model_doubts


def test_jax_is_not_suspected() -> None:
    jax = pytest.importorskip("jax")
    weight = jax.random.normal(jax.random.key(0), (40, 30))
    model = gralis.models.jax(lambda z: jax.numpy.tanh(z @ weight).sum(1))
    assert not explain(
        model, np.linspace(-1, 1, 40, dtype=np.float32), features=np.arange(40) // 8, budget=70
    ).model_doubts


def test_the_probe_draws_no_random_numbers_of_the_user() -> None:
    def state() -> tuple[object, ...]:
        return random.getstate(), torch.get_rng_state().tolist(), np.random.get_state()[2]  # noqa: NPY002

    draws: list[object] = []

    def noisy(z: Tensor) -> Tensor:
        draws.append(state())
        return z.sum(1) + torch.rand(len(z)) + random.random() + np.random.rand()  # noqa: NPY002

    explain(noisy, torch.ones(4), budget=100)
    # F(x) and F(x'), then two batches of the probe; the run goes on with the numbers with which the probe began
    assert draws[3] == draws[1] != draws[2]


def test_the_forwards_are_counted_and_announced() -> None:
    rows: list[int] = []

    def model(z: Tensor) -> Tensor:
        rows.append(len(z))
        return z.prod(1)

    x = torch.linspace(0.5, 1, 3)
    found = explain(model, x, plan="exhaustive", budget=None, coalition_values=False)
    assert found.cost.n_forwards == 2 + PROBE_FORWARDS
    assert sum(rows) == found.cost.n_gradients + found.cost.n_forwards
    assert (
        gralis.cost(model, x, plan="exhaustive", budget=None, coalition_values=False).n_forwards == 2 + PROBE_FORWARDS
    )


def test_doubts_stay_in_files_and_longer_runs(tmp_path) -> None:
    found = explain(dropout_left_on, torch.ones(9)[:6], budget=64, plan="independent", seed=1)
    assert found.model_doubts
    assert gralis.load(found.save(tmp_path / "noisy.gralis")).model_doubts == found.model_doubts
    assert json.loads(found.to_json())["doubts"] == list(found.model_doubts)
    assert found.extend(100).model_doubts == found.model_doubts
    assert found.with_kernel(gralis.Uniform()).model_doubts == found.model_doubts
    batch = gralis.explain_batch(dropout_left_on, torch.ones(2, 6), budget=64, plan="independent")
    assert all(one.model_doubts for one in batch)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        many = gralis.explain_many(dropout_left_on, torch.ones(2, 6), out=tmp_path / "many", budget=64, ledgers=True)
    assert all(many.explanation(item).model_doubts for item in many.ids)


class NormalisesByBatch(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(6, 8)
        self.normalise = nn.BatchNorm1d(8, track_running_stats=False)

    def forward(self, z: Tensor) -> Tensor:
        return torch.relu(self.normalise(self.first(z))).sum(1)


@pytest.mark.parametrize("plan", ["values", "endpoint"])
@pytest.mark.parametrize("budget", ["auto", 50, 2**6])
def test_plans_of_forwards_see_random_numbers_and_batch_statistics(plan: str, budget: int | str) -> None:
    """Also without a forward to spare: the generators and the module itself show it."""
    torch.manual_seed(0)
    random_one = explain(dropout_left_on, torch.ones(6), plan=plan, budget=budget)
    of_batch = explain(NormalisesByBatch().eval(), torch.linspace(1, 2, 6), plan=plan, budget=budget)
    assert "random" in random_one.model_doubts[0]
    assert "other rows of its batch" in of_batch.model_doubts[0]
    for found in (random_one, of_batch):
        assert budget == "auto" or found.cost.n_forwards <= budget
    noise = gralis.models.blackbox(lambda z: z.sum(1) + 0.1 * np.random.rand(len(z)))  # noqa: NPY002
    assert "random" in explain(noise, np.ones(6), plan=plan, budget=budget).model_doubts[0]
    assert "random" in explain(lambda z: z.sum(1) + random.random(), torch.ones(6), plan=plan).model_doubts[0]


@pytest.mark.parametrize("plan", ["values", "endpoint"])
def test_plans_of_forwards_ask_an_unknown_function_again_if_the_budget_leaves_room(plan: str) -> None:
    own = torch.Generator().manual_seed(0)

    def noisy(z: Tensor) -> Tensor:
        return z.sum(1) + 0.1 * torch.randn(len(z), generator=own)

    assert "random" in explain(noisy, torch.ones(6), plan=plan).model_doubts[0]
    assert "other rows" in explain(batch_statistics, torch.linspace(1, 2, 6), plan=plan).model_doubts[0]


def kept_half(z: Tensor) -> Tensor:
    """A random model. On six features its mean is z @ WEIGHT."""
    return torch.where(torch.rand(z.shape) < 0.5, 2 * z, 0 * z) @ torch.linspace(0.3, 1.2, z.shape[1])


@pytest.mark.parametrize("plan", ["shared", "exhaustive", "values", "endpoint"])
def test_nothing_is_exact_about_a_random_model(plan: str) -> None:
    found = explain(kept_half, torch.ones(6), plan=plan, seed=4)
    assert found.model_doubts
    assert found.design.noise > 1
    for result in (found, found.shapley(), found.banzhaf(), found.kernel_shap(), found.lime(ridge=0.0)):
        assert not result.exact
        assert (np.abs(result.values - WEIGHT.numpy()) <= result.half_widths()).all()
    pairs = found.interactions(2)
    assert not pairs.exact
    assert (np.abs(pairs.estimate.values[6:]) <= pairs.half_widths()[6:]).all()  # the mean model has no interactions
    assert "exact" not in str(found)
    assert found.certificate().half_widths.min() > 1


def test_the_noise_is_kept_in_files_with_another_kernel_and_when_extended(tmp_path: Path) -> None:
    found = explain(kept_half, torch.ones(9), budget=200, seed=4)
    again = gralis.load(found.save(tmp_path / "found.npz"))
    assert again.design.noise == found.design.noise > 0
    for other in (again, found.with_kernel(gralis.Uniform()), found.extend(200)):
        assert other.half_widths().min() > found.design.noise
        assert other.model_doubts == found.model_doubts


def test_only_the_noise_of_the_random_target_widens() -> None:
    def two(z: Tensor) -> Tensor:
        return torch.stack([torch.tanh(z @ WEIGHT), kept_half(z)], dim=1)

    calm, restless = explain(two, torch.ones(4) @ torch.eye(4, 6), target=[0, 1])
    assert calm.design.noise == 0 < restless.design.noise
    assert calm.shapley().exact


@pytest.mark.parametrize("plan", ["shared", "exhaustive", "values"])
def test_compare_asks_the_second_model_too(plan: str) -> None:
    def mean(z: Tensor) -> Tensor:
        return z @ WEIGHT

    for models in ((mean, kept_half), (kept_half, mean)):
        found = gralis.compare(*models, torch.ones(6), plan=plan, seed=4)
        assert any("random" in doubt for doubt in found.change.doubts)
        assert not found.change.exact
        assert not found.changed().any()
        calm = found.a if models[0] is mean else found.b
        assert not calm.model_doubts


def test_the_second_model_of_a_comparison_has_its_own_rounding() -> None:
    weight = torch.tensor([0.1, 0.7, 0.3], dtype=torch.float64)

    def coarse(z: Tensor) -> Tensor:
        return (z.float() @ weight.float()).float()

    found = gralis.compare(lambda z: z @ weight, coarse, torch.ones(3, dtype=torch.float64))
    assert found.b.design.rounding > 1e6 * found.a.design.rounding
    assert not found.changed().any()


@pytest.mark.parametrize("plan", ["values", "endpoint"])
def test_plans_of_forwards_ask_nothing_twice_without_a_sign(plan: str) -> None:
    asked: list[bytes] = []

    class Network(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.Sequential(nn.Linear(6, 4), nn.BatchNorm1d(4), nn.Dropout(0.5), nn.Tanh())

        def forward(self, z: Tensor) -> Tensor:
            asked.extend(row.numpy().tobytes() for row in z.detach())
            return self.layers(z).sum(1)

    found = explain(Network().eval(), torch.linspace(1, 2, 6), plan=plan)
    assert not found.model_doubts
    assert len(asked) == len(set(asked)) == found.cost.n_forwards == 2**6
