"""Weight mass per predecessor set (Appendix D) against enumeration; the warning when it sits on a handful."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
import torch

from gralis import Gaussian, SizeKernel, Uniform, explain
from gralis.certificates import weight_mass as mass
from reference import gaussian, network, shapley_weight, without


def explained(kernel: object, n: int = 6) -> object:
    x = torch.linspace(0.2, 1.6, n, dtype=torch.float64)
    return explain(network("softplus", n, 1), x, kernel=kernel, budget=None if n <= 6 else 200)


def test_mass_against_the_definition() -> None:
    found = explained(Gaussian(0.4))
    pi = gaussian(found.squared_distance[0].tolist(), 0.4, "relative")
    table = found.weight_mass()
    for i in range(6):
        weights = {s: float(shapley_weight(6, len(s))) * pi(s) for s in without(6, i)}
        total = math.fsum(weights.values())
        for size in range(6):
            expected = math.fsum(w for s, w in weights.items() if len(s) == size) / total
            assert table.sizes[i, size] == pytest.approx(expected, abs=1e-12)
        entropy = -math.fsum(w / total * math.log(w / total) for w in weights.values())
        assert table.effective[i] == pytest.approx(math.exp(entropy))
        best = max(weights, key=lambda s: weights[s])
        members, weight = table.heaviest[i][0]
        assert (frozenset(members), weight) == (best, pytest.approx(weights[best] / total))
    assert table.exact


def test_many_features_from_draws() -> None:
    found = explained(Uniform(), 18)
    table = found.weight_mass()
    assert not table.exact
    assert table.sizes == pytest.approx(np.full((18, 18), 1 / 18), abs=0.015)  # all sizes alike
    entropy = np.mean([math.log(18 * math.comb(17, s)) for s in range(18)])
    assert np.log(table.effective) == pytest.approx(np.full(18, entropy), rel=0.02)


def test_sampled_and_exact_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    found = explained(Gaussian(0.5))
    exact = found.weight_mass()
    monkeypatch.setattr(mass, "_MOST_ENUMERATED", 3)
    sampled = found.weight_mass()
    assert sampled.sizes == pytest.approx(exact.sizes, abs=0.03)
    assert sampled.effective == pytest.approx(exact.effective, rel=0.06)
    assert [rows[0][0] for rows in sampled.heaviest] == [rows[0][0] for rows in exact.heaviest]


def test_a_handful_is_warned_about() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        explained(Uniform()).weight_mass()
    with pytest.warns(UserWarning, match=r"handful.*6 of 6.*larger sigma"):
        explained(SizeKernel(lambda s: 1.0 if s == 0 else 1e-9)).weight_mass()


def test_a_kernel_the_rays_do_not_cover_is_warned_about() -> None:
    found = explain(network("softplus", 12, 1), torch.linspace(0.2, 1.6, 12, dtype=torch.float64), budget=100)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found.sweep([0.5, 1.0, np.inf])
    steep = SizeKernel(lambda s: 100.0**s)  # all the weight on the full coalition, which is hardly ever drawn
    with pytest.warns(UserWarning, match=r"cover.*badly.*effective rays"):
        found.with_kernel(steep)
    assert found.sweep([0.5, np.inf]).effective_rays.shape == (2, 12)


@pytest.mark.parametrize(
    ("rule", "nodes", "fewer"), [("riemann", 6, 2), ("midpoint", 9, 3), ("fejer", 11, 5), ("random", 4, 2)]
)
def test_fewer_nodes_from_the_same_rows(rule: str, nodes: int, fewer: int) -> None:
    model, x = network("softplus", 5, 1), torch.linspace(0.2, 1.6, 5, dtype=torch.float64)
    options = {"plan": "exhaustive", "quadrature": rule, "budget": None}
    full = explain(model, x, n_nodes=nodes, **options)
    thin = full.with_nodes(fewer)
    assert thin.ledger.n_points * nodes == full.ledger.n_points * fewer
    if rule != "random":
        assert thin.ledger.n_points == 31 * fewer
        assert thin.values == pytest.approx(explain(model, x, n_nodes=fewer, **options).values, rel=1e-12)
    else:
        drawn = thin.ledger.nodes_per_ray > 0
        assert thin.ledger.sum_points(thin.ledger.weight)[drawn] == pytest.approx(1.0)


def test_nodes_that_do_not_nest_are_refused() -> None:
    found = explain(
        network("softplus", 5, 1), torch.ones(5).double(), plan="exhaustive", quadrature="midpoint", n_nodes=8
    )
    with pytest.raises(ValueError, match=r"'n_nodes'.*one of \[8\].*midpoint.*Got 4"):
        found.with_nodes(4)


def test_a_sweep_over_nodes_is_what_each_number_of_nodes_would_have_given() -> None:
    model, x = network("softplus", 4, 1), torch.linspace(0.2, 1.6, 4, dtype=torch.float64)
    options = {"plan": "exhaustive", "quadrature": "fejer", "budget": None}
    sweep = explain(model, x, **options).sweep_nodes()
    assert (sweep.parameter, sweep.settings) == ("n_nodes", (1, 3, 7, 15))
    alone = [explain(model, x, n_nodes=k, **options).values for k in (1, 3, 7, 15)]
    assert sweep.values == pytest.approx(np.stack(alone), rel=1e-12)
    errors = np.abs(sweep.values - explain(model, x, plan="exhaustive", n_nodes=40, budget=None).values).max(1)
    assert (errors[1:] < errors[:-1] / 10).all()
    assert "n_nodes" in repr(sweep)
    thirds = explain(model, x, plan="permutation", quadrature="midpoint", n_nodes=27, budget=4 * 4 * 27)
    assert thirds.sweep_nodes([3, 9]).settings == (3, 9)
    with pytest.raises(ValueError, match=r"'n_nodes'.*sweep_nodes.*at least one.*Got \[\]"):
        thirds.sweep_nodes([])
    with pytest.raises(ValueError, match=r"one of \[1, 3, 9, 27\]"):
        thirds.sweep_nodes([5])
