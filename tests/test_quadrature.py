"""Node rules: checked tables, measured rates, random nodes without bias, densities and their inverses."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gralis import GralisError
from gralis.rays.nested import nested
from gralis.rays.quadrature import (
    NAMES,
    UNIFORM,
    Density,
    RandomRule,
    Rule,
    fejer,
    gauss_legendre,
    in_halves,
    midpoint,
    riemann,
    rule,
)

# ---- fixed rules


@pytest.mark.parametrize(
    ("nodes", "weights", "degree"),
    [
        ([0.25, 0.75], [0.5, 0.6], 0),  # weights do not sum to one
        ([0.2, 0.7], [0.5, 0.5], 1),  # not exact on a
        ([0.5], [1.0], 2),  # the midpoint is not exact on a^2
        ([0.5, 1.5], [0.5, 0.5], 0),  # a node outside the ray
        ([-0.1, 0.5], [0.5, 0.5], 0),
        ([0.5], [0.5, 0.5], 0),  # not as many
        ([], [], 0),
        ([math.nan], [1.0], 0),
    ],
)
def test_a_table_that_is_wrong_is_refused(nodes: list[float], weights: list[float], degree: int) -> None:
    with pytest.raises(GralisError, match="Rule"):
        Rule("wrong", np.array(nodes), np.array(weights), degree)


@pytest.mark.parametrize("k", [1, 2, 3, 7, 16])
@pytest.mark.parametrize(("make", "degree"), [(riemann, lambda k: 0), (midpoint, lambda k: 1)])
def test_degree_of_exactness_of_the_equal_weight_rules(make, degree, k: int) -> None:
    fixed = make(k)
    assert fixed.degree == degree(k)
    assert exact_up_to(fixed) == degree(k)


@pytest.mark.parametrize("k", [1, 2, 3, 7])
def test_gauss_legendre_is_exact_to_degree_2k_minus_1_and_no_further(k: int) -> None:
    assert exact_up_to(gauss_legendre(k)) == 2 * k - 1


def exact_up_to(fixed: Rule) -> int:
    """The largest degree up to which every power is integrated exactly."""
    degree = -1
    while abs(fixed.weights @ fixed.nodes ** (degree + 1) - 1 / (degree + 2)) < 1e-13:
        degree += 1
    return degree


def test_nodes_are_the_ones_of_the_paper() -> None:
    np.testing.assert_allclose(midpoint(4).nodes, [(j - 0.5) / 4 for j in (1, 2, 3, 4)], rtol=1e-15)
    np.testing.assert_allclose(riemann(4).nodes, [0.25, 0.5, 0.75, 1.0], rtol=1e-15)


@pytest.mark.parametrize(("make", "order"), [(midpoint, 2), (riemann, 1)])
def test_error_falls_at_the_stated_rate(make, order: int) -> None:
    """The slope of log error against log k on exp, far enough out that the leading term rules."""
    ks = np.array([8, 16, 32, 64, 128])
    errors = [abs(make(int(k)).weights @ np.exp(make(int(k)).nodes) - (math.e - 1)) for k in ks]
    slope = np.polyfit(np.log(ks), np.log(errors), 1)[0]
    assert slope == pytest.approx(-order, abs=0.03)


def test_gauss_legendre_converges_faster_than_any_power() -> None:
    errors = [abs(gauss_legendre(k).weights @ np.exp(gauss_legendre(k).nodes) - (math.e - 1)) for k in (1, 2, 3, 4, 5)]
    assert all(later < earlier / 100 for earlier, later in itertools.pairwise(errors))


def test_a_fixed_rule_is_the_same_on_every_ray() -> None:
    nodes, weights = midpoint(3).on_rays(np.random.default_rng(0), 5)
    assert nodes.shape == weights.shape == (5, 3)
    assert (nodes == nodes[0]).all()
    assert (weights == 1 / 3).all()


@pytest.mark.parametrize("name", NAMES)
def test_rules_are_made_by_name(name: str) -> None:
    fixed = rule(name, 3)
    assert (fixed.name, fixed.n_nodes) == (name, 3)


@pytest.mark.parametrize("n_nodes", [0, -1, 2.0, True])
def test_number_of_nodes_is_checked(n_nodes: object) -> None:
    with pytest.raises(GralisError, match="n_nodes"):
        rule("midpoint", n_nodes)  # type: ignore[arg-type]
    with pytest.raises(GralisError, match="quadrature"):
        rule("simpson", 3)


# ---- random nodes

STEEP = Density(np.array([0.0, 0.05, 0.3, 1.0]), np.array([8.0, 3.0, 0.4, 0.2]))


def jagged(a: np.ndarray) -> np.ndarray:
    """A jump and two kinks."""
    return 5.0 * (a < 0.3) + np.maximum(a - 0.3, 0.0) + np.abs(2 * a - 1)


INTEGRAL = 0.3 * 5 + 0.7**2 / 2 + 0.5


@pytest.mark.parametrize("n_rays", [1, 7])
@pytest.mark.parametrize("k", [1, 2, 5])
@pytest.mark.parametrize("density", [UNIFORM, STEEP], ids=["uniform", "steep"])
def test_random_nodes_are_unbiased_for_a_function_with_jumps(density: Density, k: int, n_rays: int) -> None:
    """Rays of one call are stratified together, so the independent unit is a call."""
    rng, random = np.random.default_rng(17), RandomRule(k, density)
    means = []
    for _ in range(4000):
        nodes, weights = random.on_rays(rng, n_rays)
        means.append((weights * jagged(nodes)).sum(1).mean())
    error = np.std(means, ddof=1) / math.sqrt(len(means))
    assert error < 0.05
    assert abs(np.mean(means) - INTEGRAL) < 4 * error


@pytest.mark.parametrize("density", [UNIFORM, STEEP], ids=["uniform", "steep"])
def test_one_random_node_falls_in_each_cell_of_equal_probability(density: Density) -> None:
    nodes, weights = RandomRule(4, density).on_rays(np.random.default_rng(2), 200)
    place = density.cumulative(nodes)
    assert (np.floor(place * 4) == np.arange(4)).all()
    np.testing.assert_allclose(weights, 1 / (4 * density(nodes)), rtol=1e-12)
    # and over the 200 rays one shift in each 200th of a cell
    shift = np.sort(place * 4 - np.arange(4), axis=0)
    assert (np.floor(shift * 200) == np.arange(200)[:, None]).all()


def test_a_single_ray_has_a_free_node() -> None:
    """With one ray and one node the node is plainly uniform: each fifth of [0, 1] gets its share."""
    rng = np.random.default_rng(8)
    nodes = np.array([RandomRule(1).on_rays(rng, 1)[0][0, 0] for _ in range(2000)])
    counts = np.histogram(nodes, bins=5, range=(0, 1))[0]
    assert (np.abs(counts - 400) < 4.5 * math.sqrt(2000 * 0.2 * 0.8)).all()


# ---- densities

densities = st.integers(2, 8).flatmap(
    lambda n: st.builds(
        lambda gaps, heights: Density(
            np.concatenate([[0.0], np.cumsum(gaps)[:-1] / np.sum(gaps), [1.0]]), np.array(heights)
        ),
        st.lists(st.floats(0.05, 1.0), min_size=n - 1, max_size=n - 1),
        st.lists(st.floats(0.01, 100.0), min_size=n, max_size=n),
    )
)
levels = st.lists(st.floats(0.0, 1.0), min_size=1, max_size=20).map(np.array)


@given(density=densities, a=levels)
def test_quantile_and_cumulative_are_inverse(density: Density, a: np.ndarray) -> None:
    s = density.cumulative(a)
    assert ((s >= 0) & (s <= 1 + 1e-12)).all()
    np.testing.assert_allclose(density.quantile(s), a, atol=1e-9)
    np.testing.assert_allclose(density.cumulative(density.quantile(a)), a, atol=1e-9)


@given(density=densities)
def test_integral_is_one_and_the_cumulative_is_the_integral(density: Density) -> None:
    node, weight = np.polynomial.legendre.leggauss(2)  # exact on each linear piece
    left, width = density.knots[:-1, None], np.diff(density.knots)[:, None]
    cells = (width / 2 * weight * density(left + width * (node + 1) / 2)).sum(1)
    assert math.isclose(cells.sum(), 1.0, rel_tol=1e-12)
    np.testing.assert_allclose(density.cumulative(density.knots[1:]), np.cumsum(cells), rtol=1e-9)
    assert density.cumulative(np.array([0.0]))[0] == 0.0
    assert density(np.linspace(0, 1, 101)).min() >= density.floor * (1 - 1e-12)


@given(density=densities, a=levels)
def test_cumulative_never_falls(density: Density, a: np.ndarray) -> None:
    a = np.sort(a)
    assert (np.diff(density.cumulative(a)) >= -1e-12).all()


@pytest.mark.parametrize(
    ("knots", "heights"),
    [([0.0, 0.9], [1.0, 1.0]), ([0.1, 1.0], [1.0, 1.0]), ([0.0, 0.5, 0.5, 1.0], [1.0] * 4), ([0.0, 1.0], [1.0, 0.0])],
)
def test_a_density_that_is_none_is_refused(knots: list[float], heights: list[float]) -> None:
    with pytest.raises(GralisError, match="Density"):
        Density(np.array(knots), np.array(heights))


# ---- rules inside rules


@pytest.mark.parametrize("k", [1, 2, 3, 4, 7, 10, 15])
def test_fejer_is_exact_to_its_degree_with_positive_weights(k: int) -> None:
    fixed = fejer(k)
    assert exact_up_to(fixed) == (k if k % 2 else k - 1)
    assert (fixed.weights > 0).all()
    # Independent of our sum: the weights integrate the Lagrange polynomials of the nodes.
    lagrange = [np.poly1d(np.poly(np.delete(fixed.nodes, j))) for j in range(k)]
    expected = [p.integ()(1.0) / p(node) for p, node in zip(lagrange, fixed.nodes, strict=True)]
    assert fixed.weights == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    ("name", "n_nodes", "inside"),
    [
        ("midpoint", 27, [1, 3, 9, 27]),
        ("midpoint", 10, [2, 10]),
        ("midpoint", 45, [1, 3, 5, 9, 15, 45]),
        ("riemann", 12, [1, 2, 3, 4, 6, 12]),
        ("gauss-legendre", 7, [1, 7]),
        ("gauss-legendre", 8, [8]),
        ("fejer", 11, [1, 2, 3, 5, 11]),
        ("fejer", 15, [1, 3, 7, 15]),
        ("fejer", 14, [2, 4, 14]),
    ],
)
def test_which_rules_lie_inside_a_rule(name: str, n_nodes: int, inside: list[int]) -> None:
    nodes = rule(name, n_nodes).nodes
    assert nested(name, nodes) == inside
    for k in inside:
        assert all(np.abs(nodes - node).min() < 1e-14 for node in rule(name, k).nodes)


def test_halves_nest_in_halves() -> None:
    """Six Gauss-Legendre nodes on two halves are three on each, with 1/4 and 3/4 in their middles."""
    assert nested("gauss-legendre", in_halves(6).nodes) == [2, 6]
