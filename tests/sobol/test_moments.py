"""The parts of the pick-freeze estimates: moments, surrogate and inputs, each against its definition."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch

from gralis.sobol import moments, pick_freeze
from gralis.sobol.design import PickFreezeDesign
from gralis.sobol.input_sets import subsets as subsets_of
from gralis.sobol.inputs import Column, Tables, uniforms
from gralis.sobol.surrogate import Basis, LegendreSurrogate
from reference import network, subsets
from sobol_answers import by_enumeration

SETS = ((3,), (0, 2, 4), (0, 1, 2, 3), (0, 1, 2, 3, 4))
EXCHANGED = tuple(dict.fromkeys(part for t in SETS for part in subsets_of(t, 2)))


def pooled(values: np.ndarray, design: PickFreezeDesign) -> moments.VarianceMoments:
    """The means over the rows, computed block by block."""
    rows = [moments.row_moments(values, design, SETS, part) for part in moments.blocks(design)]
    return moments.each(lambda *parts: np.concatenate(parts).mean(0), *rows)


def every_row(atoms: np.ndarray) -> PickFreezeDesign:
    """Two equally likely values for each of five inputs: all pairs of rows A, B with all orders of the walk."""
    n = len(atoms)
    rows = np.array(list(itertools.product(*atoms)))
    orders = np.array(list(itertools.permutations(range(n))))
    a, b, o = (part.ravel() for part in np.indices((len(rows), len(rows), len(orders))))
    return PickFreezeDesign(Tables(np.stack([rows[a], rows[b]]), None), orders[o], EXCHANGED)


def test_moments_over_all_rows_are_the_variances() -> None:
    n = 5
    atoms = np.random.default_rng(6).standard_normal((n, 2))
    f = network("tanh", n, 8)
    _, closed = by_enumeration(lambda z: f(torch.from_numpy(z)).numpy(), list(atoms), [np.full(2, 0.5)] * n)
    part = {t: sum((-1) ** (len(t) - len(s)) * closed[s] for s in subsets(t)) for t in subsets(range(n))}
    design = every_row(atoms)
    values = f(torch.from_numpy(design.points(slice(0, design.n_points)))).numpy()
    result = pooled(values, design)

    def total(*members: int) -> float:
        return sum(var for t, var in part.items() if t.issuperset(members))

    np.testing.assert_allclose(result.variance, closed[frozenset(range(n))], rtol=1e-9)
    np.testing.assert_allclose(result.single, [part[frozenset({i})] for i in range(n)], atol=1e-10)
    np.testing.assert_allclose(result.total, [total(i) for i in range(n)], atol=1e-10)
    for i, j in itertools.permutations(range(n), 2):
        assert result.pair[i, j] == pytest.approx(part[frozenset({i, j})], abs=1e-10)
        assert result.overlap[i, j] == pytest.approx(total(i, j), abs=1e-10)
    for place, t in enumerate(SETS):
        assert result.own[place] == pytest.approx(part[frozenset(t)], abs=1e-10)
        assert result.explained[place] == pytest.approx(closed[frozenset(t)], abs=1e-10)
    effects = [sum(var / len(t) for t, var in part.items() if i in t) for i in range(n)]
    shapley = pick_freeze._shapley(moments.each(lambda moment: np.asarray(moment)[None], result))[0]
    np.testing.assert_allclose(shapley, effects, atol=1e-10)


def test_the_moments_of_the_surrogate_are_known() -> None:
    gauss = (1 + np.array([-1, 1]) / math.sqrt(3)) / 2  # equal weights, exact up to degree three
    design = every_row(np.tile(gauss, (5, 1)))
    basis = Basis(5, 1, 2)
    surrogate = LegendreSurrogate(basis, np.random.default_rng(2).standard_normal(basis.n_terms))
    seen = pooled(surrogate.at(design.points(slice(0, design.n_points))), design)
    for field, moment in vars(moments.known_moments(surrogate, SETS)).items():
        np.testing.assert_allclose(getattr(seen, field), moment, atol=1e-10, err_msg=field)


def test_the_surrogate_knows_its_own_variances() -> None:
    basis = Basis(3, 3, 4)
    rng = np.random.default_rng(0)
    c = rng.standard_normal(basis.n_terms)
    node, weight = np.polynomial.legendre.leggauss(6)
    u, w = (node + 1) / 2, weight / 2
    mean, closed = by_enumeration(lambda z: basis.at(z) @ c, [u] * 3, [w] * 3)
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
