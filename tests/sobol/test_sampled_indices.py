"""Sampled sensitivity: unbiased, with intervals that cover, for every kind of sampler and model."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats

from gralis import models
from gralis.games import Anova, Ishigami, Multilinear, SobolG
from gralis.sobol import sensitivity
from reference import network
from sobol_answers import known

KINDS = ("mean", "variance", "first", "total", "pairs", "closed", "shapley")


def departures(f: object, sampler: object, truth: dict, seeds: range, budget: int) -> dict[str, np.ndarray]:
    """(estimate - truth) / stderr for every index and seed."""
    scores: dict[str, list] = {kind: [] for kind in KINDS}
    for seed in seeds:
        result = sensitivity(f, sampler, method="sampling", budget=budget, seed=seed)
        for kind in KINDS:
            estimate = result.estimates[kind]
            off = estimate.values - truth[kind]
            scores[kind].append(np.where(np.abs(off) < 1e-12, 0.0, off / np.maximum(estimate.stderr, 1e-15)))
    return {kind: np.array(rows) for kind, rows in scores.items()}


@pytest.mark.parametrize(
    ("f", "sampler"),
    [
        (Ishigami(), None),
        (SobolG(), None),
        (Multilinear.random(6, 6, seed=2), None),
        (SobolG((0, 0, 1, 1, 2)), lambda rng, n: rng.random((n, 5))),
    ],
    ids=["ishigami", "sobol-g", "polynomial", "sampler"],
)
def test_estimates_are_unbiased_and_their_errors_honest(f: Anova, sampler: object) -> None:
    seeds = range(16)
    scores = departures(f, sampler or list(f.bounds), known(f), seeds, 3000)
    for kind, score in scores.items():
        covered = (np.abs(score) <= stats.t.ppf(0.975, 15)).mean()
        assert covered >= 0.8, kind  # 0.95 of them, of which a few families of 16 correlated rows are seen
    every = np.concatenate([score.ravel() for score in scores.values()])
    assert 0.7 < np.sqrt((every**2).mean()) < 1.4  # not too small, and not too large either
    assert np.abs(every).max() < 8


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("f", [Ishigami(), SobolG()], ids=["ishigami", "sobol-g"])
def test_analytic_values_lie_within_the_intervals(f: Anova, seed: int) -> None:
    result = sensitivity(f, f.bounds, method="sampling", level=0.99, seed=seed, budget=2**15)
    answers = known(f)
    for kind in ("first", "total", "shapley"):
        off = np.abs(getattr(result, kind) - answers[kind])
        assert (off <= getattr(result, f"{kind}_half_width") + 1e-12).all(), kind
    for pair, index in f.closed().items():
        assert abs(result.closed[pair] - float(index)) <= result.closed_half_width[pair] + 1e-12
    assert result.n_evaluations <= 2**15
    assert result.first_half_width.max() < 0.02


def test_intervals_are_wider_at_a_higher_level() -> None:
    f = SobolG()
    narrow, wide = (sensitivity(f, f.bounds, level=level, budget=3000) for level in (0.5, 0.99))
    assert (narrow.first == wide.first).all()
    assert (narrow.first_half_width < wide.first_half_width).all()


def test_errors_fall_at_least_as_fast_as_one_over_the_root_of_the_budget() -> None:
    f = Multilinear.random(6, 4, seed=4)
    answers = known(f)["total"]
    errors = []
    for budget in (1200, 19200):
        result = [sensitivity(f, f.bounds, method="sampling", budget=budget, seed=seed).total for seed in range(6)]
        errors.append(np.sqrt(np.mean((np.array(result) - answers) ** 2)))
    assert errors[1] < errors[0] / 3  # 16 times the budget


def test_an_additive_model_leaves_no_error() -> None:
    f = Multilinear({(0,): 1, (1,): 2, (3,): -3}, 4)
    result = sensitivity(f, f.bounds, method="sampling", budget=1000)
    np.testing.assert_allclose(result.first, known(f)["first"], atol=1e-8)
    np.testing.assert_allclose(result.shapley, known(f)["shapley"], atol=1e-8)
    assert not result.exact


def test_walks_find_interactions_of_many_inputs() -> None:
    """A product of six centred inputs: one interaction of all, nothing of one, two or five."""
    f = Multilinear({tuple(range(6)): 1}, 6, bounds=(-1, 1))
    result = sensitivity(f, f.bounds, method="sampling", budget=400_000)  # rare events carry the variance
    assert (np.abs(result.shapley - 1 / 6) <= result.shapley_half_width).all()
    assert result.shapley_half_width.max() < 0.2
    np.testing.assert_allclose(result.total, 1.0, atol=0.2)
    np.testing.assert_allclose(result.first, 0.0, atol=0.1)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_one_two_and_three_inputs(n: int) -> None:
    f = SobolG([0.0] * n)
    result = sensitivity(f, f.bounds, method="sampling", budget=4000)
    for kind in ("first", "total", "shapley"):
        half = getattr(result, f"{kind}_half_width")
        assert (np.abs(getattr(result, kind) - known(f)[kind]) <= 2 * half + 1e-9).all()
    assert len(result.closed) == n * (n - 1) // 2
    assert repr(result)


def test_dependent_columns_are_treated_as_independent_and_the_result_says_so() -> None:
    def together(rng: np.random.Generator, n: int) -> np.ndarray:
        z = rng.standard_normal((n, 1))
        return np.concatenate([z, z], axis=1)

    def model(z: torch.Tensor) -> torch.Tensor:
        return z[:, 0] + z[:, 1]

    result = sensitivity(model, together, budget=20000)
    assert abs(result.variance - 2) <= 2 * result.variance_half_width  # 4 if the columns moved together
    np.testing.assert_allclose(result.first, 0.5, atol=0.02)
    assert "sampler together treated as independent (largest rank correlation of two: 1.00)" in result.inputs
    X = together(np.random.default_rng(0), 500)
    of_data = sensitivity(model, X, budget=20000)
    assert of_data.variance == pytest.approx(2 * X[:, 0].var(), rel=0.02)
    assert "treated as independent (largest rank correlation of two: 1.00)" in of_data.inputs
    assert of_data.inputs in repr(of_data)


def test_a_data_matrix_is_sampled_column_by_column() -> None:
    rng = np.random.default_rng(5)
    X = rng.integers(0, 4, (300, 4)).astype(float)
    f = network("softplus", 4, 3)
    exact = sensitivity(f, X, method="quadrature")
    truth = {kind: estimate.values for kind, estimate in exact.estimates.items()}
    score = departures(f, X, truth, range(8), 3000)
    every = np.concatenate([rows.ravel() for rows in score.values()])
    assert 0.6 < np.sqrt((every**2).mean()) < 1.6


def test_distributions_of_scipy() -> None:
    f = Multilinear({(0,): 1, (1,): 1, (0, 1): 1}, 2)
    result = sensitivity(f, [stats.norm(0, 1), stats.expon()], budget=2**15)
    # around the means (0, 1): F = 1 + 2 (x - 0) + (y - 1) + x (y - 1), all variances 1
    for value, half, expected in zip(result.first, result.first_half_width, [4 / 6, 1 / 6], strict=True):
        assert abs(value - expected) <= 1.5 * half
    assert abs(result.pairs[0, 1] - 1 / 6) <= 1.5 * result.pairs_half_width[0, 1]
    assert result.first_half_width.max() < 0.05


def test_black_boxes_targets_and_modules() -> None:
    def numpy_only(z: np.ndarray) -> np.ndarray:
        assert isinstance(z, np.ndarray)
        return np.stack([z.sum(1), z[:, 0] * 2 + z[:, 1]], axis=1)

    bounds = [(0, 1), (0, 1)]
    result = sensitivity(models.blackbox(numpy_only, target=1), bounds)
    np.testing.assert_allclose(result.first, [0.8, 0.2], atol=1e-12)
    linear = torch.nn.Linear(2, 3).double().train()
    with torch.no_grad():
        linear.weight.copy_(torch.tensor([[0.0, 1.0], [2.0, 1.0], [1.0, 0.0]]))
    with pytest.warns(UserWarning, match="train mode"):
        module = sensitivity(linear, bounds, target=1)
    np.testing.assert_allclose(module.first, [0.8, 0.2], atol=1e-12)
    assert linear.training


def test_the_same_seed_gives_the_same_numbers_at_any_batch_size() -> None:
    f = SobolG()
    state = (torch.random.get_rng_state(), np.random.get_state()[1].copy())  # noqa: NPY002
    first = sensitivity(f, f.bounds, budget=4000, seed=7, batch_size=13)
    again = sensitivity(f, f.bounds, budget=4000, seed=7)
    other = sensitivity(f, f.bounds, budget=4000, seed=8)
    np.testing.assert_allclose(first.total, again.total, rtol=1e-12)
    assert (first.total != other.total).all()
    assert torch.equal(torch.random.get_rng_state(), state[0])
    assert (np.random.get_state()[1] == state[1]).all()  # noqa: NPY002


def test_the_table_shows_names_intervals_and_assumptions() -> None:
    f = SobolG()
    names = [f"valve {i}" for i in range(8)]
    text = repr(sensitivity(f, f.bounds, budget=4000, names=names))
    assert text.startswith("Sensitivity of 8 inputs, sampled, 95% intervals,")
    assert "valve 0 x valve 1" in text
    assert "+-" in text
    assert "independent, uniform on their bounds" in text
    smooth = repr(sensitivity(Ishigami(), Ishigami().bounds))
    assert "exact" not in smooth
    assert "could go unnoticed" in smooth
    finite = repr(sensitivity(f, np.array([[0.0] * 8, [1.0] * 8]) + np.arange(8) / 20))
    assert "every point evaluated, exact up to rounding" in finite
    assert "+-" not in finite
