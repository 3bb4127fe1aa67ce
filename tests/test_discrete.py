"""Discrete features jump, continuous ones move: what the model sees, what each gets, and that sums stay true."""

from __future__ import annotations

import itertools
from math import factorial

import numpy as np
import pytest
import torch
from torch import Tensor

import gralis
from gralis import GralisError, explain
from gralis.evaluation.function_probe import PROBE_FORWARDS
from gralis.features import columns, groups
from gralis.rays.discrete import EVERY_ORDER, DiscreteJumps, jump_orders, n_jump_points

X = torch.tensor([1.3, 3.0, -0.7, 2.0, 5.0], dtype=torch.float64)
BASE = torch.tensor([0.2, 1.0, 0.4, 0.0, 4.0], dtype=torch.float64)
MIXED = columns(["dose", "city", "age", "sex", "grade"], discrete=["city", "sex", "grade"])
DISCRETE = [1, 3, 4]


def model(z: Tensor) -> Tensor:
    """Looks categories up in tables: defined at whole numbers only."""
    seen = z[:, DISCRETE].detach()
    assert ((seen == X[DISCRETE]) | (seen == BASE[DISCRETE])).all()
    city, sex, grade = (z[:, k].long() for k in DISCRETE)
    table = torch.tensor([0.3, -1.0, 2.0, 0.7, 1.5, -0.4], dtype=torch.float64)
    return torch.tanh(z[:, 0] * table[city]) + z[:, 2] * table[grade] * (1 + table[sex]) + table[sex] * table[city]


def definition(value, n_nodes: int = 4000) -> np.ndarray:
    """phi under the uniform kernel by the definition: every T, the jump half-way in every order, a fine rule."""
    n, phi = 5, np.zeros(5)
    for size in range(1, n + 1):
        for members in itertools.combinations(range(n), size):
            weight = factorial(size - 1) * factorial(n - size) / factorial(n)
            ray = np.zeros(n)
            moving, jumping = [i for i in members if i not in DISCRETE], [i for i in members if i in DISCRETE]
            nodes = (torch.arange(n_nodes, dtype=torch.float64) + 0.5) / n_nodes
            points = BASE.repeat(n_nodes, 1)
            for i in moving:
                points[:, i] = BASE[i] + nodes * (X[i] - BASE[i])
            for i in jumping:
                points[:, i] = torch.where(nodes >= 0.5, X[i], BASE[i])
            points.requires_grad_()
            (gradient,) = torch.autograd.grad(value(points).sum(), points)
            for i in moving:
                ray[i] = float((X[i] - BASE[i]) * gradient[:, i].mean())
            for order in itertools.permutations(jumping):
                point = BASE.clone()
                for i in moving:
                    point[i] = (BASE[i] + X[i]) / 2
                before = float(value(point[None]))
                for i in order:
                    point[i] = X[i]
                    after = float(value(point[None]))
                    ray[i] += (after - before) / factorial(len(jumping))
                    before = after
            phi[list(members)] += weight * ray[list(members)]
    return phi


def test_the_definition_is_met_where_everything_is_enumerated() -> None:
    found = explain(model, X, baseline=BASE, features=MIXED, kernel=gralis.Uniform(), plan="exhaustive", budget=None)
    assert found.values == pytest.approx(definition(model), abs=1e-6)


def test_every_ray_adds_up_to_its_coalition() -> None:
    exact = explain(model, X, baseline=BASE, features=MIXED, plan="exhaustive", budget=None, n_nodes=40)
    assert exact.ledger.checksum == pytest.approx(np.zeros(31), abs=1e-9)
    sampled = explain(model, X, baseline=BASE, features=MIXED, budget=120, replicates=5)
    assert abs(sampled.ledger.checksum.mean()) < 5 * sampled.ledger.checksum.std() / np.sqrt(sampled.ledger.n_rays)


@pytest.mark.parametrize("plan", ["shared", "independent", "permutation"])
def test_sampling_plans_agree_with_enumeration(plan: str) -> None:
    options = {"baseline": BASE, "features": MIXED, "kernel": gralis.Uniform()}
    truth = explain(model, X, plan="exhaustive", budget=None, **options).values
    found = [
        explain(model, X, plan=plan, budget=240 if plan != "permutation" else 2000, seed=s, **options)
        for s in range(12)
    ]
    values = np.stack([one.values for one in found])
    error = values.std(0, ddof=1) / np.sqrt(12)
    assert (np.abs(values.mean(0) - truth) < 5 * error + 2e-3).all()


def test_a_product_of_both_kinds_is_shared_evenly() -> None:
    def product(z: Tensor) -> Tensor:
        return z[:, 0] * z[:, 1]

    features = columns(["moves", "jumps"], discrete=["jumps"])
    found = explain(product, torch.ones(2, dtype=torch.float64), features=features, kernel=gralis.Uniform())
    assert found.values == pytest.approx([0.25, 0.25], abs=1e-12)  # alone nothing, together half each


def test_one_hot_codes_jump_as_one() -> None:
    def category(z: Tensor) -> Tensor:
        assert torch.isin(z[:, 1:].sum(1), torch.tensor([1.0], dtype=torch.float64)).all()
        return torch.sin(z[:, 0]) + z[:, 1:] @ torch.tensor([1.0, 5.0, -2.0], dtype=torch.float64)

    row = columns(["t", "a", "b", "c"], groups={"colour": ["a", "b", "c"]}, discrete=["colour"])
    x, base = torch.tensor([0.5, 0, 1, 0], dtype=torch.float64), torch.tensor([0.0, 0, 0, 1], dtype=torch.float64)
    found = explain(category, x, baseline=base, features=row)
    assert found.values == pytest.approx([np.sin(0.5), 7.0], abs=1e-9)


def shapley_of_jumps(value, d: int) -> np.ndarray:
    """The Shapley values of a game on d members, by the definition: every order alike."""
    phi = np.zeros(d)
    for i in range(d):
        for size in range(d):
            for others in itertools.combinations([j for j in range(d) if j != i], size):
                weight = factorial(size) * factorial(d - size - 1) / factorial(d)
                phi[i] += weight * (value({*others, i}) - value(set(others)))
    return phi


def uniform_phi(value, n: int) -> np.ndarray:
    """phi under the uniform kernel where every feature is discrete: the mean over T of the Shapley values inside T."""
    phi = np.zeros(n)
    for size in range(1, n + 1):
        for members in itertools.combinations(range(n), size):
            inside = shapley_of_jumps(lambda own, m=members: value({m[k] for k in own}), size)
            phi[list(members)] += inside * factorial(size - 1) * factorial(n - size) / factorial(n)
    return phi


def all_discrete(n: int) -> gralis.Features:
    return columns([f"c{i}" for i in range(n)], discrete=list(range(n)))


def vote(z: Tensor) -> Tensor:
    """Ten votes, six of which decide."""
    return (z.sum(1) > 5.5).double()


#: A coalition of t >= 6 votes shares 1 evenly, and every size has the same probability given that a vote is in it.
VOTE = sum(1 / t for t in range(6, 11)) / 10


def test_a_product_of_six_discrete_ones_is_shared_evenly() -> None:
    truth = uniform_phi(lambda own: float(len(own) == 6), 6)
    assert truth == pytest.approx(np.full(6, 1 / 36))
    calls: list[Tensor] = []

    def product(z: Tensor) -> Tensor:
        calls.append(z.clone())
        return z.prod(1)

    ones = torch.ones(6, dtype=torch.float64)
    found = explain(product, ones, features=all_discrete(6), kernel=gralis.Uniform(), plan="exhaustive", budget=None)
    assert found.values == pytest.approx(truth, abs=1e-12)
    assert not found.stderr.any()
    assert (found.cost.n_gradients, found.cost.n_forwards) == (0, 64 + PROBE_FORWARDS)  # half-way are coalitions
    assert len(torch.cat(calls)) - PROBE_FORWARDS == len(torch.unique(torch.cat(calls), dim=0)) == 64  # none twice


@pytest.mark.parametrize("d", [5, 6, 9])
def test_random_orders_average_to_the_shapley_values_and_add_up_on_every_ray(d: int) -> None:
    rng = np.random.default_rng(d)
    masks = np.insert(np.ones((400, d), dtype=bool), 2, True, axis=1)
    masks = np.insert(masks, d + 1, False, axis=1)
    jumping = ~np.isin(np.arange(d + 2), [2])  # feature 2 moves, the last one is in no coalition
    table = rng.standard_normal(2**d)
    asked = DiscreteJumps.of(masks, jumping, jump_orders(np.zeros(400, dtype=np.int64), seed=3))
    members = asked.state[:, masks[0] & jumping].astype(np.int64)
    assert (asked.state[:, 2] == 2).all()
    assert not asked.state[:, -1].any()
    assert len(asked.ray) == 400 * 2 * d == n_jump_points(masks, jumping, np.arange(400)).sum()
    sizes = asked.sizes(table[members @ 2 ** np.arange(d)], 400)
    assert sizes.sum(1) == pytest.approx(np.full(400, table[-1] - table[0]))
    assert not sizes[:, [2, d + 1]].any()
    truth = shapley_of_jumps(lambda own: table[sum(2**k for k in own)], d)
    error = sizes.std(0, ddof=1)[masks[0] & jumping] / 20
    assert (np.abs(sizes.mean(0)[masks[0] & jumping] - truth) < 4 * error).all()
    exact = DiscreteJumps.of(masks[:1], jumping, np.array([EVERY_ORDER]))
    members = exact.state[:, masks[0] & jumping].astype(np.int64)
    assert exact.sizes(table[members @ 2 ** np.arange(d)], 1)[0, masks[0] & jumping] == pytest.approx(truth)


def test_an_order_and_its_reverse_are_exact_for_pairs_of_members() -> None:
    table = np.random.default_rng(0).standard_normal((7, 7))
    table = table + table.T
    ray = np.ones((1, 7), dtype=bool)
    asked = DiscreteJumps.of(ray, ray[0], np.array([11]))
    pairs = np.einsum("pi,ij,pj->p", asked.state.astype(float), table, asked.state.astype(float))
    assert asked.sizes(pairs, 1)[0] == pytest.approx(table.sum(1))


def test_intervals_of_a_vote_on_ten_hold_where_orders_are_sampled() -> None:
    ones, covered, errors = torch.ones(10, dtype=torch.float64), 0, []
    for seed in range(50):
        found = explain(vote, ones, features=all_discrete(10), kernel=gralis.Uniform(), budget=150, seed=seed)
        low, high = found.interval(0.95).T
        covered += bool(((low <= VOTE) & (high >= VOTE)).all())
        errors.append(found.values - VOTE)
    assert covered >= 46
    errors = np.stack(errors)
    assert (np.abs(errors.mean(0)) < 4 * errors.std(0, ddof=1) / np.sqrt(50)).all()


def test_more_budget_makes_the_error_of_a_vote_smaller() -> None:
    def error(budget: int) -> float:
        ones = torch.ones(10, dtype=torch.float64)
        options = {"features": all_discrete(10), "kernel": gralis.Uniform(), "budget": budget}
        return float(np.mean([(explain(vote, ones, seed=s, **options).values - VOTE) ** 2 for s in range(6)]) ** 0.5)

    small, medium, large = error(80), error(240), error(600)
    assert small > 1.2 * medium
    assert medium > 5 * large  # all sets fit into the budget, so only coalitions are sampled


def mixed_model(z: Tensor) -> Tensor:
    return torch.tanh(z[:, 0] + z[:, 1:7].sum(1)) + z[:, 0] * z[:, 1:].prod(1) + z[:, 7:].sum(1) ** 2


MANY = columns([f"c{i}" for i in range(12)], discrete=list(range(1, 12)))


def test_orders_follow_from_the_seed(tmp_path) -> None:
    x = torch.linspace(0.5, 1.5, 12, dtype=torch.float64)
    options = {"features": MANY, "budget": 160}
    found, other = (explain(mixed_model, x, seed=s, **options) for s in (1, 2))
    assert (found.values == explain(mixed_model, x, seed=1, **options).values).all()
    assert not np.allclose(found.values, other.values, rtol=1e-3)
    loaded = gralis.load(found.save(tmp_path / "orders.gralis"))
    assert gralis.replay(loaded, mixed_model).same
    longer = gralis.load(found.extend(100).save(tmp_path / "longer.gralis"))
    assert gralis.replay(longer, mixed_model).same
    first, _ = gralis.explain_batch(mixed_model, torch.stack([x, 0.9 * x]), **options)
    assert gralis.replay(first, mixed_model).same  # from the same rays
    assert not gralis.compare(mixed_model, mixed_model, x, **options).change.values.any()


def test_orders_in_a_folded_ledger(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gralis.run.settings._KEEP_BYTES", 0)
    ones = torch.ones(10, dtype=torch.float64)
    options = {"features": all_discrete(10), "kernel": gralis.Uniform(), "budget": 240}
    found = [explain(vote, ones, seed=seed, **options) for seed in range(16)]
    assert not found[0].ledger.keeps_rows
    values = np.stack([one.values for one in found])
    assert (np.abs(values.mean(0) - VOTE) < 4 * values.std(0, ddof=1) / 4).all()
    assert gralis.replay(found[0], vote).same


@pytest.mark.parametrize("budget", [160, 1100])
@pytest.mark.parametrize("plan", ["shared", "independent"])
def test_the_cost_before_the_run_counts_the_jumps(plan: str, budget: int) -> None:
    x = torch.linspace(0.5, 1.5, 12, dtype=torch.float64)
    before = gralis.cost(mixed_model, x, features=MANY, plan=plan, budget=budget)
    after = explain(mixed_model, x, features=MANY, plan=plan, budget=budget).cost
    assert before.n_forwards / 4 < after.n_forwards <= before.n_forwards


def test_integrated_gradients_of_many_discrete_features_have_an_error() -> None:
    ones = torch.ones(14, dtype=torch.float64)
    found = gralis.methods.integrated_gradients(lambda z: (z.sum(1) > 6.5).double(), ones, features=all_discrete(14))
    assert found.values.sum() == pytest.approx(1)
    assert (found.stderr > 0).any()
    few = gralis.methods.integrated_gradients(vote, ones[:10], features=all_discrete(10))
    assert few.values == pytest.approx(np.full(10, 0.1))


def test_targets_batches_and_files_know_about_jumps(tmp_path) -> None:
    def both(z: Tensor) -> Tensor:
        return torch.stack([model(z), model(z) ** 2], dim=1)

    options = {"baseline": BASE, "features": MIXED, "plan": "exhaustive", "budget": None}
    found = explain(both, X, target=[0, 1], **options)
    assert found.values[0] == pytest.approx(explain(model, X, **options).values, abs=1e-12)
    batch = gralis.explain_batch(model, torch.stack([X, X]), **options)
    assert batch.values[1] == pytest.approx(found.values[0], abs=1e-12)
    again = gralis.load(found[0].save(tmp_path / "mixed.gralis"))
    assert again.features.discrete.tolist() == MIXED.discrete.tolist()


def test_bad_declarations() -> None:
    with pytest.raises(GralisError, match=r"discrete.*names of features"):
        columns(["a", "b"], discrete=["c"])
    with pytest.raises(GralisError, match="discrete"):
        groups(np.arange(3)).jumping([7])
    with pytest.raises(GralisError, match="list"):
        columns(["a", "b"]).jumping("a")
