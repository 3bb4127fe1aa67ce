"""The paper's own statements as tests: Appendix E, Lemma A, the axioms that hold, the one that fails, the limits."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import gralis
from gralis import Explanation, Gaussian, SizeKernel, Uniform, explain
from reference import (
    APPENDIX_E,
    Model,
    algorithm_1,
    definition_1,
    exact_gralis,
    exact_value,
    game,
    gauss_panels,
    gaussian,
    network,
    of_masks,
    point,
    torch_polynomial,
    uniform,
)


def rugged(masks: np.ndarray) -> np.ndarray:
    return 0.1 + np.abs(np.sin((masks * np.arange(1, masks.shape[1] + 1)).sum(1)))


KERNELS = {
    "uniform": Uniform(),
    "relative": Gaussian(0.3),
    "euclidean": Gaussian(0.8, "euclidean"),
    "size": SizeKernel(lambda s: 0.5**s),
    "callable": rugged,
}
every_kernel = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS.keys())


def exhaustive(model: Model, x: np.ndarray, **options) -> Explanation:
    return explain(model, x, **{"plan": "exhaustive", "budget": None, "batch_size": 8192, **options})


# ---- Appendix E


def test_appendix_e_in_rational_arithmetic() -> None:
    one, zero = [Fraction(1)] * 3, [Fraction(0)] * 3
    phi = exact_gralis(APPENDIX_E, one, zero)
    assert phi == [Fraction(11, 4), Fraction(9, 2), Fraction(5, 4)]
    assert sum(phi) == Fraction(17, 2)
    assert exact_value(APPENDIX_E, one) - exact_value(APPENDIX_E, zero) == 11


@pytest.mark.parametrize("plan", ["exhaustive", "shared"])
def test_appendix_e_by_explain(plan: str) -> None:
    found = explain(torch_polynomial(APPENDIX_E), np.ones(3), kernel=Uniform(), plan=plan)
    np.testing.assert_allclose(found.values, [11 / 4, 9 / 2, 5 / 4], rtol=0, atol=1e-10)
    assert found.values.sum() == pytest.approx(17 / 2, abs=1e-10)
    assert (found.f_x, found.f_baseline, found.delta) == (11.0, 0.0, 11.0)
    assert (found.stderr == 0).all()


def test_appendix_e_shapley_values_by_the_endpoint_plan() -> None:
    found = explain(torch_polynomial(APPENDIX_E), np.ones(3), kernel=Uniform(), plan="endpoint")
    np.testing.assert_allclose(found.values, [7 / 2, 6, 3 / 2], rtol=0, atol=1e-12)


def test_exact_arithmetic_for_other_points_and_a_rational_kernel() -> None:
    x, base = [Fraction(3, 2), Fraction(-1), Fraction(2, 3)], [Fraction(1, 4), Fraction(1, 2), Fraction(0)]
    expected = exact_gralis(APPENDIX_E, x, base, lambda s: Fraction(1, 3) ** len(s))
    found = exhaustive(
        torch_polynomial(APPENDIX_E),
        np.array(x, dtype=float),
        baseline=np.array(base, dtype=float),
        kernel=SizeKernel(lambda s: 3.0**-s),
    )
    np.testing.assert_allclose(found.values, [float(phi) for phi in expected], rtol=1e-10)


# ---- Definition 1


@pytest.mark.parametrize("kind", ["softplus", "tanh"])
@every_kernel
def test_exhaustive_equals_definition_1(kernel: object, kind: str) -> None:
    n = 5
    model, x, base = network(kind, n, 2, gain=0.7), point(n, 1), np.linspace(-0.4, 0.3, n)
    d = (x - base) ** 2
    references = {
        "uniform": uniform,
        "relative": gaussian(d, 0.3, "relative"),
        "euclidean": gaussian(d, 0.8, "euclidean"),
        "size": lambda s: 0.5 ** len(s),
        "callable": of_masks(rugged, n),
    }
    name = next(name for name, value in KERNELS.items() if value is kernel)
    expected = definition_1(model, x, base, references[name], gauss_panels(40))
    found = exhaustive(model, x, baseline=base, kernel=kernel)
    np.testing.assert_allclose(found.values, expected, rtol=0, atol=1e-10)
    assert found.ledger.n_rays == 2**n - 1


def test_exhaustive_equals_definition_1_on_a_relu_network_up_to_its_kinks() -> None:
    """With the same midpoints in both, no quadrature error is left to differ."""
    n, k = 4, 10
    model, x, base = network("relu", n, 5), point(n, 5), np.zeros(n)
    nodes = (np.arange(k) + 0.5) / k
    expected = definition_1(model, x, base, gaussian(x**2, 0.5, "relative"), (nodes, np.full(k, 1 / k)))
    found = exhaustive(model, x, kernel=Gaussian(0.5), quadrature="midpoint", n_nodes=k, coalition_values=False)
    np.testing.assert_allclose(found.values, expected, rtol=0, atol=1e-12)


def test_groups_move_together_and_add_up() -> None:
    """A feature of several coordinates: the sum over them of (x_p - x'_p) dF/dx_p, its distance the sum of squares."""
    model, x = network("softplus", 6, 3), point(6, 3)
    labels = np.array([0, 1, 0, 2, 1, 0])

    def grouped(z: torch.Tensor) -> torch.Tensor:  # the same function of three switches in [0, 1]
        return model(z[:, labels] * torch.from_numpy(x))

    d = np.bincount(labels, x**2)
    expected = definition_1(grouped, np.ones(3), np.zeros(3), gaussian(d, 0.4, "relative"), gauss_panels(40))
    found = exhaustive(model, x, features=labels, kernel=Gaussian(0.4))
    np.testing.assert_allclose(found.values, expected, rtol=0, atol=1e-10)


# ---- Lemma A


@pytest.mark.parametrize("kind", ["softplus", "tanh"])
def test_lemma_a_on_every_row(kind: str) -> None:
    model, x = network(kind, 6, 4, gain=0.7), point(6, 4)
    ledger = exhaustive(model, x, kernel=Gaussian(0.3)).ledger
    v = game(model, x, np.zeros(6))
    expected = [v(frozenset(np.flatnonzero(mask).tolist())) for mask in ledger.masks]
    np.testing.assert_allclose(ledger.value, expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(ledger.rays.sum(1), expected, rtol=0, atol=1e-10)
    np.testing.assert_allclose(ledger.checksum, 0.0, rtol=0, atol=1e-10)
    assert (ledger.rays[~ledger.masks] == 0).all()


def test_checksum_is_what_the_rays_have_too_much() -> None:
    """Its sign: one right-end node on a^2 makes the ray 2 where v = 1, so the checksum is +1."""
    found = exhaustive(lambda z: (z**2).sum(1), np.ones(2), quadrature="riemann", n_nodes=1)
    np.testing.assert_allclose(found.ledger.checksum, found.ledger.sizes, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", ["softplus", "relu"])
def test_lemma_a_has_mean_zero_for_random_nodes(kind: str) -> None:
    """Every coalition's own checksum, over 300 seeds of one stratified random node; none is zero by itself."""
    model, x = network(kind, 3, 9), point(3, 9)
    ledgers = [exhaustive(model, x, quadrature="random", n_nodes=1, seed=seed).ledger for seed in range(300)]
    drawn = [ledger.nodes_per_ray > 0 for ledger in ledgers]
    codes = np.concatenate([ledger.codes[rows] for ledger, rows in zip(ledgers, drawn, strict=True)])
    checks = np.concatenate([ledger.checksum[rows] for ledger, rows in zip(ledgers, drawn, strict=True)])
    assert set(codes) == {3, 5, 6, 7}  # single features need no node
    for code in set(codes):
        own = checks[codes == code]
        assert own.std() > 1e-6
        assert abs(own.mean()) <= 4.5 * own.std(ddof=1) / math.sqrt(len(own))


# ---- axioms

AFFINE = torch.tensor([2.0, -3.0, 0.5, 0.0, 1.25], dtype=torch.float64)


@pytest.mark.parametrize("plan", ["shared", "permutation", "exhaustive"])
@pytest.mark.parametrize("base", [0.0, 0.7])
@every_kernel
def test_affine_functions_are_exact_for_every_kernel_and_baseline(kernel: object, base: float, plan: str) -> None:
    x = np.array([1.0, 2.0, -0.5, 3.0, 0.25])
    # fewer than 8 nodes on each of the 31 rays: the shared plan has to sample
    budget = {"shared": 180, "permutation": 300, "exhaustive": None}[plan]
    found = explain(lambda z: z @ AFFINE + 4, x, baseline=base, kernel=kernel, plan=plan, budget=budget)
    assert found.plan["name"] == plan
    np.testing.assert_allclose(found.values, AFFINE.numpy() * (x - base), rtol=0, atol=1e-9)
    assert (found.stderr < 1e-9).all()


@pytest.mark.parametrize("plan", ["permutation", "exhaustive"])
@every_kernel
def test_affine_functions_average_over_a_baseline_distribution(kernel: object, plan: str) -> None:
    """phi_i = c_i (x_i - mean x'_i): Theorem 5's case. (`shared` deals its rays over the baselines: unbiased only.)"""
    x, rows = np.array([1.0, 2.0, -0.5, 3.0, 0.25]), np.random.default_rng(0).standard_normal((3, 5))
    budget = {"permutation": 300, "exhaustive": None}[plan]
    several = gralis.baselines.sample(rows)
    found = explain(lambda z: z @ AFFINE + 4, x, baseline=several, kernel=kernel, plan=plan, budget=budget)
    np.testing.assert_allclose(found.values, AFFINE.numpy() * (x - rows.mean(0)), rtol=0, atol=1e-9)


@pytest.mark.parametrize("plan", ["shared", "permutation", "independent", "exhaustive", "endpoint"])
def test_a_dummy_feature_gets_nothing(plan: str) -> None:
    """F does not depend on feature 2: every gradient there is zero, and so is its value."""
    inner = network("softplus", 5, 1)
    keep = torch.tensor([1.0, 1.0, 0.0, 1.0, 1.0], dtype=torch.float64)
    budget = None if plan == "exhaustive" else 25 if plan == "endpoint" else 160
    model, x = (lambda z: inner(z * keep)), point(5, 1)
    found = explain(model, x, kernel=Gaussian(0.5), plan=plan, budget=budget, replicates=2)
    assert abs(found.values[2]) < 1e-12
    assert (np.abs(found.values[[0, 1, 3, 4]]) > 1e-3).all()


@pytest.mark.parametrize("plan", ["shared", "permutation", "independent", "exhaustive", "endpoint"])
def test_a_feature_that_never_moves_gets_exactly_nothing(plan: str) -> None:
    x, base = point(5, 2), np.full(5, 0.25)
    x[3] = 0.25
    budget = None if plan == "exhaustive" else 25 if plan == "endpoint" else 220
    options = {"kernel": Gaussian(0.5), "plan": plan, "budget": budget, "replicates": 2}
    found = explain(network("tanh", 5, 2), x, baseline=base, **options)
    assert found.values[3] == 0.0
    assert found.stderr[3] == 0.0
    assert (found.values[[0, 1, 2, 4]] != 0).all()


@pytest.mark.parametrize("plan", ["permutation", "exhaustive", "independent"])
@pytest.mark.parametrize("kernel", [Uniform(), Gaussian(0.4)], ids=["uniform", "gaussian"])
def test_phi_is_linear_in_f(kernel: object, plan: str) -> None:
    """Same seed, same rays: phi(F + 2 G) = phi(F) + 2 phi(G). (`shared` adapts to F: linear in the mean only.)"""
    f, g, x = network("softplus", 5, 1), network("relu", 5, 2), point(5, 6)
    budget = None if plan == "exhaustive" else 200
    phi_f, phi_g, phi_sum = (
        explain(model, x, kernel=kernel, plan=plan, budget=budget, seed=3, replicates=2, n_nodes=10).values
        for model in (f, g, lambda z: f(z) + 2 * g(z))
    )
    np.testing.assert_allclose(phi_sum, phi_f + 2 * phi_g, rtol=0, atol=1e-12)


def symmetric(z: torch.Tensor) -> torch.Tensor:
    """Features 0 and 1 may be exchanged."""
    return torch.nn.functional.softplus(z[:, 0] + z[:, 1] - z[:, 2]) + z[:, 0] * z[:, 1] * z[:, 3]


def test_symmetry_under_the_uniform_kernel() -> None:
    """Features that F, x and x' do not tell apart get the same value."""
    found = exhaustive(symmetric, np.array([0.8, 0.8, -1.0, 0.5]), kernel=Uniform())
    assert found.values[0] == pytest.approx(found.values[1], abs=1e-12)
    assert abs(found.values[0] - found.values[3]) > 0.01


@pytest.mark.parametrize(("a", "b", "sigma"), [(1.0, 2.0, 1.0), (0.5, -1.5, 0.7), (1.0, 1.0, 0.4)])
def test_symmetry_fails_as_stated_under_a_gaussian(a: float, b: float, sigma: float) -> None:
    """F = x1 x2: phi_1 = (ab/2) p2 / (1 + p2) and phi_2 = (ab/2) p1 / (1 + p1); equal only if a^2 = b^2."""
    p1, p2 = math.exp(-(a**2) / (2 * sigma**2)), math.exp(-(b**2) / (2 * sigma**2))
    found = exhaustive(lambda z: z[:, 0] * z[:, 1], np.array([a, b]), kernel=Gaussian(sigma, "euclidean"))
    np.testing.assert_allclose(found.values, [a * b / 2 * p2 / (1 + p2), a * b / 2 * p1 / (1 + p1)], rtol=0, atol=1e-10)
    assert (abs(found.values[0] - found.values[1]) > 1e-3) == (a**2 != b**2)
    flat = found.with_kernel(Uniform())
    np.testing.assert_allclose(flat.values, a * b / 4, rtol=0, atol=1e-10)  # the joint path: not Shapley's ab/2


@given(
    coefficients=st.lists(st.integers(-5, 5), min_size=7, max_size=7),
    x=st.lists(st.integers(-4, 4).filter(bool), min_size=3, max_size=3),
    base=st.lists(st.sampled_from([-1, 0, 5]), min_size=3, max_size=3),
    third=st.integers(1, 6),
)
@settings(max_examples=25)
def test_any_multilinear_polynomial_in_exact_arithmetic(
    coefficients: list[int], x: list[int], base: list[int], third: int
) -> None:
    terms = [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)]
    f = {frozenset(t): Fraction(c) for t, c in zip(terms, coefficients, strict=True)}
    if x == base:
        base = [0, 0, 0]
    expected = exact_gralis(f, [*map(Fraction, x)], [*map(Fraction, base)], lambda s: Fraction(third, 3) ** len(s))
    found = exhaustive(
        torch_polynomial(f),
        np.array(x, dtype=float),
        baseline=np.array(base, dtype=float),
        kernel=SizeKernel(lambda s: (third / 3) ** s),
    )
    np.testing.assert_allclose(found.values, [float(phi) for phi in expected], rtol=0, atol=1e-9)


# ---- limits of sigma


@pytest.mark.parametrize("distance", ["relative", "euclidean"])
def test_small_sigma_leaves_the_path_of_the_single_feature(distance: str) -> None:
    """sigma -> 0: phi_i = v({i})."""
    model, x = network("softplus", 5, 7, gain=0.7), point(5, 7)
    v = game(model, x, np.zeros(5))
    found = exhaustive(model, x, kernel=Gaussian(0.005, distance))
    np.testing.assert_allclose(found.values, [v(frozenset({i})) for i in range(5)], rtol=0, atol=1e-10)
    sampled = explain(model, x, kernel=Gaussian(0.005, distance), budget=150)
    np.testing.assert_allclose(sampled.values, [v(frozenset({i})) for i in range(5)], rtol=0, atol=1e-10)


@pytest.mark.parametrize("distance", ["relative", "euclidean"])
def test_large_sigma_is_the_uniform_kernel(distance: str) -> None:
    model, x = network("softplus", 5, 7), point(5, 7)
    flat = exhaustive(model, x, kernel=Uniform()).values
    gaps = [np.abs(exhaustive(model, x, kernel=Gaussian(s, distance)).values - flat).max() for s in (1.0, 10.0, 1e7)]
    assert gaps[0] > 10 * gaps[1] > 0  # 1 / sigma^2
    assert gaps[2] < 1e-12


def test_sigma_reaches_from_one_limit_to_the_other() -> None:
    found = exhaustive(network("softplus", 5, 8), point(5, 8), kernel=Gaussian(0.75))
    small, flat = found.with_kernel(Gaussian(0.005)).values, found.with_kernel(Uniform()).values
    assert np.abs(small - flat).max() > 0.01
    between = [np.abs(found.with_kernel(Gaussian(s)).values - flat).sum() for s in (0.05, 0.3, 1.0, 5.0)]
    assert between == sorted(between, reverse=True)


# ---- one ledger, every kernel


@every_kernel
def test_with_kernel_equals_a_fresh_explanation(kernel: object) -> None:
    model, x = network("tanh", 6, 3), point(6, 3)
    first = exhaustive(model, x, kernel=Gaussian(0.75), baseline=0.1)
    fresh = exhaustive(model, x, kernel=kernel, baseline=0.1)
    np.testing.assert_allclose(first.with_kernel(kernel).values, fresh.values, rtol=1e-12, atol=1e-12)
    assert first.values == pytest.approx(exhaustive(model, x, baseline=0.1).values, abs=1e-12)  # unchanged


def test_with_kernel_on_a_baseline_distribution() -> None:
    """Every baseline has its own distances, hence its own law; phi is the mean of the separate phis."""
    model, x = network("softplus", 4, 3, gain=0.7), point(4, 3)
    rows = np.random.default_rng(1).standard_normal((3, 4))
    kernel = Gaussian(0.4)
    together = exhaustive(model, x, kernel=kernel, baseline=gralis.baselines.sample(rows))
    apart = [definition_1(model, x, row, gaussian((x - row) ** 2, 0.4, "relative"), gauss_panels(40)) for row in rows]
    np.testing.assert_allclose(together.values, np.mean(apart, axis=0), rtol=0, atol=1e-10)
    again = exhaustive(model, x, kernel=Uniform(), baseline=gralis.baselines.sample(rows)).with_kernel(kernel)
    np.testing.assert_allclose(again.values, together.values, rtol=0, atol=1e-12)


def test_sweep_holds_the_uniform_kernel_at_infinity() -> None:
    found = exhaustive(network("softplus", 5, 3), point(5, 3))
    sweep = found.sweep([0.1, 0.75, math.inf])
    np.testing.assert_allclose(sweep.values[2], found.with_kernel(Uniform()).values, rtol=1e-13)
    np.testing.assert_allclose(sweep.values[1], found.values, rtol=1e-13)
    np.testing.assert_allclose(sweep.values[0], found.with_kernel(Gaussian(0.1)).values, rtol=1e-13)
    assert (sweep.stderr == 0).all()


# ---- where the paper must not be followed literally (THEORY 7)


def test_contributions_along_one_permutation_are_not_the_coalition_value() -> None:
    """Order 1, 2, 3 of Appendix E: 2 + 5 + 3/2 = 17/2, not F(x) - F(x') = 11; the whole row of the last ray is 11."""
    f = torch_polynomial(APPENDIX_E)
    along = algorithm_1(f, np.ones(3), np.zeros(3), uniform, [(0, 1, 2)], 10)
    np.testing.assert_allclose(along, [2, 5, 1.5], rtol=0, atol=1e-12)
    ledger = exhaustive(f, np.ones(3)).ledger
    assert ledger.rays[ledger.sizes == 3].sum() == pytest.approx(11, abs=1e-10)
