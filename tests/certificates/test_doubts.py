"""Witnesses that speak where nodes or draws miss what matters, and are silent elsewhere."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import gralis
from honest_models import relu_net, smooth, steep, true_phi

X = torch.ones(8, dtype=torch.float64)


def test_a_jump_that_all_nodes_miss_is_in_the_intervals_and_in_words():
    """A hard step has no gradient anywhere: every ray misses v(T), and nothing may be called exact."""

    def model(z):
        return (z.sum(1) > 3.5).double() + 0 * z.sum(1)

    e = gralis.explain(model, X, budget=300)
    assert any("F jumps where no gradient was taken" in sentence for sentence in e.doubts)
    assert (e.half_widths() > 0.01).all()
    assert "doubt: " in repr(e)
    assert e.to_dict()["doubts"] == list(e.doubts)


def test_nothing_is_reached_with_a_doubt():
    def model(z):
        return torch.sigmoid(3000 * (z.sum(1) - 3.53))

    for seed in range(6):
        e = gralis.explain(model, X, tolerance=0.05, seed=seed)
        assert not (e.reached and e.doubts)
        truth = true_phi(lambda z: torch.sigmoid(3000 * (z.sum(1) - 3.53)), 8, panels=800)
        assert e.doubts or (np.abs(e.values - truth) <= e.half_widths()).all()


@pytest.mark.parametrize("model", [smooth, relu_net])
def test_solid_models_raise_no_doubt(model):
    doubts = [gralis.explain(model(8, seed), X, budget=300, seed=seed).doubts for seed in range(12)]
    assert sum(map(bool, doubts)) == 0


def test_a_coalition_that_was_not_drawn_widens_the_interval():
    """F wakes up only where all features are at x: phi_i = q_i(all) v(all), and the ray of all is hardly ever drawn."""

    def model(z):
        return 100 * torch.relu(z.sum(1) - 9.99)

    for seed in range(5):
        e = gralis.explain(
            model, torch.ones(10, dtype=torch.float64), budget=100, seed=seed, kernel=gralis.Gaussian(0.3)
        )
        law = gralis.Gaussian(0.3).bind(np.ones(10))
        share = float(np.exp(law.log_conditional(np.ones((1, 10), dtype=bool))[0, 0]))
        truth = share * 0.1  # v(all) = 1 is shared by ten equal features
        assert (np.abs(e.values - truth) <= e.half_widths()).all()
        assert not e.exact


def smallest_and_largest(z):
    """Two features act on one ray in a hundred or less, and two others on few rays."""
    rng = np.random.default_rng([1, 10, 77])
    slope, start = torch.from_numpy(rng.uniform(0.5, 1.5, 10)), torch.from_numpy(rng.normal(size=10) * 0.3)
    return (z * slope + start).min(1).values + (z * start - slope).max(1).values


def test_a_feature_without_a_gradient_may_act_where_others_act_rarely():
    x, held = torch.ones(10, dtype=torch.float64), []
    truth = true_phi(smallest_and_largest, 10, panels=40)
    for seed in range(12):
        e = gralis.explain(smallest_and_largest, x, budget=300, seed=seed)
        held.append((np.abs(e.values - truth) <= e.half_widths() + 1e-4).all())
    assert np.mean(held) >= 0.9


def test_a_feature_without_a_gradient_does_nothing_where_others_act_often():
    """In a network that never reads two of its features, nothing suggests that they act."""
    x = torch.ones(10, dtype=torch.float64)
    for model in (smooth(8, 0), relu_net(8, 0)):
        e = gralis.explain(lambda z, model=model: model(z[:, :8]), x, budget=300)
        assert e.half_widths()[8:].max() < 1e-12 < e.half_widths()[:8].min()


def test_steep_models_cover_or_object():
    fine = 0
    for seed in range(12):
        model = steep(6, seed, slope=300.0)
        e = gralis.explain(model, torch.ones(6, dtype=torch.float64), budget=300, seed=seed)
        truth = true_phi(model, 6, panels=600)
        fine += bool(e.doubts) or bool((np.abs(e.values - truth) <= e.half_widths()).all())
    assert fine >= 11


def test_rounding_is_in_the_intervals():
    """A float32 affine model: the audit of its true values flags nothing, and a twin is not above its duplicate."""
    weights = torch.tensor([0.3, 0.3, -1.7, 2.1])

    def model(z):
        return z @ weights + 1000.0

    x = torch.tensor([1.1, 1.1, 0.7, -0.3])
    e = gralis.explain(model, x)
    assert not e.audit((weights * x).double().numpy()).disagree.any()
    ranks = e.ranks()
    assert not ranks.above[0, 1]
    assert not ranks.above[1, 0]


def test_rounding_is_in_sampled_intervals():
    """The signal of a float32 model is small beside its offset, and all replicates are rounded alike."""
    weights, x = torch.linspace(-0.05, 0.05, 10), torch.ones(10)
    e = gralis.explain(lambda z: z @ weights + 1e6, x, budget=100)
    error = np.abs(e.values - (weights * x).double().numpy())
    assert not e.exact
    assert error.max() > 1e-3
    assert (error <= e.half_widths()).all()


def test_a_model_compared_with_itself_has_not_changed():
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(6, 40), torch.nn.ReLU(), torch.nn.Linear(40, 1)).eval()
    order = torch.randperm(40)
    twin = torch.nn.Sequential(torch.nn.Linear(6, 40), torch.nn.ReLU(), torch.nn.Linear(40, 1)).eval()
    with torch.no_grad():
        for name, value in (("0.weight", net[0].weight[order]), ("0.bias", net[0].bias[order])):
            twin.get_parameter(name).copy_(value)
        twin[2].weight.copy_(net[2].weight[:, order])
        twin[2].bias.copy_(net[2].bias)
    assert not gralis.compare(net, twin, torch.ones(6)).changed().any()


def test_two_replicates_use_bonferroni():
    e = gralis.explain(smooth(9, 0), torch.ones(9, dtype=torch.float64), budget=200, replicates=2)
    single = e.half_widths() / e.estimate.sampling_error
    assert (single > 50).all()  # t with one degree of freedom at 1 - 0.025 / 9


def one_coalition(z):
    """A product of the first five features that dies as soon as another one reaches a quarter."""
    inside = torch.arange(z.shape[1]) < 5
    return torch.where(inside, z, torch.relu(1 - 4 * z)).prod(1)


def test_a_coalition_that_carries_everything_is_a_doubt_whether_or_not_it_was_drawn():
    for seed in range(6):
        e = gralis.explain(one_coalition, torch.ones(10, dtype=torch.float64), budget=300, seed=seed)
        drawn = np.abs(e.ledger.value).max() > 0.5
        text = "A single ray makes nearly all" if drawn else "F has the same value at x', at x and at all"
        assert any(sentence.startswith(text) for sentence in e.doubts)


def test_a_network_beside_itself_raises_no_doubt_although_only_rounding_differs():
    net = torch.nn.Sequential(torch.nn.Linear(12, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1)).eval()
    generator = torch.Generator().manual_seed(0)
    for parameter in net.parameters():
        parameter.data = torch.randn(parameter.shape, generator=generator) / 4
    order = torch.randperm(64, generator=generator)
    again = torch.nn.Sequential(torch.nn.Linear(12, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1)).eval()
    again[0].weight.data, again[0].bias.data = net[0].weight.data[order], net[0].bias.data[order]
    again[2].weight.data, again[2].bias.data = net[2].weight.data[:, order], net[2].bias.data
    found = gralis.compare(net, again, torch.ones(12), budget=300)
    assert not found.changed().any()
    assert found.change.doubts == ()


def test_rounding_counts_at_the_size_of_what_cancels():
    """F(x) = 0.01 is the difference of two terms of size 1000, which float32 knows to 1e-4."""
    slopes = torch.tensor([1000.0, -999.99])
    found = gralis.compare(lambda z: z @ slopes, lambda z: z @ slopes, torch.ones(2))
    assert found.change.half_widths().min() > 1.9 * torch.finfo(torch.float32).eps * 1999.99


def test_differences_that_are_too_few_are_a_doubt_of_the_endpoint_form():
    x = torch.ones(10, dtype=torch.float64)
    rare = gralis.explain(lambda z: torch.sigmoid(50 * (z.mean(1) - 0.42)), x, plan="endpoint", budget=300)
    assert any("differences make the value of a feature" in sentence for sentence in rare.doubts)
    often = gralis.explain(smooth(10, 1), x, plan="endpoint", budget=300)
    assert often.doubts == ()


def test_a_single_node_that_makes_the_error_of_all_rays_is_a_doubt():
    """Two steps in different directions, so steep that the nodes on the rays of seven features hit them on few rays."""
    weights = torch.tensor(np.random.default_rng(2).uniform(0.2, 1.8, (7, 2)))
    weights[:4, 1] *= -1

    def steps(z: torch.Tensor) -> torch.Tensor:
        return torch.sigmoid(1000 * (z @ weights - 0.45 * weights.sum(0))).sum(1)

    found = [gralis.explain(steps, torch.ones(7, dtype=torch.float64), seed=seed) for seed in range(6)]
    few = [e for e in found if e.estimate.carriers[e.estimate.sampling_error.argmax()] < 2]
    assert few
    assert all(any("A single node makes" in sentence for sentence in e.doubts) for e in few)
    assert gralis.explain(relu_net(7, 0), torch.ones(7, dtype=torch.float64)).doubts == ()


def test_given_orders_say_that_nothing_shows_their_error() -> None:
    """Every feature lies on a ray, so more budget would not help."""
    plan = gralis.plans.permutation(orders=[[0, 1, 2], [2, 1, 0]])
    e = gralis.explain(lambda z: z.prod(1), torch.ones(3).double(), plan=plan, budget=None)
    assert np.isnan(e.stderr).all()
    (doubt,) = e.doubts
    assert "orders of this plan were given" in doubt
    assert "n_permutations" in doubt
