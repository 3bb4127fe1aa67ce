"""Multilinear polynomials: every answer against its definition, by enumeration."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from games.definitions import as_reference, check_game, complete
from gralis import Gaussian, GralisError, SizeKernel, Uniform, explain
from gralis.games import Multilinear, appendix_e, unanimity
from reference import (
    APPENDIX_E,
    coalitions,
    definition_1,
    exact_gralis,
    exact_ig,
    exact_value,
    gaussian,
    subsets,
    uniform,
)


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


rationals = st.fractions(min_value=-2, max_value=2, max_denominator=4)


@st.composite
def polynomials(draw: st.DrawFn) -> Multilinear:
    n = draw(st.integers(1, 4))
    sets = st.frozensets(st.integers(0, n - 1)).map(lambda s: tuple(sorted(s)))
    terms = draw(st.dictionaries(sets, rationals, min_size=1, max_size=6))
    x, base = (draw(st.lists(rationals, min_size=n, max_size=n)) for _ in range(2))
    return Multilinear(terms, n, x=x, baseline=base)


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
    explanation = explain(f, x, baseline=base, kernel=kernel, plan="exhaustive", budget=None)
    np.testing.assert_allclose(explanation.values, f.gralis(kernel), rtol=0, atol=1e-10)


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
