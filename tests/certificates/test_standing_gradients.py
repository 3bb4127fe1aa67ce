"""A feature that the model rounds is named; a feature that it sees through a slope, however steep, is not."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import gralis
from gralis import explain
from gralis.certificates.standing_gradients import standing_gradients

NAMES = ["age", "city", "dose", "size", "time", "zone", "mass", "pace", "rate"]


def doubts(model, n: int, **options) -> tuple[str, ...]:
    x = torch.linspace(0.6, 1.4, n, dtype=torch.float64)
    found = explain(model, x, **options)
    return standing_gradients(found.ledger, found.delta, NAMES[:n])


def net(n: int, activation: nn.Module, seed: int) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(n, 16), activation, nn.Linear(16, 1)).double().eval()


def rounding(n: int, columns: list[int], activation: nn.Module, seed: int):
    network = net(n, activation, seed)

    def model(z: Tensor) -> Tensor:
        return network(torch.stack([torch.round(z[:, i]) if i in columns else z[:, i] for i in range(n)], dim=1))[:, 0]

    return model


@pytest.mark.parametrize("options", [{}, {"budget": 200}, {"plan": "independent"}, {"plan": "permutation"}], ids=str)
@pytest.mark.parametrize("n", [3, 5, 9])
def test_a_rounded_column_is_named_and_no_other(n: int, options: dict[str, object]) -> None:
    for seed in range(2):
        (doubt,) = doubts(rounding(n, [1], nn.Tanh(), seed), n, **options)
        assert doubt.startswith("The gradient of city is zero")
        assert "discrete=['city']" in doubt


def test_two_rounded_columns_are_named_with_their_sizes() -> None:
    def model(z: Tensor) -> Tensor:
        return z[:, 0] ** 2 + 3 * torch.round(z[:, 1]) - 5 * (z[:, 2] > 0.5).double() + torch.sin(z[:, 3])

    (doubt,) = doubts(model, 4)
    assert doubt.startswith("The gradient of city and dose is zero")
    assert "about 3, -5 with them" in doubt


def test_a_looked_up_category_is_named() -> None:
    table = torch.tensor([0.0, 2.0, -1.0], dtype=torch.float64)
    (doubt,) = doubts(lambda z: z[:, 0] * 0.5 + table[z[:, 1].round().long()] * (1 + z[:, 2]), 3)
    assert doubt.startswith("The gradient of city is zero")


@pytest.mark.parametrize("n", [2, 3, 6, 9])
@pytest.mark.parametrize(
    "model",
    [
        lambda z: torch.sigmoid(60 * (z.sum(1) - 1.1)),
        lambda z: torch.sigmoid(300 * (z.sum(1) - 1.1)),
        lambda z: torch.tanh(1000 * (z.sum(1) - 0.7)),
        lambda z: (z.sum(1) > 1.1).double() + 0 * z.sum(1),
        lambda z: torch.sigmoid(60 * (z[:, 0] - 0.4)) + z[:, 1:].sum(1),
        lambda z: torch.sin(40 * z).sum(1),
        lambda z: z.sum(1),
        lambda z: z.prod(1),
        lambda z: torch.sqrt(z.abs() + 1e-9).sum(1),
        lambda z: 0 * z[:, 0] + z[:, 1:].prod(1),
    ],
    ids=["steep", "steeper", "steepest", "step", "one steep", "waves", "affine", "product", "root", "dummy"],
)
def test_slopes_are_not_steps(model, n: int) -> None:
    for options in ({}, {"budget": 300}):
        for seed in range(2):
            assert doubts(model, n, seed=seed, **options) == ()


@pytest.mark.parametrize("activation", [nn.ReLU(), nn.Tanh(), nn.Softplus(), nn.Hardtanh()], ids=str)
def test_networks_are_silent(activation: nn.Module) -> None:
    for n in (3, 6, 9):
        for seed in range(2):
            assert doubts(net(n, activation, seed), n, seed=seed) == ()


def test_a_column_that_is_declared_is_no_longer_named() -> None:
    model, x = rounding(4, [1], nn.Tanh(), 0), torch.linspace(0.6, 1.4, 4, dtype=torch.float64)
    features = gralis.features.columns(NAMES[:4], discrete=["city"])
    found = explain(model, x, features=features)
    assert standing_gradients(found.ledger, found.delta, NAMES[:4]) == ()
    assert found.ledger.checksum == pytest.approx(np.zeros(15), abs=1e-6)


def test_a_gradient_that_is_zero_somewhere_is_not_zero_everywhere() -> None:
    """relu(b - 0.4) sleeps on the first part of its ray and wakes up on the second."""
    found = explain(
        lambda z: z[:, 0] ** 3 + torch.relu(z[:, 1] - 0.4) + z[:, 2],
        torch.ones(3, dtype=torch.float64),
        plan="exhaustive",
        quadrature="midpoint",
        n_nodes=2,
    )
    assert np.abs(found.ledger.checksum).max() > 0.05  # something is missing, but no step of a column
    assert standing_gradients(found.ledger, found.delta, NAMES[:3]) == ()


def test_unused_features_are_not_named_and_a_rounded_one_among_them_is() -> None:
    """Random nodes leave noise on rays of many features, which a fit with 188 unused members takes for steps."""
    names = [str(i) for i in range(200)]
    x = torch.linspace(0.6, 1.4, 200, dtype=torch.float64)
    for seed in range(3):
        network = net(12, nn.Tanh(), seed)
        plain = explain(lambda z, network=network: network(z[:, :12])[:, 0], x, budget=300, seed=seed)
        assert standing_gradients(plain.ledger, plain.delta, names) == ()
        stepped = explain(
            lambda z, network=network: network(z[:, :12])[:, 0] + 2 * torch.round(z[:, 50]), x, budget=300, seed=seed
        )
        (doubt,) = standing_gradients(stepped.ledger, stepped.delta, names)
        assert doubt.startswith("The gradient of 50 is zero")
