"""Games and functions with closed-form answers: each answer against its definition, by enumeration."""

from __future__ import annotations

import itertools
import math
import pickle
from collections.abc import Callable, Mapping
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gralis import Gaussian, GralisError, SizeKernel, Uniform, explain, models
from gralis.games import Airport, Game, Glove, Ishigami, Multilinear, SobolG, appendix_e, unanimity
from reference import (
    APPENDIX_E,
    coalitions,
    definition_1,
    exact_gralis,
    exact_ig,
    exact_value,
    gaussian,
    shapley_weight,
    subsets,
    uniform,
    without,
)

Value = Callable[[frozenset[int]], Fraction]


# ---- definitions, letter by letter


def moebius(value: Value, n: int) -> dict[tuple[int, ...], Fraction]:
    """sum over S within T of (-1)^(|T| - |S|) v(S)."""
    return {
        tuple(sorted(t)): sum(((-1) ** (len(t) - len(s)) * value(s) for s in subsets(t)), Fraction(0))
        for t in coalitions(n)
    }


def shapley(value: Value, n: int) -> list[Fraction]:
    """The mean marginal contribution, with Shapley's weights."""
    return [
        sum((shapley_weight(n, len(s)) * (value(s | {i}) - value(s)) for s in without(n, i)), Fraction(0))
        for i in range(n)
    ]


def interaction(value: Value, n: int, a: tuple[int, ...]) -> Fraction:
    """Grabisch and Roubens: the weighted mean over S outside A of the discrete derivative of v in A."""
    total = Fraction(0)
    for s in subsets(set(range(n)) - set(a)):
        derivative = sum((-1) ** (len(a) - len(b)) * value(s | b) for b in subsets(a))
        weight = Fraction(math.factorial(len(s)) * math.factorial(n - len(s) - len(a)), math.factorial(n - len(a) + 1))
        total += weight * derivative
    return total


def complete(found: Mapping[tuple[int, ...], Fraction], n: int) -> dict[tuple[int, ...], Fraction]:
    """All coefficients, with the zeros that are left out."""
    return {tuple(sorted(t)): found.get(tuple(sorted(t)), Fraction(0)) for t in coalitions(n)}


def check_game(game: Game, value: Value) -> None:
    """Every answer of a game against the definition."""
    n = game.n_features
    assert complete(game.moebius(), n) == moebius(value, n)
    assert all(game.value(s) == value(s) for s in subsets(range(n)))
    assert game.shapley().tolist() == shapley(value, n)
    banzhaf = [sum(value(s | {i}) - value(s) for s in without(n, i)) / 2 ** (n - 1) for i in range(n)]
    assert game.banzhaf().tolist() == banzhaf
    for order in range(1, n + 1):
        expected = {a: interaction(value, n, a) for a in itertools.combinations(range(n), order)}
        assert game.interactions(order) == expected


# ---- Appendix E


def test_appendix_e_in_exact_rationals() -> None:
    f = appendix_e()
    assert f.gralis().tolist() == [Fraction(11, 4), Fraction(9, 2), Fraction(5, 4)]
    assert f.gralis().sum() == Fraction(17, 2)
    assert f.shapley().tolist() == [Fraction(7, 2), 6, Fraction(3, 2)]
    assert f.shapley().sum() == f.value(range(3)) == 11
    assert f.interactions() == {(0, 1): 4, (0, 2): -1, (1, 2): 2}
    assert list(complete(f.moebius(), 3).values()) == [2, 3, 1, 4, -1, 2, 0]
    assert f.path_residual() == Fraction(5, 2)
    assert (f.mean(), f.variance()) == (Fraction(17, 4), Fraction(209, 48))
    assert f.first_order().tolist() == [Fraction(49, 209), Fraction(144, 209), Fraction(9, 209)]
    assert all(isinstance(number, Fraction) for number in [*f.gralis(), f.variance(), *f.first_order()])
    assert f.coefficients == {tuple(sorted(t)): c for t, c in APPENDIX_E.items()}


def test_lemma_a_on_all_coalitions_of_appendix_e() -> None:
    f = appendix_e()
    for s in subsets(range(3)):
        assert f.ray(s).sum() == f.value(s)
        assert all(f.ray(s)[i] == 0 for i in range(3) if i not in s)


# ---- multilinear polynomials

rationals = st.fractions(min_value=-2, max_value=2, max_denominator=4)


@st.composite
def polynomials(draw: st.DrawFn) -> Multilinear:
    n = draw(st.integers(1, 4))
    sets = st.frozensets(st.integers(0, n - 1)).map(lambda s: tuple(sorted(s)))
    terms = draw(st.dictionaries(sets, rationals, min_size=1, max_size=6))
    x, base = (draw(st.lists(rationals, min_size=n, max_size=n)) for _ in range(2))
    return Multilinear(terms, n, x=x, baseline=base)


def as_reference(f: Multilinear) -> dict[frozenset[int], Fraction]:
    return {frozenset(t): c for t, c in f.coefficients.items()}


@settings(max_examples=30)
@given(polynomials())
def test_polynomial_games_against_enumeration(f: Multilinear) -> None:
    n, c = f.n_features, as_reference(f)

    def value(s: frozenset[int]) -> Fraction:
        return exact_value(c, [f.x[j] if j in s else f.baseline[j] for j in range(n)]) - exact_value(c, f.baseline)

    check_game(f, value)
    assert f.gralis().tolist() == exact_gralis(c, f.x, f.baseline)
    assert f.path_residual() == value(frozenset(range(n))) - sum(exact_gralis(c, f.x, f.baseline))
    for t in coalitions(n):
        expected = [exact_ig(c, f.x, f.baseline, t - {i}, i) if i in t else 0 for i in range(n)]
        assert f.ray(t).tolist() == expected
    assert f.integrated_gradients().tolist() == f.ray(range(n)).tolist()


@pytest.mark.parametrize(
    ("kernel", "pi"),
    [
        (Gaussian(0.4), lambda d: gaussian(d, 0.4, "relative")),
        (Gaussian(0.8, "euclidean"), lambda d: gaussian(d, 0.8, "euclidean")),
        (SizeKernel(lambda s: 0.5**s), lambda d: lambda s: 0.5 ** len(s)),
        (Uniform(), lambda d: uniform),
    ],
    ids=["relative", "euclidean", "size", "uniform"],
)
def test_gralis_for_every_kernel_against_definition_1_and_explain(kernel: object, pi: Callable) -> None:
    x, base = np.array([1.5, -0.5, 2.0, 0.25]), np.array([0.5, 0.25, 0.0, -1.0])
    f = Multilinear.random(4, 4, seed=3).at(x, base)
    expected = definition_1(f, x, base, pi((x - base) ** 2))
    np.testing.assert_allclose(f.gralis(kernel), expected, rtol=0, atol=1e-11)
    found = explain(f, x, baseline=base, kernel=kernel, plan="exhaustive", budget=None)
    np.testing.assert_allclose(found.values, f.gralis(kernel), rtol=0, atol=1e-10)


def test_a_feature_that_does_not_move_gets_nothing() -> None:
    f = Multilinear({(0, 1): 2, (1,): 1}, 2, x=(3, 1), baseline=(3, 0))
    assert f.gralis(Gaussian(0.5)).tolist() == [0.0, 7.0]
    assert f.at(0.0, 0.0).gralis(Gaussian(0.5)).tolist() == [0.0, 0.0]


def test_polynomials_are_called_on_tensors_arrays_and_fractions() -> None:
    f = Multilinear({(): 1, (0,): Fraction(1, 2), (0, 1): 3, (0, 1, 2): -2}, 3)
    rows = [[1, 2, 3], [0, 5, 1], [Fraction(1, 2), 0, 0]]
    exact = f(np.array(rows, dtype=object))
    assert exact.tolist() == [Fraction(-9, 2), 1, Fraction(5, 4)]
    floats = np.array(rows, dtype=float)
    assert f(floats).tolist() == [-4.5, 1.0, 1.25]
    assert f(torch.tensor(floats, dtype=torch.float32)).dtype == torch.float32
    z = torch.tensor(floats, requires_grad=True)
    (gradient,) = torch.autograd.grad(f(z).sum(), z)
    assert gradient.tolist() == [[0.5 + 6 - 12, 3 - 6, -4], [0.5 + 15 - 10, 0, 0], [0.5, 1.5, 0]]
    assert pickle.loads(pickle.dumps(f)) == f


def test_floats_give_floats() -> None:
    f = Multilinear({(0,): 1, (0, 1): 0.5}, 2)
    assert f.shapley().dtype == np.float64
    assert f.shapley().tolist() == [1.25, 0.25]


def test_unanimity_sums_have_their_weights_as_moebius_coefficients() -> None:
    weights = {(0, 2): Fraction(3, 2), (1,): -1, (0, 1, 2): 4}
    game = unanimity(weights, 3)
    assert game.moebius() == weights
    check_game(game, lambda s: Fraction(sum(w for t, w in weights.items() if s.issuperset(t))))
    with pytest.raises(GralisError, match="non-empty"):
        unanimity({(): 1}, 2)


# ---- Hoeffding and Sobol


def brute_variances(f: Multilinear) -> tuple[Fraction, dict[frozenset[int], Fraction]]:
    """E F and Var E[F | x_T] for every T: three points per input have the first three moments of the uniform law."""
    n, c = f.n_features, as_reference(f)
    points = [[low, (low + high) / 2, high] for low, high in f.bounds]
    weights = [Fraction(1, 6), Fraction(2, 3), Fraction(1, 6)]
    grid = list(itertools.product(range(3), repeat=n))
    mass = {k: math.prod(weights[a] for a in k) for k in grid}
    value = {k: exact_value(c, [points[j][a] for j, a in enumerate(k)]) for k in grid}
    mean = sum(mass[k] * value[k] for k in grid)
    closed = {}
    for t in subsets(range(n)):
        groups: dict[tuple[int, ...], list[Fraction]] = {}
        for k in grid:
            group = groups.setdefault(tuple(k[j] for j in sorted(t)), [Fraction(0), Fraction(0)])
            group[0] += mass[k]
            group[1] += mass[k] * value[k]
        closed[t] = sum(total**2 / weight for weight, total in groups.values()) - mean**2
    return mean, closed


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_variances_of_polynomials_against_conditional_expectations(seed: int) -> None:
    n = 3
    bounds = [(0, 1), (Fraction(-1, 2), 2), (1, 3)]
    f = Multilinear({**Multilinear.random(n, n, seed).coefficients, (): 5}, n, bounds=bounds)
    mean, closed = brute_variances(f)
    full = frozenset(range(n))
    variance = closed[full]
    assert (f.mean(), f.variance()) == (mean, variance)
    assert f.first_order().tolist() == [closed[frozenset({i})] / variance for i in range(n)]
    assert f.total().tolist() == [1 - closed[full - {i}] / variance for i in range(n)]
    assert f.closed() == {pair: closed[frozenset(pair)] / variance for pair in itertools.combinations(range(n), 2)}
    parts = moebius(closed.__getitem__, n)
    assert f.pairs() == {pair: parts[pair] / variance for pair in itertools.combinations(range(n), 2)}
    assert f.shapley_effects().tolist() == [effect / variance for effect in shapley(closed.__getitem__, n)]
    assert f.shapley_effects().sum() == 1
    x = [Fraction(1, 3), 1, 2]
    terms = f.hoeffding(x)
    assert sum(terms.values()) == exact_value(as_reference(f), x) - mean
    assert sum(f.hoeffding([Fraction(1, 2), 1, 2]).get(t, 0) for t in terms if 0 in t) == 0  # x at its mean


def numeric(f: Callable, bounds: object, n_nodes: int, n_panels: int) -> tuple[float, dict[frozenset[int], float]]:
    """E F and Var E[F | x_T], on a fine tensor grid."""
    node, weight = np.polynomial.legendre.leggauss(n_nodes)
    u = ((np.arange(n_panels)[:, None] + (node + 1) / 2) / n_panels).ravel()
    w = np.tile(weight / 2 / n_panels, n_panels)
    axes = [low + (high - low) * u for low, high in bounds]
    n = len(axes)
    tensor = f(np.stack([a.ravel() for a in np.meshgrid(*axes, indexing="ij")], axis=1)).reshape((len(u),) * n)
    closed = {}
    for t in subsets(range(n)):
        mean = tensor
        for j in reversed(range(n)):
            if j not in t:
                mean = np.tensordot(mean, w, axes=([j], [0]))
        mass = np.ones(())
        for _ in t:
            mass = np.multiply.outer(mass, w)
        average = float((mass * mean).sum())
        closed[t] = float((mass * (mean - average) ** 2).sum())
    return average, closed


@pytest.mark.parametrize(
    ("f", "n_nodes", "n_panels"),
    [(Ishigami(), 24, 1), (Ishigami(2.0, 0.3), 24, 1), (SobolG((0, 1, 4.5)), 2, 2)],
    ids=["ishigami", "ishigami-other", "sobol-g"],
)
def test_closed_form_variances_against_quadrature(f: Ishigami | SobolG, n_nodes: int, n_panels: int) -> None:
    mean, closed = numeric(f, f.bounds, n_nodes, n_panels)
    n, full = f.n_features, frozenset(range(f.n_features))
    v = closed[full]
    assert f.mean() == pytest.approx(mean, abs=1e-12)
    assert f.variance() == pytest.approx(v, rel=1e-12)
    np.testing.assert_allclose(f.first_order(), [closed[frozenset({i})] / v for i in range(n)], atol=1e-12)
    np.testing.assert_allclose(f.total(), [1 - closed[full - {i}] / v for i in range(n)], atol=1e-12)
    effects = [
        sum(float(shapley_weight(n, len(s))) * (closed[s | {i}] - closed[s]) for s in without(n, i)) / v
        for i in range(n)
    ]
    np.testing.assert_allclose(f.shapley_effects(), effects, atol=1e-12)
    for pair, index in f.closed().items():
        assert index == pytest.approx(closed[frozenset(pair)] / v, abs=1e-12)


def test_ishigami_has_the_published_indices() -> None:
    f = Ishigami()
    np.testing.assert_allclose(f.first_order(), [0.3139, 0.4424, 0.0], atol=5e-5)
    np.testing.assert_allclose(f.total(), [0.5576, 0.4424, 0.2437], atol=5e-5)
    assert f.variance() == pytest.approx(7**2 / 8 + 0.1 * math.pi**4 / 5 + 0.01 * math.pi**8 / 18 + 0.5)


@pytest.mark.parametrize("f", [Ishigami(), SobolG((0, 1, 4.5))], ids=["ishigami", "sobol-g"])
def test_hoeffding_terms_sum_to_f_and_average_to_zero(f: Ishigami | SobolG) -> None:
    x = np.array([0.3, 0.9, 0.6])
    assert sum(f.hoeffding(x).values()) == pytest.approx(f(x[None])[0] - f.mean(), abs=1e-12)
    node, weight = np.polynomial.legendre.leggauss(24)
    for t in f.hoeffding(x):
        low, high = f.bounds[t[-1]]
        means = []
        for left, right in ((low, (low + high) / 2), ((low + high) / 2, high)):  # the kink of G lies between
            at = [np.where(np.arange(3) == t[-1], z, x) for z in left + (right - left) * (node + 1) / 2]
            means.append(weight @ [f.hoeffding(point)[t] for point in at] / 2)
        assert np.mean(means) == pytest.approx(0.0, abs=1e-12)


def test_sobol_g_for_many_inputs_agrees_with_its_parts() -> None:
    few = SobolG((0, 0.5, 1, 3, 9))
    parts = few.parts()
    for i in range(5):
        assert few.total()[i] == pytest.approx(sum(var for t, var in parts.items() if i in t) / few.variance())
        shared = sum(var / len(t) for t, var in parts.items() if i in t)
        assert few.shapley_effects()[i] == pytest.approx(shared / few.variance(), rel=1e-12)
    assert few.variance() == pytest.approx(sum(parts.values()), rel=1e-12)
    assert few.pairs()[1, 3] == pytest.approx(parts[1, 3] / few.variance())
    many = SobolG([1.0] * 60)
    assert many.shapley_effects() == pytest.approx(np.full(60, 1 / 60))
    with pytest.raises(GralisError, match="at most 20"):
        many.parts()


def test_functions_take_tensors_and_their_gradients() -> None:
    x = np.random.default_rng(0).random((5, 3))
    for f in (Ishigami(), SobolG((0, 1, 4.5))):
        np.testing.assert_allclose(f(torch.from_numpy(x)).numpy(), f(x), rtol=1e-14)
        assert torch.autograd.gradcheck(f, torch.from_numpy(x).requires_grad_())


# ---- airport and glove games


@pytest.mark.parametrize("costs", [[1, 2, 4], [3, 0, 3, 1], [Fraction(1, 2)] * 3, [5]])
def test_airport_against_enumeration(costs: list) -> None:
    check_game(Airport(costs), lambda s: Fraction(max((costs[i] for i in s), default=0)))


@pytest.mark.parametrize("hands", [(1, 2), (2, 2), (3, 2), (1, 4)])
def test_glove_against_enumeration(hands: tuple[int, int]) -> None:
    def value(s: frozenset[int]) -> Fraction:
        left = len([i for i in s if i < hands[0]])
        return Fraction(min(left, len(s) - left))

    check_game(Glove(*hands), value)


def test_glove_by_the_formula_of_shapley_and_shubik() -> None:
    few, many = 30, 40
    series = sum(
        Fraction(math.factorial(many) * math.factorial(few), math.factorial(many + k) * math.factorial(few - k))
        for k in range(few + 1)
    )
    expected = Fraction(1, 2) - Fraction(many - few, 2 * many) * series
    assert Glove(few, many).shapley()[-1] == expected
    assert Glove(few, many).shapley().sum() == few


@pytest.mark.parametrize("game", [Airport([1.0, 2.5, 4.0, 0.5]), Glove(1, 3)], ids=["airport", "glove"])
def test_mask_games_are_black_boxes(game: Game) -> None:
    masks = np.array(list(itertools.product([0, 1], repeat=4)))
    expected = [float(game.value(np.flatnonzero(row))) for row in masks]
    assert game(masks).tolist() == expected
    assert game(masks.astype(bool)).tolist() == expected
    on_tensor = game(torch.from_numpy(masks).float())
    assert on_tensor.dtype == torch.float32
    assert on_tensor.tolist() == expected
    options = {"baseline": 0.0, "kernel": Uniform(), "plan": "endpoint"}
    for model in (game, models.blackbox(game)):
        found = explain(model, np.ones(4), **options)
        np.testing.assert_allclose(found.values, game.shapley().astype(float), rtol=0, atol=1e-12)
    with pytest.raises(GralisError, match="0/1 rows"):
        explain(game, np.ones(4), baseline=0.0, plan="shared")


# ---- bad input


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Multilinear({(0, 3): 1}, 3), "'coefficients' .* 0..2"),
        (lambda: Multilinear({(0, 0): 1}, 3), "none twice"),
        (lambda: Multilinear({"a": 1}, 3), "feature indices"),
        (lambda: Multilinear({0: 1}, 3), "feature indices"),
        (lambda: Multilinear([1, 2], 3), "a mapping"),
        (lambda: Multilinear({(0,): float("nan")}, 3), "finite real"),
        (lambda: Multilinear({(0,): 1}, 0), "'n_features'"),
        (lambda: Multilinear({(0,): 1}, 2, x=(1, 2, 3)), "'x' .* 2 in all"),
        (lambda: Multilinear({(0,): 1}, 2, baseline="zero"), "'baseline'"),
        (lambda: Multilinear({(0,): 1}, 2, bounds=(1, 0)), "low < high"),
        (lambda: Multilinear({(0,): 1}, 2, bounds=[(0, 1)]), "2 in all"),
        (lambda: Multilinear({(0,): 1}, 2, bounds=3), "'bounds'"),
        (lambda: appendix_e()(np.ones(3)), r"\(rows, 3\)"),
        (lambda: appendix_e().value([5]), "'members'"),
        (lambda: appendix_e().interactions(4), "'order' .* 1 to the 3"),
        (lambda: Ishigami(a="7"), "'a' .* Ishigami"),
        (lambda: Ishigami()(np.ones((2, 2))), r"\(rows, 3\)"),
        (lambda: SobolG([]), "at least one"),
        (lambda: SobolG([1, -1]), ">= 0"),
        (lambda: SobolG([1, 2])(torch.ones(2, 3)), r"\(rows, 2\)"),
        (lambda: Airport([]), "at least one"),
        (lambda: Airport([1, -2]), ">= 0"),
        (lambda: Airport(3), "sequence"),
        (lambda: Airport(range(1, 30)).moebius(), "at most 20"),
        (lambda: Airport([1, 2])(np.ones((3, 3))), "0/1 rows"),
        (lambda: Airport([1, 2])(np.full((1, 2), 0.5)), "0.5"),
        (lambda: Glove(0, 2), "'n_left'"),
        (lambda: Glove(1, 2.0), "'n_right'"),
    ],
)
def test_bad_input_is_told_in_a_sentence(make: Callable, words: str) -> None:
    with pytest.raises(GralisError, match=words):
        make()
