"""Sensitivity: exact where it says so, intervals that cover, against closed forms and brute-force enumeration."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from scipy import stats

from gralis import BudgetError, Gaussian, GralisError, ModelError, Uniform, explain, models
from gralis.games import Anova, Ishigami, Multilinear, SobolG, appendix_e
from gralis.sobol import Sensitivity, hoeffding, pick_freeze, sensitivity
from gralis.sobol.design import Design
from gralis.sobol.inputs import Column, Tables, uniforms
from gralis.sobol.quadrature import UnresolvedError
from gralis.sobol.surrogate import Basis, Surrogate
from reference import network, subsets

KINDS = ("mean", "variance", "first", "total", "pairs", "closed", "shapley")


def known(f: Anova) -> dict[str, np.ndarray]:
    """The closed-form answers, in the order of the result's own arrays."""
    answers = {
        "mean": [f.mean()],
        "variance": [f.variance()],
        "first": f.first_order(),
        "total": f.total(),
        "pairs": list(f.pairs().values()),
        "closed": list(f.closed().values()),
        "shapley": f.shapley_effects(),
    }
    return {kind: np.array([float(value) for value in values]) for kind, values in answers.items()}


def brute(f: Callable, columns: list[np.ndarray], weights: list[np.ndarray]) -> tuple[float, dict]:
    """E F and Var E[F | x_T] for every T of independent discrete inputs, from the definition."""
    n = len(columns)
    shape = tuple(len(column) for column in columns)
    points = np.array(list(itertools.product(*columns)))
    values = f(points).reshape(shape)
    mass = np.array([math.prod(row) for row in itertools.product(*weights)]).reshape(shape)
    mean = float((mass * values).sum())
    closed = {}
    for t in subsets(range(n)):
        rest = tuple(j for j in range(n) if j not in t)
        share = mass.sum(rest)
        conditional = (mass * values).sum(rest) / share
        closed[t] = float((share * (conditional - mean) ** 2).sum())
    return mean, closed


# ---- quadrature


@pytest.mark.parametrize(
    "f",
    [
        Ishigami(),
        SobolG((0, 1, 4.5, 9)),
        SobolG((0, 1, 4.5, 9, 99)),
        appendix_e(),
        Multilinear.random(5, 5, seed=1),
        Multilinear({(0,): 1, (2,): 2}, 3, bounds=[(0, 1), (-1, 1), (2, 5)]),
    ],
    ids=["ishigami", "g4", "g5", "appendix-e", "polynomial", "inert"],
)
def test_quadrature_is_exact(f: Anova) -> None:
    found = sensitivity(f, f.bounds)
    assert found.exact
    for kind, expected in known(f).items():
        np.testing.assert_allclose(found.estimates[kind].values, expected, rtol=1e-11, atol=1e-11, err_msg=kind)
        assert (np.asarray(found._half(kind)) == 0).all()
    assert found.quadrature_error is not None
    assert found.quadrature_error < 1e-9
    assert found.n_evaluations < 2**15


def test_the_accessors_are_the_answers() -> None:
    f = Ishigami()
    found = sensitivity(f, f.bounds)
    assert found.closed[0, 2] == pytest.approx(float(f.closed()[0, 2]))
    assert found.pairs[0, 2] == pytest.approx(float(f.pairs()[0, 2]))
    assert found.pairs[1, 2] == pytest.approx(0.0, abs=1e-12)
    assert found.shapley.sum() == pytest.approx(1.0)
    assert (found.mean, found.variance) == pytest.approx((3.5, float(f.variance())))
    assert found.first_half_width.tolist() == found.total_half_width.tolist() == [0, 0, 0]
    assert found.closed_half_width[0, 1] == found.pairs_half_width[0, 1] == found.mean_half_width == 0


def test_the_eight_inputs_of_sobol_g_by_quadrature() -> None:
    f = SobolG()
    found = sensitivity(f, f.bounds, method="quadrature", budget=None)
    for kind, expected in known(f).items():
        np.testing.assert_allclose(found.estimates[kind].values, expected, rtol=0, atol=1e-10)


def test_few_distinct_values_are_enumerated() -> None:
    rng = np.random.default_rng(3)
    X = np.stack([rng.integers(0, 3, 40), rng.integers(0, 2, 40) * 2.5, rng.integers(-2, 2, 40)], axis=1)
    f = network("relu", 3, 1)
    found = sensitivity(f, X.astype(float))
    pairs = [np.unique(column, return_counts=True) for column in X.T]
    mean, closed = brute(
        lambda z: f(torch.from_numpy(z)).numpy(), [v for v, _ in pairs], [c / c.sum() for _, c in pairs]
    )
    full = frozenset(range(3))
    assert found.exact
    assert (found.mean, found.variance) == pytest.approx((mean, closed[full]), rel=1e-10)
    np.testing.assert_allclose(found.first, [closed[frozenset({i})] / closed[full] for i in range(3)], atol=1e-12)
    np.testing.assert_allclose(found.total, [1 - closed[full - {i}] / closed[full] for i in range(3)], atol=1e-12)
    for pair, index in found.closed.items():
        assert index == pytest.approx(closed[frozenset(pair)] / closed[full], abs=1e-12)
    assert "3 columns of X (40 rows) treated as independent" in found.inputs


def test_single_precision_is_good_to_single_precision() -> None:
    torch_model = torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)).eval()
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for p in torch_model.parameters():
            p.copy_(torch.randn(p.shape, generator=generator))
    bounds = [(-1, 1), (0, 2)]
    single = sensitivity(torch_model, bounds)
    double = sensitivity(torch_model.double(), bounds)
    assert single.exact
    assert double.exact
    np.testing.assert_allclose(single.first, double.first, atol=1e-5)
    assert 0 < double.quadrature_error < 1e-9 < single.quadrature_error < 1e-3


def test_a_rough_model_is_sampled_and_quadrature_says_why_not() -> None:
    def step(z: torch.Tensor) -> torch.Tensor:
        return (z[:, 0] > 0.3).double() + z[:, 1]

    assert not sensitivity(step, [(0, 1), (0, 1)], budget=5000).exact
    with pytest.raises(UnresolvedError, match="too rough along input 0"):
        sensitivity(step, [(0, 1), (0, 1)], method="quadrature")


def test_what_the_lines_do_not_meet_is_met_by_the_trials() -> None:
    def spot(z: torch.Tensor) -> torch.Tensor:
        return z[:, 2] + 5 * ((z[:, :2] > 0.11) & (z[:, :2] < 0.26)).all(1).double()

    bounds = [(0, 1)] * 3
    with pytest.raises(UnresolvedError, match="where the grid says"):
        sensitivity(spot, bounds, method="quadrature")
    found = sensitivity(spot, bounds)
    variance = 1 / 12 + 25 * 0.15**2 * (1 - 0.15**2)
    assert not found.exact
    assert abs(found.variance - variance) <= found.variance_half_width


# ---- sampling


def departures(f: object, sampler: object, truth: dict, seeds: range, budget: int) -> dict[str, np.ndarray]:
    """(estimate - truth) / stderr for every index and seed."""
    scores: dict[str, list] = {kind: [] for kind in KINDS}
    for seed in seeds:
        found = sensitivity(f, sampler, method="sampling", budget=budget, seed=seed)
        for kind in KINDS:
            estimate = found.estimates[kind]
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
    found = sensitivity(f, f.bounds, method="sampling", level=0.99, seed=seed, budget=2**15)
    answers = known(f)
    for kind in ("first", "total", "shapley"):
        off = np.abs(getattr(found, kind) - answers[kind])
        assert (off <= getattr(found, f"{kind}_half_width") + 1e-12).all(), kind
    for pair, index in f.closed().items():
        assert abs(found.closed[pair] - float(index)) <= found.closed_half_width[pair] + 1e-12
    assert found.n_evaluations <= 2**15
    assert found.first_half_width.max() < 0.02


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
        found = [sensitivity(f, f.bounds, method="sampling", budget=budget, seed=seed).total for seed in range(6)]
        errors.append(np.sqrt(np.mean((np.array(found) - answers) ** 2)))
    assert errors[1] < errors[0] / 3  # 16 times the budget


def test_an_additive_model_leaves_no_error() -> None:
    f = Multilinear({(0,): 1, (1,): 2, (3,): -3}, 4)
    found = sensitivity(f, f.bounds, method="sampling", budget=1000)
    np.testing.assert_allclose(found.first, known(f)["first"], atol=1e-8)
    np.testing.assert_allclose(found.shapley, known(f)["shapley"], atol=1e-8)
    assert not found.exact


def test_walks_find_interactions_of_many_inputs() -> None:
    """A product of six centred inputs: one interaction of all, nothing of one, two or five."""
    f = Multilinear({tuple(range(6)): 1}, 6, bounds=(-1, 1))
    found = sensitivity(f, f.bounds, method="sampling", budget=40000)
    assert (np.abs(found.shapley - 1 / 6) <= found.shapley_half_width).all()
    assert found.shapley_half_width.max() < 0.2
    np.testing.assert_allclose(found.total, 1.0, atol=0.2)
    np.testing.assert_allclose(found.first, 0.0, atol=0.1)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_one_two_and_three_inputs(n: int) -> None:
    f = SobolG([0.0] * n)
    found = sensitivity(f, f.bounds, method="sampling", budget=4000)
    for kind in ("first", "total", "shapley"):
        half = getattr(found, f"{kind}_half_width")
        assert (np.abs(getattr(found, kind) - known(f)[kind]) <= 2 * half + 1e-9).all()
    assert len(found.closed) == n * (n - 1) // 2
    assert repr(found)


def test_dependent_columns_are_treated_as_independent_and_the_result_says_so() -> None:
    def together(rng: np.random.Generator, n: int) -> np.ndarray:
        z = rng.standard_normal((n, 1))
        return np.concatenate([z, z], axis=1)

    def model(z: torch.Tensor) -> torch.Tensor:
        return z[:, 0] + z[:, 1]

    found = sensitivity(model, together, budget=20000)
    assert abs(found.variance - 2) <= 2 * found.variance_half_width  # 4 if the columns moved together
    np.testing.assert_allclose(found.first, 0.5, atol=0.02)
    assert "sampler together treated as independent (largest rank correlation of two: 1.00)" in found.inputs
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
    found = sensitivity(f, [stats.norm(0, 1), stats.expon()], budget=2**15)
    # around the means (0, 1): F = 1 + 2 (x - 0) + (y - 1) + x (y - 1), all variances 1
    for value, half, expected in zip(found.first, found.first_half_width, [4 / 6, 1 / 6], strict=True):
        assert abs(value - expected) <= 1.5 * half
    assert abs(found.pairs[0, 1] - 1 / 6) <= 1.5 * found.pairs_half_width[0, 1]
    assert found.first_half_width.max() < 0.05


def test_black_boxes_targets_and_modules() -> None:
    def numpy_only(z: np.ndarray) -> np.ndarray:
        assert isinstance(z, np.ndarray)
        return np.stack([z.sum(1), z[:, 0] * 2 + z[:, 1]], axis=1)

    bounds = [(0, 1), (0, 1)]
    found = sensitivity(models.blackbox(numpy_only, target=1), bounds)
    np.testing.assert_allclose(found.first, [0.8, 0.2], atol=1e-12)
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
    exact = repr(sensitivity(Ishigami(), Ishigami().bounds))
    assert "exact by quadrature" in exact
    assert "+-" not in exact


# ---- the moments, the surrogate and the inputs


def every_row(atoms: np.ndarray) -> Design:
    """Two equally likely values for each of five inputs: all pairs of rows A, B with all orders of the walk."""
    n = len(atoms)
    rows = np.array(list(itertools.product(*atoms)))
    orders = np.array(list(itertools.permutations(range(n))))
    a, b, o = (part.ravel() for part in np.indices((len(rows), len(rows), len(orders))))
    return Design(Tables(np.stack([rows[a], rows[b]]), None), orders[o])


def test_moments_over_all_rows_are_the_variances() -> None:
    n = 5
    atoms = np.random.default_rng(6).standard_normal((n, 2))
    f = network("tanh", n, 8)
    _, closed = brute(lambda z: f(torch.from_numpy(z)).numpy(), list(atoms), [np.full(2, 0.5)] * n)
    part = {t: sum((-1) ** (len(t) - len(s)) * closed[s] for s in subsets(t)) for t in subsets(range(n))}
    design = every_row(atoms)
    values = f(torch.from_numpy(design.points(slice(0, design.n_points)))).numpy()
    found = pick_freeze._moments(values, design.place)

    def total(*members: int) -> float:
        return sum(var for t, var in part.items() if t.issuperset(members))

    np.testing.assert_allclose(found.variance, closed[frozenset(range(n))], rtol=1e-9)
    np.testing.assert_allclose(found.single, [part[frozenset({i})] for i in range(n)], atol=1e-10)
    np.testing.assert_allclose(found.total, [total(i) for i in range(n)], atol=1e-10)
    for i, j in itertools.permutations(range(n), 2):
        assert found.pair[i, j] == pytest.approx(part[frozenset({i, j})], abs=1e-10)
        assert found.overlap[i, j] == pytest.approx(total(i, j), abs=1e-10)
    effects = [sum(var / len(t) for t, var in part.items() if i in t) for i in range(n)]
    shapley = pick_freeze._shapley(pick_freeze._each(lambda moment: np.asarray(moment)[None], found))[0]
    np.testing.assert_allclose(shapley, effects, atol=1e-10)


def test_the_moments_of_the_surrogate_are_known() -> None:
    gauss = (1 + np.array([-1, 1]) / math.sqrt(3)) / 2  # equal weights, exact up to degree three
    design = every_row(np.tile(gauss, (5, 1)))
    basis = Basis(5, 1, 2)
    surrogate = Surrogate(basis, np.random.default_rng(2).standard_normal(basis.n_terms))
    seen = pick_freeze._moments(surrogate.at(design.points(slice(0, design.n_points))), design.place)
    for field, moment in vars(pick_freeze._known(surrogate)).items():
        np.testing.assert_allclose(getattr(seen, field), moment, atol=1e-10, err_msg=field)


def test_the_surrogate_knows_its_own_variances() -> None:
    basis = Basis(3, 3, 4)
    rng = np.random.default_rng(0)
    c = rng.standard_normal(basis.n_terms)
    node, weight = np.polynomial.legendre.leggauss(6)
    u, w = (node + 1) / 2, weight / 2
    mean, closed = brute(lambda z: basis.at(z) @ c, [u] * 3, [w] * 3)
    single, pair = basis.parts(c)
    assert mean == pytest.approx(c[0])
    np.testing.assert_allclose(single, [closed[frozenset({i})] for i in range(3)], rtol=1e-10)
    for i, j in itertools.combinations(range(3), 2):
        assert pair[i, j] == pair[j, i] == pytest.approx(closed[frozenset({i, j})] - single[i] - single[j], rel=1e-9)
    assert closed[frozenset(range(3))] == pytest.approx(single.sum() + pair.sum() / 2)


def test_a_smaller_basis_is_found_within_a_larger_one() -> None:
    u = np.random.default_rng(1).random((7, 4))
    small, large = Basis(4, 2, 3), Basis(4, 4, 6)
    np.testing.assert_array_equal(large.at(u)[:, small.within(large)], small.at(u))


def test_quasi_random_points_lie_inside_and_columns_give_their_values() -> None:
    u = uniforms(np.random.SeedSequence(0), 1024, 5)
    assert u.min() > 0
    assert u.max() < 1
    np.testing.assert_allclose(u.mean(0), 0.5, atol=1e-3)
    column = Column(np.array([1.0, 1.0, 4.0, 9.0]))
    assert column.quantile(np.array([0.01, 0.49, 0.51, 0.99])).tolist() == [1, 1, 4, 9]
    assert [part.tolist() for part in column.atoms] == [[1, 4, 9], [0.5, 0.25, 0.25]]


# ---- Hoeffding terms at a point


@pytest.mark.parametrize("f", [Ishigami(), SobolG((0, 1, 4.5)), appendix_e()], ids=["ishigami", "g", "appendix-e"])
def test_terms_at_a_point_are_exact(f: Anova) -> None:
    x = [0.3, 0.8, 0.9]
    found = hoeffding(f, x, f.bounds, max_order=3)
    expected = f.hoeffding(x)
    assert found.exact
    assert set(found.terms) == {t for k in (1, 2, 3) for t in itertools.combinations(range(3), k)}
    for t, term in found.terms.items():
        assert term == pytest.approx(float(expected.get(t, 0)), abs=1e-10)
    assert found.mean == pytest.approx(float(f.mean()), abs=1e-12)
    assert found.remainder == pytest.approx(0.0, abs=1e-12)
    assert set(found.half_width.values()) == {0.0}


def test_terms_at_a_point_are_covered_by_their_intervals() -> None:
    f = SobolG()
    x = np.linspace(0.05, 0.95, 8)
    expected = f.hoeffding(x)
    scores = []
    for seed in range(12):
        found = hoeffding(f, x, f.bounds, method="sampling", budget=4000, seed=seed)
        assert not found.exact
        off = found.terms_estimate.values - [float(expected[t]) for t in found.sets]
        scores.append(off / found.terms_estimate.stderr)
        assert found.n_evaluations <= 4000
    every = np.array(scores)
    assert 0.7 < np.sqrt((every**2).mean()) < 1.4
    assert (np.abs(every) <= stats.t.ppf(0.975, 15)).mean() > 0.9
    assert found.f_x == pytest.approx(float(f(x[None])[0]))
    assert "larger sets of inputs" in repr(found)


def test_terms_are_the_moebius_coefficients_of_the_game_averaged_over_baselines() -> None:
    """Every baseline of the product law, each with its own game; the paper's F need not be affine."""
    X = np.array([[0.0, 1.0, 2.0], [1.0, -1.0, 0.5]])
    f, x = network("tanh", 3, 4), np.array([0.7, 0.2, -1.0])
    baselines = np.array(list(itertools.product(*X.T)))

    def value(t: frozenset[int]) -> float:
        points = np.where([j in t for j in range(3)], x, baselines)
        return float(f(torch.from_numpy(points)).mean())

    found = hoeffding(f, x, X, max_order=3)
    sampled = hoeffding(f, x, X, max_order=3, method="sampling", budget=2000)
    for t, term in found.terms.items():
        expected = sum((-1) ** (len(t) - len(s)) * value(s) for s in subsets(t))
        assert term == pytest.approx(expected, abs=1e-12)
        assert abs(sampled.terms[t] - expected) <= 2 * sampled.half_width[t] + 1e-12
    assert sampled.remainder == pytest.approx(0.0, abs=1e-12)


def test_the_variance_of_each_term_over_x_is_its_sobol_index() -> None:
    """S_T = Var_x[f_T(x)] / Var F for a function that is not affine."""
    f = Multilinear({(0,): 1, (1,): -2, (0, 1): 3}, 2, bounds=[(0, 1), (-1, 3)])
    found = sensitivity(f, f.bounds)
    grid = list(itertools.product([(0, 1 / 6), (0.5, 2 / 3), (1, 1 / 6)], [(-1, 1 / 6), (1, 2 / 3), (3, 1 / 6)]))
    squares = dict.fromkeys([(0,), (1,), (0, 1)], 0.0)
    for (a, p), (b, q) in grid:
        for t, term in hoeffding(f, [a, b], f.bounds).terms.items():
            squares[t] += p * q * term**2
    assert squares[0,] / found.variance == pytest.approx(found.first[0], rel=1e-10)
    assert squares[1,] / found.variance == pytest.approx(found.first[1], rel=1e-10)
    assert squares[0, 1] / found.variance == pytest.approx(found.pairs[0, 1], rel=1e-10)


# ---- Theorems 5 and 6: affine F, baseline at the mean, phi itself


@pytest.mark.parametrize("kernel", [Uniform(), Gaussian(0.3), Gaussian(1.0, "euclidean")], ids=str)
def test_phi_of_an_affine_model_has_the_sobol_indices_as_variances(kernel: object) -> None:
    slopes, bounds = np.array([1.0, -2.0, 0.5]), [(0.0, 1.0), (-1.0, 1.0), (2.0, 6.0)]
    f = Multilinear({(): 4, **{(i,): slope for i, slope in enumerate(slopes)}}, 3, bounds=bounds)
    low, high = np.array(bounds).T
    mean, half = (low + high) / 2, (high - low) / 2 / math.sqrt(3)  # two Gauss nodes: mean +- half
    phi = []
    for signs in itertools.product([-1, 1], repeat=3):
        x = mean + half * np.array(signs)
        found = explain(f, x, baseline=mean, kernel=kernel, plan="exhaustive", budget=None)
        terms = hoeffding(f, x, bounds).terms
        np.testing.assert_allclose(found.values, [terms[i,] for i in range(3)], atol=1e-10)  # T5
        assert found.f_baseline + found.values.sum() == pytest.approx(found.f_x, abs=1e-10)
        phi.append(found.values)
    spread = slopes**2 * (high - low) ** 2 / 12
    np.testing.assert_allclose(np.var(phi, axis=0) / spread.sum(), spread / spread.sum(), rtol=1e-9)  # T6
    np.testing.assert_allclose(sensitivity(f, bounds).first, spread / spread.sum(), rtol=1e-10)


def test_phi_of_a_model_that_is_not_affine_does_not() -> None:
    f = appendix_e()
    x, mean = np.array([1.0, 1.0, 1.0]), np.full(3, 0.5)
    phi = explain(f, x, baseline=mean, kernel=Uniform(), plan="exhaustive", budget=None).values
    terms = hoeffding(f, x, f.bounds).terms
    assert not np.allclose(phi, [terms[i,] for i in range(3)])


# ---- bad input

UNIT = [(0, 1), (0, 1)]


def plain(z: torch.Tensor) -> torch.Tensor:
    return z.prod(1)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: sensitivity(plain, []), "an empty sequence"),
        (lambda: sensitivity(plain, "uniform"), "'sampler' .* bounds"),
        (lambda: sensitivity(plain, None), "'sampler'"),
        (lambda: sensitivity(plain, [(0, 1), (1, 0)]), r"low < high .* \(1, 0\) for input 1"),
        (lambda: sensitivity(plain, [(0, 1), (0, np.inf)]), "finite bounds"),
        (lambda: sensitivity(plain, [(0, 1), 3]), "for input 1"),
        (lambda: sensitivity(plain, [[0, 1, 2], [3, 4, 5]]), r"np.array\(X\)"),
        (lambda: sensitivity(plain, np.ones(3)), r"shape \(3,\)"),
        (lambda: sensitivity(plain, np.ones((1, 3))), "at least 2 rows"),
        (lambda: sensitivity(plain, np.array([["a", "b"], ["c", "d"]])), "numbers"),
        (lambda: sensitivity(plain, np.array([[0.0, 1.0], [np.nan, 1.0]])), "nan in X at row 1, column 0"),
        (lambda: sensitivity(plain, lambda rng, n: rng.random(n)), "sampler.*shape"),
        (lambda: sensitivity(plain, lambda rng, n: rng.random((3, 2))), "sampler.*shape"),
        (lambda: sensitivity(plain, lambda rng, n: rng.random((n, 2)) * np.nan), "finite"),
        (lambda: sensitivity(plain, lambda n: None), "failed on"),
        (lambda: sensitivity(plain, lambda rng, n: rng.random((n, 2)), method="quadrature"), "no known marginals"),
        (lambda: sensitivity(plain, UNIT, method="exact"), "'method' .* 'quadrature'"),
        (lambda: sensitivity(plain, UNIT, budget=0), "'budget'"),
        (lambda: sensitivity(plain, UNIT, budget=None), "quadrature"),
        (lambda: sensitivity(plain, UNIT, level=95), "'level'"),
        (lambda: sensitivity(plain, UNIT, seed=-1), "'seed'"),
        (lambda: sensitivity(plain, UNIT, replicates=1), "'replicates'"),
        (lambda: sensitivity(plain, UNIT, batch_size=0), "'batch_size'"),
        (lambda: sensitivity(plain, UNIT, names=["a"]), "2 in all"),
        (lambda: sensitivity("model", UNIT), "'model'"),
        (lambda: sensitivity(lambda z: z, UNIT), "choose one"),
        (lambda: sensitivity(lambda z: z.sum(1) * 0 + 3, UNIT), "does not vary"),
        (lambda: sensitivity(lambda z: z.sum(1) * 0 + 3, UNIT, method="sampling"), "does not vary"),
        (lambda: hoeffding(plain, [1.0], UNIT), r"'x' .* shape \(2,\)"),
        (lambda: hoeffding(plain, [1.0, np.inf], UNIT), "inf at index 1"),
        (lambda: hoeffding(plain, "x", UNIT), "'x'"),
        (lambda: hoeffding(plain, [1.0, 1.0], UNIT, max_order=0), "'max_order'"),
    ],
)
def test_bad_input_is_told_in_a_sentence(call: Callable, words: str) -> None:
    with pytest.raises(GralisError, match=words):
        call()


def test_a_budget_that_is_too_small_is_told_with_the_least_that_does() -> None:
    f = SobolG()
    with pytest.raises(BudgetError, match="at least 1472 here"):
        sensitivity(f, f.bounds, budget=1000)
    found = sensitivity(f, f.bounds, budget=1472)
    assert isinstance(found, Sensitivity)
    assert found.n_evaluations == 1472
    with pytest.raises(BudgetError, match="Quadrature needs at least"):
        sensitivity(f, f.bounds, budget=5000, method="quadrature")


def test_an_output_that_is_not_finite_is_told_with_its_point() -> None:
    with pytest.raises(ModelError, match=r"nan at the point \(0\."):
        sensitivity(lambda z: torch.log(z[:, 0] - 0.5) + z[:, 1], UNIT, method="sampling")
