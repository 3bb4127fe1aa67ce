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
from gralis.features import columns, groups
from gralis.rays.discrete import DiscreteJumps

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


def test_many_jumping_members_take_one_order_each_and_still_add_up() -> None:
    rng = np.random.default_rng(0)
    masks = rng.random((20, 9)) < 0.8
    asked = DiscreteJumps.of(masks, np.arange(9) != 4)
    values = rng.standard_normal(len(asked.ray))
    sizes = asked.sizes(values, 20)
    for ray in range(20):
        own = np.flatnonzero(asked.ray == ray)
        whole = asked.step[own][:, masks[ray] & (np.arange(9) != 4)].all(1)
        none = (asked.step[own][:, np.arange(9) != 4] == 0).all(1)
        assert sizes[ray].sum() == pytest.approx(float(values[own][whole][0] - values[own][none][0]))
        assert not sizes[ray][~masks[ray]].any()


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
