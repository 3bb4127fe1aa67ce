"""The arithmetic of `gralis.paper` against other computations of the same quantities."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gralis.games import Multilinear
from gralis.paper import (
    appendix_e,
    canonical_form,
    complexity,
    efficient_kernels,
    networks,
    open_questions,
    rational,
    theorems,
)
from gralis.paper.rational import Polynomial
from reference import (
    conditioned_ig,
    exact_gralis,
    exact_value,
    gauss_panels,
    normaliser,
    shapley_by_orders,
    subsets,
    torch_polynomial,
    without,
)

fractions = st.fractions(-3, 3, max_denominator=4)


@given(
    coefficients=st.lists(st.integers(-5, 5), min_size=7, max_size=7),
    x=st.lists(fractions, min_size=3, max_size=3),
    base=st.lists(fractions, min_size=3, max_size=3),
    third=st.integers(1, 6),
)
@settings(max_examples=25)
def test_definition_1_in_fractions(
    coefficients: list[int], x: list[Fraction], base: list[Fraction], third: int
) -> None:
    terms = [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)]
    ours = Polynomial.multilinear(3, dict(zip(terms, coefficients, strict=True)))
    theirs = {frozenset(t): Fraction(c) for t, c in zip(terms, coefficients, strict=True)}

    def kernel(s: frozenset[int]) -> Fraction:
        return Fraction(third, 3) ** len(s)

    assert rational.gralis(ours, x, base, kernel) == exact_gralis(theirs, x, base, kernel)
    assert ours(x) == exact_value(theirs, x)
    game = Multilinear(dict(zip(terms, coefficients, strict=True)), 3, x=tuple(x), baseline=tuple(base))
    v = ours.game(x, base)
    assert rational.endpoint(v, 3) == game.shapley().tolist()
    assert {t: m for t, m in rational.moebius(v).items() if m and t} == {
        frozenset(t): m for t, m in game.moebius().items()
    }
    assert {(i, j): rational.interaction(v, 3, i, j) for i, j in itertools.combinations(range(3), 2)} == (
        game.interactions(2)
    )


@pytest.mark.parametrize("seed", range(4))
def test_polynomials_with_powers_against_quadrature(seed: int) -> None:
    """Rays, means and products of curved polynomials: Gauss-Legendre integrates them exactly, up to rounding."""
    F = theorems.curved(seed, 3)
    x, base = theorems.X[:3], theorems.BASE[:3]
    as_floats = np.array(x, float), np.array(base, float)
    for t in subsets(range(3)):
        for i in t:
            expected = conditioned_ig(F.of_rows, *as_floats, t - {i}, i, gauss_panels(8))
            assert float(F.ray(x, base, t)[i]) == pytest.approx(expected, rel=1e-9, abs=1e-9)
    node, weight = gauss_panels(8)
    grid = np.array(list(itertools.product(node, repeat=3)))
    mass = np.array([math.prod(w) for w in itertools.product(weight, repeat=3)])
    values = F.of_rows(torch.from_numpy(grid)).numpy()
    assert float(F.mean()) == pytest.approx(mass @ values, rel=1e-9, abs=1e-9)
    assert float(F.times(F).mean()) == pytest.approx(mass @ values**2, rel=1e-9)
    parts = appendix_e.hoeffding(F)
    at = [Fraction(1, 3), Fraction(2, 5), Fraction(1)]
    assert sum(f(at) for f in parts.values()) == F(at)
    for t, f in parts.items():
        assert all(f.averaged([i])(at) == 0 for i in t)


def test_the_kernel_coefficients_are_those_of_the_sum() -> None:
    """On random games: sum over T of coefficient(T) v(T) is the sum over i of the endpoint form."""
    rng = np.random.default_rng(0)
    for n in (2, 3, 4):
        kernel = efficient_kernels.random_kernel(rng, n)
        v = {t: Fraction(int(rng.integers(-9, 9))) for t in subsets(range(n))}
        form = efficient_kernels.coefficients(n, kernel, normalised=True)
        assert sum(form[t] * v[t] for t in v) == sum(rational.endpoint(v, n, kernel.__getitem__))


# ---- which normalised kernels keep the sum: the answer for every n

positive = st.fractions(Fraction(1, 6), 6, max_denominator=6)


@given(r=st.lists(positive, min_size=2, max_size=4))
@settings(max_examples=30)
def test_features_drawn_one_by_one_keep_the_sum(r: list[Fraction]) -> None:
    n = len(r)
    kernel = open_questions.drawn_one_by_one(tuple(r))
    assert efficient_kernels.efficient(n, kernel, normalised=True)
    chance: dict[frozenset[int], Fraction] = dict.fromkeys(subsets(range(n)), Fraction(0))
    for order in itertools.permutations(range(n)):
        drawn, left = Fraction(1), sum(r)
        for i in order:
            drawn, left = drawn * r[i] / left, left - r[i]
        for size in range(n + 1):
            chance[frozenset(order[:size])] += drawn
    for s in subsets(range(n))[:-1]:
        size, rest = len(s), sum(r[j] for j in range(n) if j not in s)
        weight = Fraction(math.factorial(size) * math.factorial(n - size - 1), math.factorial(n))
        assert kernel[s] == chance[s] / (weight * rest)


@given(data=st.data(), n=st.integers(2, 3))
@settings(max_examples=60)
def test_no_other_kernel_does(data: st.DataObject, n: int) -> None:
    """A kernel keeps the sum if and only if it is drawn with r_i = 1 / Z_i. With few values both cases occur."""
    values = st.sampled_from([Fraction(1), Fraction(2), Fraction(1, 2)])
    kernel = {s: data.draw(values) for s in subsets(range(n))}
    z = [
        sum(
            Fraction(math.factorial(len(s)) * math.factorial(n - len(s) - 1), math.factorial(n)) * kernel[s]
            for s in without(n, i)
        )
        for i in range(n)
    ]
    twin = open_questions.drawn_one_by_one(tuple(1 / z_i for z_i in z))
    same = all(twin[s] == kernel[s] for s in subsets(range(n))[:-1])
    assert efficient_kernels.efficient(n, kernel, normalised=True) == same


def test_two_features_are_the_special_case() -> None:
    kernel = open_questions.drawn_one_by_one((Fraction(3), Fraction(5)))
    empty, first, second, _ = subsets(range(2))
    assert kernel[empty] ** 2 == kernel[first] * kernel[second]


@pytest.mark.parametrize("n", [2, 3, 5, 7])
def test_a_kernel_largest_at_the_empty_set_cannot_keep_it(n: int) -> None:
    rng = np.random.default_rng(n)
    p = rng.uniform(0.2, 0.99, n)
    z = normaliser(n, lambda s: math.prod(p[j] for j in s))
    assert (1 / z).sum() > n


def test_relu_rays_against_fine_quadrature() -> None:
    rng = np.random.default_rng(1)
    first, shift, last = rng.standard_normal((6, 3)), rng.standard_normal(6), rng.standard_normal(6)
    x = rng.uniform(0.5, 2, 3)

    def model(z: torch.Tensor) -> torch.Tensor:
        return torch.relu(z @ torch.from_numpy(first).T + torch.from_numpy(shift)) @ torch.from_numpy(last)

    full = frozenset(range(3))
    expected = [conditioned_ig(model, x, np.zeros(3), full - {i}, i, gauss_panels(1, 4000)) for i in range(3)]
    assert open_questions._relu_ray(first, shift, last, x) == pytest.approx(expected, abs=5e-3)


def test_shapley_over_orders() -> None:
    f, x = networks.network(0, 4), networks.point(0, 4)
    v = canonical_form._values(f, x)
    expected = shapley_by_orders(v.__getitem__, 4)
    assert canonical_form._shapley(f, x) == pytest.approx(expected, abs=1e-12)


def test_definition_1_in_the_counts_is_definition_1() -> None:
    f, x = torch_polynomial({frozenset({0, 1}): Fraction(4), frozenset({2}): Fraction(1)}), np.array([1.0, 2.0, 3.0])
    assert complexity.definition_1(complexity.Counting(f), x, 5) == pytest.approx([2.0, 2.0, 3.0], abs=1e-12)
