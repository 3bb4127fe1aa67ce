"""Several questions on the same rays: targets that share a forward, inputs that share a design."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import gralis
from gralis import BudgetError, GralisError, explain, explain_batch

N = 7


class Net(nn.Module):
    """Three outputs; counts rows forward and calls of its backward."""

    def __init__(self) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(3)
        self.a = nn.Parameter(torch.randn(N, 16, generator=generator, dtype=torch.float64))
        self.b = nn.Parameter(torch.randn(16, 3, generator=generator, dtype=torch.float64))
        self.rows, self.calls, self.backwards = 0, 0, 0

    def forward(self, x: Tensor) -> Tensor:
        self.rows += len(x)
        self.calls += 1
        hidden = torch.tanh(x @ self.a)
        if hidden.requires_grad:
            hidden.register_hook(self._count)
        return hidden @ self.b

    def _count(self, gradient: Tensor) -> None:
        self.backwards += len(gradient)


def inputs(n: int, seed: int = 0) -> Tensor:
    return torch.randn(n, N, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def exact(net: nn.Module, x: Tensor, target: object, **options: object) -> np.ndarray:
    return explain(net, x, target=target, plan="exhaustive", budget=None, **options).values


def test_targets_share_forwards_and_each_backward_counts() -> None:
    net = Net().eval()
    found = explain(net, inputs(1)[0], target=[0, 2], budget=600)
    assert net.backwards == found.cost.n_gradients <= 600
    assert net.rows == found.cost.n_gradients // 2 + found.cost.n_forwards
    assert [one.cost.n_gradients for one in found] == [found.cost.n_gradients // 2] * 2


def test_every_target_is_what_it_is_alone() -> None:
    net, x = Net().eval(), inputs(1)[0]
    together = explain(net, x, target=[0, 1, 2], plan="exhaustive", budget=None)
    alone = np.stack([exact(net, x, k) for k in range(3)])
    assert together.values == pytest.approx(alone, abs=1e-12)
    assert explain(net, x, target="all", plan="exhaustive", budget=None).values == pytest.approx(alone, abs=1e-12)


@pytest.mark.parametrize(("plan", "share"), [("independent", 2), ("permutation", 2), ("endpoint", 1), ("values", 1)])
def test_targets_are_as_alone_with_their_share_of_the_budget(plan: str, share: int) -> None:
    net, x = Net().eval(), inputs(1)[0]
    alone = [explain(net, x, target=k, plan=plan, budget=100 * 10 // share, seed=5) for k in (0, 2)]
    found = explain(net, x, target=[0, 2], plan=plan, budget=1000, seed=5)
    assert found.values == pytest.approx(np.stack([one.values for one in alone]), abs=1e-12)
    assert found.stderr == pytest.approx(np.stack([one.stderr for one in alone]), abs=1e-9)


def test_targets_of_the_shared_plan_are_close_to_the_truth() -> None:
    net, x = Net().eval(), inputs(1)[0]
    truth = np.stack([exact(net, x, k) for k in (0, 2)])
    found = explain(net, x, target=[0, 2], budget=1000, seed=5)
    assert (np.abs(found.values - truth) <= 6 * found.stderr + 1e-9).all()
    assert np.abs(found.values - truth).max() < 0.02 * np.abs(truth).max()


def test_a_target_that_ignores_a_feature_gives_it_exactly_nothing() -> None:
    def model(z: Tensor) -> Tensor:
        return torch.stack([torch.tanh(z).prod(1), torch.tanh(z[:, 1:]).sum(1) ** 2], dim=1)

    found = explain(model, inputs(1)[0], target=[0, 1], budget=400)
    assert found.values[1, 0] == 0.0
    assert found.stderr[1, 0] == 0.0
    assert found.values[0, 0] != 0.0


def test_contrast_is_the_explanation_of_the_difference() -> None:
    net, x = Net().eval(), inputs(1)[0]
    found = explain(net, x, target=[0, 1], budget=400)
    apart = found.contrast(0, 1)
    truth = exact(lambda z: net(z)[:, 0] - net(z)[:, 1], x, None)
    assert apart.delta == pytest.approx(found.delta[0] - found.delta[1])
    assert (np.abs(apart.values - truth) <= 6 * apart.stderr + 1e-9).all()
    assert found.contrast("output[0]", "output[1]").values == pytest.approx(apart.values, abs=0)


def test_one_of_several_targets_can_be_extended_and_saved(tmp_path) -> None:
    net, x = Net().eval(), inputs(1)[0]
    second = explain(net, x, target=[0, 2], budget=600)[1]
    net.backwards = 0
    longer = second.extend(200)
    assert longer.cost.n_gradients == second.cost.n_gradients + net.backwards
    assert (np.abs(longer.values - exact(net, x, 2)) <= 6 * longer.stderr + 1e-9).all()
    assert gralis.load(second.save(tmp_path / "one.gralis")).values.tolist() == second.values.tolist()


def test_tolerance_holds_for_every_target() -> None:
    net, x = Net().eval(), inputs(1)[0]
    found = explain(net, x, target=[0, 1, 2], tolerance=0.05, budget=30_000)
    for one in found:
        assert one.reached
        half = np.diff(one.interval(0.95), axis=1)[:, 0] / 2
        assert half.max() <= 0.05 * abs(one.delta) + 1e-12


def test_folded_ledgers_of_several_targets() -> None:
    weights = torch.randn(3, 40_000, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    found = explain(lambda z: z @ weights.T, torch.ones(40_000, dtype=torch.float64), target=[0, 2], budget=800)
    assert found.values == pytest.approx(weights[[0, 2]].numpy(), abs=1e-9)


def test_inputs_share_a_design_and_each_keeps_its_own_law() -> None:
    net, xs = Net().eval(), inputs(6)
    found = explain_batch(net, xs, target=1, budget=400)
    truth = np.stack([exact(net, x, 1) for x in xs])
    assert (np.abs(found.values - truth) <= 6 * found.stderr + 1e-9).all()
    masks = [one.ledger.masks for one in found]
    assert all((other == masks[0]).all() for other in masks)
    assert found.f_x == pytest.approx(net(xs)[:, 1].detach().numpy())


def test_inputs_fill_the_batches() -> None:
    net, xs = Net().eval(), inputs(8)
    explain_batch(net, xs, target=1, budget=100, batch_size=200)
    together, net.calls = net.calls, 0
    for x in xs:
        explain(net, x, target=1, budget=100, batch_size=200)
    assert together < net.calls / 2


def test_every_input_may_have_its_own_target_and_features() -> None:
    net, xs = Net().eval(), inputs(3)
    halves = [gralis.features.groups(np.array(labels)) for labels in ([0, 0, 0, 1, 1, 1, 2], [0, 1, 1, 1, 2, 2, 2])]
    partition = [halves[0], halves[1], halves[0]]
    found = explain_batch(net, xs, target=[0, 2, 1], features=partition, plan="exhaustive", budget=None)
    for one, x, target, features in zip(found, xs, [0, 2, 1], partition, strict=True):
        assert one.values == pytest.approx(exact(net, x, target, features=features), abs=1e-12)
    different = [gralis.features.groups(np.array([0, 0, 0, 0, 1, 1, 1])), *partition[1:]]
    counts = [one.n_features for one in explain_batch(net, xs, target=0, features=different, budget=200)]
    assert counts == [2, 3, 3]


def test_an_input_that_the_shared_rays_suit_badly_gets_its_own() -> None:
    net, xs = Net().eval(), inputs(6)
    xs[0] = torch.tensor([6.0, 0.01, 0.01, 0.01, 0.01, 0.01, 0.01], dtype=torch.float64)
    xs[1:, 0] = 0.01
    kernel = gralis.Gaussian(0.2)
    found = explain_batch(net, xs, target=1, kernel=kernel, budget=160)
    spent = sorted(one.cost.n_gradients for one in found)
    assert spent[-1] == pytest.approx(2 * spent[0], abs=20)
    truth = np.stack([exact(net, x, 1, kernel=kernel) for x in xs])
    assert (np.abs(found.values - truth) <= 8 * found.stderr + 1e-6).all()


def test_batches_of_several_leaves_and_baselines() -> None:
    def model(a: Tensor, b: Tensor) -> Tensor:
        return torch.tanh(a).sum(1) * torch.sin(b).sum(1)

    pairs = [(x[:3], x[3:]) for x in inputs(3)]
    found = explain_batch(model, pairs, plan="exhaustive", budget=None)
    for one, x in zip(found, pairs, strict=True):
        assert one.values == pytest.approx(explain(model, x, plan="exhaustive", budget=None).values, abs=1e-12)
    net, xs = Net().eval(), inputs(3)
    baseline = gralis.baselines.sample(inputs(4, seed=9))
    found = explain_batch(net, xs, target=0, baseline=baseline, plan="exhaustive", budget=None)
    for one, x in zip(found, xs, strict=True):
        assert one.values == pytest.approx(exact(net, x, 0, baseline=baseline), abs=1e-12)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"target": []}, "list of different targets"),
        ({"target": [1, 1]}, "list of different targets"),
        ({"target": [0, 5]}, "out of range"),
        ({"target": ["a"]}, "target"),
        ({"target": "none"}, "target"),
    ],
)
def test_bad_lists_of_targets(options: dict, sentence: str) -> None:
    with pytest.raises(GralisError, match=sentence):
        explain(Net().eval(), inputs(1)[0], **options)


def test_sentences_of_batches() -> None:
    net, xs = Net().eval(), inputs(3)
    with pytest.raises(GralisError, match=r"target.*list of 3"):
        explain_batch(net, xs, target=[0, 1])
    with pytest.raises(GralisError, match="xs"):
        explain_batch(net, torch.zeros(0, N), target=0)
    with pytest.raises(GralisError, match=r"xs\[1\] equals the baseline"):
        explain_batch(net, torch.stack([xs[0], torch.zeros(N, dtype=torch.float64)]), target=0)
    with pytest.raises(GralisError, match="different inputs"):
        explain_batch(net, xs, target=0, budget=200).contrast(0, 1)
    with pytest.raises(GralisError, match="reads them off its outputs"):
        explain(gralis.models.function(lambda z: z.sum(1), np.ones_like), np.ones(3), target="all")
    with pytest.raises(BudgetError, match="3 targets needs at least"):
        explain(net, xs[0], target="all", budget=60)
