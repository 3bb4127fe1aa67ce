"""plan="values": Shapley values from forwards only, against enumeration and closed forms."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

import gralis
from explainers.definitions import game_of, sets_of, shapiq_index, weighted_ridge
from gralis import BudgetError, GralisError, baselines, explain, models
from gralis.games import Airport, Multilinear
from reference import network, point

N = 9
X = torch.linspace(-1.2, 1.5, N, dtype=torch.float64)
ORIGIN = np.zeros((1, N))


def enumerated(model: Callable, x: torch.Tensor = X, background: np.ndarray = ORIGIN) -> np.ndarray:
    """The Shapley values of the mean game, by shapiq from all coalitions."""
    return shapiq_index(game_of(model, x.numpy(), background), "SV", 1)


class Counting:
    """A network that remembers every row it was asked for."""

    def __init__(self) -> None:
        self.rows: list[bytes] = []
        self._net = network("tanh", N, 1)

    def __call__(self, z: torch.Tensor) -> torch.Tensor:
        self.rows += [row.numpy().tobytes() for row in z.detach()]
        return self._net(z)


# ---- each coalition once, and the truth in the end


def test_every_coalition_once_and_exact_when_all_are_there() -> None:
    model = Counting()
    explanation = explain(model, X, plan="values", budget=2**N)
    assert len(model.rows) == len(set(model.rows)) <= 2**N
    assert explanation.cost.n_forwards == len(model.rows)
    assert explanation.cost.n_gradients == 0
    assert explanation.values == pytest.approx(enumerated(network("tanh", N, 1)), abs=1e-9)
    assert explanation.estimate.exact
    assert (explanation.stderr == 0).all()


def test_extend_goes_on_without_asking_again() -> None:
    model = Counting()
    first = explain(model, X, plan="values", budget=100, seed=3)
    before = first.values.copy()
    assert len(model.rows) == first.cost.n_forwards <= 100
    more = first.extend(60)
    assert len(model.rows) == len(set(model.rows)) == more.cost.n_forwards <= first.cost.n_forwards + 60
    assert more.cost.n_forwards > first.cost.n_forwards
    assert np.array_equal(more.ledger.masks[: first.ledger.n_rays], first.ledger.masks)
    assert np.array_equal(first.values, before)
    assert more.stderr.mean() < first.stderr.mean()
    everything = more.extend(10_000)
    assert len(model.rows) == len(set(model.rows)) == 2**N
    assert everything.estimate.exact
    assert everything.values == pytest.approx(enumerated(network("tanh", N, 1)), abs=1e-9)
    with pytest.raises(GralisError, match="already exact"):
        everything.extend(10)


def test_features_that_do_not_move_are_exactly_zero_and_cost_nothing() -> None:
    model, x = Counting(), X.clone()
    x[[2, 5]] = 0.0
    explanation = explain(model, x, plan="values", budget=60)
    assert len(model.rows) == len(set(model.rows))
    for numbers in (explanation.values, explanation.stderr, explanation.interval()[:, 0], explanation.interval()[:, 1]):
        assert (numbers[[2, 5]] == 0).all()
    whole = explain(model, x, plan="values", budget=2**7)
    assert whole.estimate.exact
    assert whole.cost.n_forwards == 2**7
    assert whole.values == pytest.approx(enumerated(network("tanh", N, 1), x), abs=1e-9)


def test_the_same_at_any_batch_size() -> None:
    runs = [explain(network("relu", N, 2), X, plan="values", budget=90, seed=5, batch_size=b) for b in (1, 7, 4096)]
    for other in runs[1:]:
        assert np.array_equal(other.ledger.masks, runs[0].ledger.masks)
        # Rounding in the model moves the parameters that are learnt; the values by far less than their error.
        assert (np.abs(other.values - runs[0].values) < 1e-3 * runs[0].stderr).all()
        np.testing.assert_allclose(other.stderr, runs[0].stderr, rtol=1e-3)
    assert not np.array_equal(
        explain(network("relu", N, 2), X, plan="values", budget=90, seed=6).ledger.masks, runs[0].ledger.masks
    )


def test_saved_and_loaded(tmp_path: Path) -> None:
    explanation = explain(network("tanh", N, 1), X, plan="values", budget=80)
    again = gralis.load(explanation.save(tmp_path / "values.gralis"))
    for part in ("values", "stderr"):
        assert np.array_equal(getattr(again, part), getattr(explanation, part))
    assert np.array_equal(again.interval(), explanation.interval())
    assert np.array_equal(again.shapley().values, explanation.values)
    assert np.array_equal(again.banzhaf().values, explanation.banzhaf().values)
    assert repr(again) == repr(explanation)


# ---- as far off as it says


def test_close_to_the_truth_with_an_error_that_knows_it() -> None:
    model = network("tanh", N, 1)
    truth = enumerated(model)
    explanations = [explain(model, X, plan="values", budget=150, seed=seed) for seed in range(8)]
    error = np.stack([e.values for e in explanations]) - truth
    stated = np.stack([e.stderr for e in explanations])
    assert np.sqrt((error**2).mean()) < 0.1 * np.abs(truth).mean()
    assert 0.4 < np.sqrt((error**2).mean() / (stated**2).mean()) < 2.5
    assert all(e.values.sum() == pytest.approx(e.delta) for e in explanations)
    assert all(e.method == "Shapley values" and e.shapley().values is e.values for e in explanations)
    assert "9 features, Shapley values" in repr(explanations[0])
    assert "make likely" in repr(explanations[0].certificate())


def test_additive_games_and_many_features() -> None:
    slopes = np.arange(1.0, 21.0)
    explanation = explain(models.blackbox(lambda z: z @ slopes), np.ones(20), plan="values", budget=100)
    assert explanation.values == pytest.approx(slopes, abs=1e-3)
    pairs = Multilinear.random(20, 2, seed=4)
    explanation = explain(models.blackbox(pairs), np.ones(20), plan="values", budget=500)
    assert explanation.values == pytest.approx(pairs.shapley().astype(float), abs=1e-2)


COVERAGE = {
    "tanh": (network("tanh", N, 1), X.numpy()),
    "relu": (network("relu", N, 2), point(N, 2)),
    "softplus": (network("softplus", N, 3), point(N, 3)),
    "airport": (Airport(tuple(range(1, N + 1))), np.ones(N)),
}


def covered(name: str, budget: int, seeds: range) -> list[bool]:
    """Whether all simultaneous 95% intervals hold, for each seed."""
    model, x = COVERAGE[name]
    truth = enumerated(model, torch.from_numpy(x))
    hits = []
    for seed in seeds:
        given = models.blackbox(lambda z: model(torch.from_numpy(z)).numpy())
        low, high = explain(given, x, plan="values", budget=budget, seed=seed).interval().T
        hits.append(bool(((low - 1e-9 <= truth) & (truth <= high + 1e-9)).all()))
    return hits


def test_simultaneous_intervals_cover() -> None:
    hits = [hit for name in COVERAGE for hit in covered(name, 120, range(4))]
    assert sum(hits) >= 12  # of 16; at 95% fewer has a probability of 0.1%


@pytest.mark.slow
@pytest.mark.parametrize("budget", [60, 150])
@pytest.mark.parametrize("name", COVERAGE)
def test_simultaneous_intervals_cover_over_seeds(name: str, budget: int) -> None:
    assert sum(covered(name, budget, range(20))) >= 16  # of 20; at 95% fewer has a probability of 0.3%


def test_a_tolerance_stops_the_run_and_says_so() -> None:
    model = Counting()
    explanation = explain(model, X, plan="values", budget=400, tolerance=0.05)
    assert explanation.reached is True
    assert explanation.cost.n_forwards == len(model.rows) == len(set(model.rows)) < 400
    half = np.diff(explanation.interval(), axis=1)[:, 0] / 2
    assert half.max() <= 0.05 * abs(explanation.delta)
    assert "tolerance 0.05 reached" in repr(explanation)
    short = explain(network("relu", N, 1), X, plan="values", budget=100, tolerance=1e-5)
    assert short.reached is False
    assert short.budget_for(1e-5) == 2**N  # with all coalitions there is no error left
    assert "about 5.1e+02 forwards would do it" in repr(short)


# ---- several baselines


def test_several_baselines_against_the_mean_game() -> None:
    model, n = network("tanh", 6, 4), 6
    x, background = point(n, 4), 0.5 * np.random.default_rng(1).standard_normal((4, n))
    truth = shapiq_index(game_of(model, x, background), "SV", 1)
    asked: list[bytes] = []

    def counting(z: np.ndarray) -> np.ndarray:
        asked.extend(row.tobytes() for row in z)
        return model(torch.from_numpy(z)).numpy()

    given = models.blackbox(counting)
    explanations = [
        explain(given, x, baseline=baselines.sample(background), plan="values", budget=120, seed=seed)
        for seed in range(6)
    ]
    assert all(e.cost.n_forwards <= 120 for e in explanations)
    assert len(asked) == sum(e.cost.n_forwards for e in explanations)
    error = np.stack([e.values - truth for e in explanations])
    stated = np.stack([e.stderr for e in explanations])
    assert np.sqrt((error**2).mean()) < 0.1 * np.sqrt((truth**2).mean())
    assert 0.4 < np.sqrt((error**2).mean() / (stated**2).mean()) < 2.5
    assert all(e.values.sum() == pytest.approx(e.delta) for e in explanations)
    whole = explain(given, x, baseline=baselines.sample(background), plan="values", budget=None)
    assert whole.estimate.exact
    np.testing.assert_allclose(whole.values, truth, rtol=0, atol=1e-9)


def test_background_data_is_used_whole_or_the_result_says_which_part() -> None:
    model, background = network("tanh", N, 1), np.random.default_rng(0).standard_normal((150, N))
    whole = explain(model, X, baseline=baselines.sample(background), plan="values", budget=700)
    assert len(whole.f_baselines) == 150
    assert whole.provenance["baseline"] == "sample(150 rows, all rows)"
    some = explain(model, X, baseline=baselines.sample(background, 5, seed=2), plan="values", budget=300)
    assert len(some.f_baselines) == 5
    assert some.provenance["baseline"] == "sample(150 rows, n=5, seed=2)"
    assert some.f_baselines.tolist() != whole.f_baselines[:5].tolist()
    with pytest.raises(GralisError, match="from 1 to the 150 rows"):
        baselines.sample(background, 151)


# ---- black boxes


@pytest.fixture(scope="module")
def classifier() -> LogisticRegression:
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((200, 7))
    return LogisticRegression().fit(rows, rows[:, 0] + rows[:, 1] - rows[:, 2] + rng.standard_normal(200) > 0)


def probability(classifier: LogisticRegression) -> tuple[models.Model, np.ndarray, np.ndarray]:
    """A black box, its x, and the table of its game."""
    x = np.linspace(-1.0, 2.5, 7)  # no feature is at the baseline

    def second(z: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(classifier.predict_proba(z.numpy())[:, 1])

    return models.blackbox(classifier.predict_proba, target=1), x, game_of(second, x, np.zeros((1, 7)))


@pytest.mark.parametrize("plan", ["values", "endpoint"])
def test_all_that_needs_values_only_from_predict_proba(plan: str, classifier: LogisticRegression) -> None:
    model, x, v = probability(classifier)
    explanation = explain(model, x, plan=plan, budget=None, kernel=gralis.Uniform())
    assert explanation.estimate.exact
    assert explanation.cost.n_gradients == 0
    pairs = sets_of(7, 2)
    expected = {
        "values": (explanation.values, shapiq_index(v, "SV", 1)),
        "shapley": (explanation.shapley().values, shapiq_index(v, "SV", 1)),
        "kernel_shap": (explanation.kernel_shap().values, shapiq_index(v, "SV", 1)),
        "banzhaf": (explanation.banzhaf().values, shapiq_index(v, "BV", 1)),
        "singles": (explanation.singles().values, v[1 << np.arange(7)]),
        "SII": (list(explanation.interactions(2, "SII").values()), shapiq_index(v, "SII", 2)),
        "FSII": (list(explanation.interactions(2, "FSII").values()), shapiq_index(v, "FSII", 2)),
        "lime": (explanation.lime(ridge=0.5).values, weighted_ridge(v, 0.25, 0.5)[0]),
        "moebius": (list(explanation.moebius(2).values()), shapiq_index(v, "Moebius", 7)[: len(pairs)]),
    }
    for name, (ours, theirs) in expected.items():
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-8, err_msg=name)


@pytest.mark.parametrize("plan", ["values", "endpoint"])
def test_a_sampled_black_box_says_that_it_is_one(plan: str, classifier: LogisticRegression) -> None:
    model, x, v = probability(classifier)
    explanation = explain(model, x, plan=plan, budget=90)
    for result in (
        explanation.shapley(),
        explanation.banzhaf(),
        explanation.interactions(2),
        explanation.lime(),
        explanation.moebius(2),
    ):
        assert "estimated" in repr(result)
        assert not result.exact
    assert explanation.shapley().values == pytest.approx(shapiq_index(v, "SV", 1), abs=0.05)


def test_what_needs_gradients_says_so(classifier: LogisticRegression) -> None:
    model, x, _ = probability(classifier)
    with pytest.raises(GralisError, match=r'has no gradient, so there are no rays; use plan="endpoint" or plan="val'):
        explain(model, x, budget=100)
    background = baselines.sample(np.random.default_rng(0).standard_normal((3, 7)))
    explanation = explain(model, x, plan="values", budget=90, baseline=background)
    refusals = {
        "Integrated gradients need gradients": explanation.integrated_gradients,
        "plan='values' has no rays": lambda: explanation.residual,
        "Shapley values, which have no kernel": lambda: explanation.with_kernel(gralis.Uniform()),
        "needs the nodes on the rays": lambda: explanation.with_nodes(2),
    }
    for sentence, ask in refusals.items():
        with pytest.raises(GralisError, match=re.escape(sentence)):
            ask()


@pytest.mark.parametrize(
    ("n", "options", "sentence"),
    [
        (N, {"budget": 3}, r"budget of 3 .*at least"),
        (25, {"budget": None}, r"2\^25 coalitions; give a budget of forwards"),
    ],
)
def test_too_small_a_budget_is_refused(n: int, options: dict, sentence: str) -> None:
    with pytest.raises(BudgetError, match=sentence):
        explain(models.blackbox(lambda z: z.sum(1)), np.ones(n), plan="values", **options)


def test_rows_that_surprise_the_process_widen_the_error_of_steep_games_alone():
    """A vote of ten: the process expects a smooth game, and the leave-one-out residuals have heavy tails."""
    weights = np.random.default_rng(1).uniform(0.5, 1.5, 10)

    def kurtosis(v):
        e = gralis.explain(
            lambda z: v(z @ z.new_tensor(weights) / weights.sum()), np.ones(10), plan="values", budget=200
        )
        return e.estimate.carriers[0]

    assert kurtosis(lambda u: torch.sigmoid(300 * (u - 0.43))) < 0.7 * kurtosis(torch.tanh)
