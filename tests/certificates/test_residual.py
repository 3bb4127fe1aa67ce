"""The residual split against closed forms and enumeration; additivity alone would prove nothing, it is an identity."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest
import torch

import gralis
from gralis import Gaussian, GralisError, Uniform, explain
from reference import network


def toy(z: torch.Tensor) -> torch.Tensor:
    a, b, c = z.T
    return 2 * a + 3 * b + c + 4 * a * b - a * c + 2 * b * c


def weighted_values(model, x: torch.Tensor, baseline: torch.Tensor) -> float:
    """sum_T v(T) / (t C(n, t)), coalition by coalition."""
    n = len(x)
    start = float(model(baseline[None])[0])
    total = 0.0
    for code in range(1, 2**n):
        mask = torch.tensor([bool(code >> i & 1) for i in range(n)])
        t = int(mask.sum())
        total += (float(model(torch.where(mask, x, baseline)[None])[0]) - start) / (t * comb(n, t))
    return total


def test_toy_example_of_appendix_e() -> None:
    found = explain(toy, torch.ones(3, dtype=torch.float64), kernel=Uniform()).residual
    assert found.observed.value == pytest.approx(2.5, abs=1e-10)
    assert found.path.value == pytest.approx(2.5, abs=1e-10)
    assert found.kernel.value == pytest.approx(0.0, abs=1e-10)
    assert found.numerical.value == pytest.approx(0.0, abs=1e-10)
    assert found.observed.half_width < 1e-13


def test_product_of_two_under_a_gaussian_kernel() -> None:
    a, b, sigma = 1.3, -0.7, 0.8
    x = torch.tensor([a, b], dtype=torch.float64)
    found = explain(lambda z: z[:, 0] * z[:, 1], x, kernel=Gaussian(sigma, "euclidean")).residual
    p1, p2 = np.exp(-(a**2) / 2 / sigma**2), np.exp(-(b**2) / 2 / sigma**2)
    phi = a * b / 2 * (p2 / (1 + p2) + p1 / (1 + p1))
    assert found.path.value == pytest.approx(a * b / 2, abs=1e-10)
    assert found.kernel.value == pytest.approx(a * b / 2 - phi, abs=1e-10)
    assert found.observed.value == pytest.approx(a * b - phi, abs=1e-10)


@pytest.mark.parametrize("activation", ["softplus", "tanh"])
def test_every_term_against_enumeration(activation: str) -> None:
    model, x, baseline = network(activation, 5, 3), torch.linspace(-1, 1.5, 5).double(), torch.full((5,), 0.2).double()
    options = {"baseline": baseline, "plan": "exhaustive", "budget": None, "n_nodes": 32}
    found = explain(model, x, kernel=Gaussian(0.4), **options)
    uniform = explain(model, x, kernel=Uniform(), **options)
    delta, total = found.delta, weighted_values(model, x, baseline)
    assert found.residual.path.value == pytest.approx(delta - total, abs=1e-10)
    assert found.residual.numerical.value == pytest.approx(total - uniform.values.sum(), abs=1e-9)
    assert found.residual.kernel.value == pytest.approx(uniform.values.sum() - found.values.sum(), abs=1e-10)
    assert abs(found.residual.kernel.value) > 1e-4


def test_numerical_term_shows_quadrature_bias() -> None:
    """Two midpoints on a curved ray are biased; the split blames the numbers, not the path."""
    model, x = network("tanh", 5, 3), 3 * torch.linspace(-1, 1.5, 5).double()
    coarse = explain(model, x, plan="exhaustive", budget=None, quadrature="midpoint", n_nodes=2).residual
    fine = explain(model, x, plan="exhaustive", budget=None, n_nodes=32).residual
    assert abs(coarse.numerical.value) > 100 * abs(fine.numerical.value)
    assert coarse.path.value == pytest.approx(fine.path.value, abs=1e-12)


def test_terms_add_up_on_a_sampled_ledger() -> None:
    model, x = network("relu", 9, 1), torch.linspace(-1, 1.5, 9).double()
    for plan in ("shared", "permutation", "independent"):
        found = explain(model, x, plan=plan, budget=600)
        parts = found.residual.path.value + found.residual.numerical.value + found.residual.kernel.value
        assert parts == pytest.approx(found.delta - found.values.sum(), abs=1e-12)


def test_sampled_terms_cover_the_exact_ones() -> None:
    model, x = network("softplus", 8, 4), torch.linspace(-1, 1.5, 8).double()
    exact = explain(model, x, plan="exhaustive", budget=None, n_nodes=32).residual
    hits = {"path": 0, "kernel": 0, "observed": 0}
    n_seeds = 20
    for seed in range(n_seeds):
        found = explain(model, x, budget=400, seed=seed).residual
        for name in hits:
            term, truth = getattr(found, name), getattr(exact, name).value
            hits[name] += abs(term.value - truth) <= term.half_width
    assert min(hits.values()) >= 16, hits  # 95% intervals, 20 seeds: below 16 has probability 0.3%


def test_needs_coalition_values() -> None:
    found = explain(network("tanh", 9, 1), torch.ones(9).double(), budget=300, coalition_values=False)
    with pytest.raises(GralisError, match="coalition_values=True"):
        _ = found.residual
    assert "residual F(x) - F(x') - sum" in repr(found)


def test_endpoint_plan_has_no_path() -> None:
    found = explain(network("tanh", 4, 1), torch.ones(4).double(), plan="endpoint")
    with pytest.raises(GralisError, match="endpoint"):
        _ = found.residual


def test_residual_makes_no_model_call() -> None:
    calls = []

    def model(z: torch.Tensor) -> torch.Tensor:
        calls.append(len(z))
        return z.prod(1)

    found = gralis.explain(model, torch.full((9,), 1.2, dtype=torch.float64), budget=300)
    before = len(calls)
    _ = found.residual
    assert len(calls) == before


@pytest.mark.parametrize("seed", range(4))
def test_path_term_of_a_multilinear_model_is_the_moebius_closed_form(seed: int) -> None:
    """R_path = sum_T m(T) (1 - 1 / |T|), the Moebius coefficients by inclusion and exclusion over all subsets."""
    game = gralis.games.Multilinear.random(5, 4, seed)
    rng = np.random.default_rng(seed)
    x, baseline = (torch.from_numpy(rng.uniform(-1, 2, 5)) for _ in range(2))
    found = explain(game, x, baseline=baseline, plan="exhaustive", kernel=Gaussian(0.6), budget=None).residual
    start = float(game(baseline[None])[0])
    value = {code: float(game(torch.where(bits(code), x, baseline)[None])[0]) - start for code in range(32)}
    expected = 0.0
    for code in range(1, 32):
        size = code.bit_count()
        subsets = [sub for sub in range(32) if sub & ~code == 0]
        moebius = sum((-1) ** (size - sub.bit_count()) * value[sub] for sub in subsets)
        expected += moebius * (1 - 1 / size)
    assert found.path.value == pytest.approx(expected, abs=1e-10)


def bits(code: int) -> torch.Tensor:
    return torch.tensor([bool(code >> i & 1) for i in range(5)])
