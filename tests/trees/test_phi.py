"""phi of trees against the definition: every coalition, every crossing, every order of tied crossings."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gralis
import slow_trees
from gralis.kernels import Gaussian, SizeKernel, Uniform
from gralis.trees import exact, phi_of_rows
from gralis.trees.columns import Columns

KERNELS = (
    Uniform(),
    Gaussian(0.75),
    Gaussian(0.2),
    Gaussian(1.0, "euclidean"),
    SizeKernel(lambda size: 1 / (1 + size * size)),
)
SHARES = np.array([0.3, 0.7])


def case(seed):
    """Trees, two rows and two baselines on one grid: ties, NaN, categories, groups, several outputs, strict "<"."""
    rng = np.random.default_rng(seed)
    trees = slow_trees.random_ensemble(
        rng,
        n_trees=2,
        depth=1 + seed % 4,
        categories=seed % 3 if seed % 2 else 0,
        n_outputs=1 + seed % 2,
        inclusive=seed % 5 != 0,
    )
    if seed % 4 == 0:
        trees = trees.grouped([0, 1, 1, 2], [False, False, seed % 8 == 0, False])
    missing = 0.15 if seed % 2 else 0.0
    return trees, slow_trees.random_rows(rng, trees, 1, missing), slow_trees.random_rows(rng, trees, 2, missing)


@pytest.fixture(params=["compiled", "numpy"])
def path(request, monkeypatch):
    """Both ways to compute the same sums."""
    if request.param == "numpy":
        monkeypatch.setattr(exact, "has_numba", lambda: False)
    return request.param


@pytest.mark.parametrize("seed", range(24))
def test_phi_is_the_sum_over_all_coalitions(seed, path):
    trees, rows, baselines = case(seed)
    kernel = KERNELS[seed % len(KERNELS)]
    found = phi_of_rows(trees, rows, baselines, kernel, SHARES)[0]
    for output in range(trees.n_outputs):
        truth = slow_trees.phi(trees, rows[0], baselines, SHARES, kernel, output)
        np.testing.assert_allclose(found[output], truth, rtol=0, atol=1e-12)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), kernel=st.sampled_from(KERNELS))
def test_random_trees(seed, kernel):
    trees, rows, baselines = case(seed)
    found = phi_of_rows(trees, rows, baselines, kernel, SHARES)[0, 0]
    truth = slow_trees.phi(trees, rows[0], baselines, SHARES, kernel)
    np.testing.assert_allclose(found, truth, rtol=0, atol=1e-11)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), kernel=st.sampled_from(KERNELS))
def test_both_paths_agree_on_larger_trees(seed, kernel):
    rng = np.random.default_rng(seed)
    trees = slow_trees.random_ensemble(rng, n_columns=8, n_trees=3, depth=6, categories=2, grid=3)
    rows, baselines = (slow_trees.random_rows(rng, trees, n, 0.1, grid=3) for n in (2, 3))
    fast = phi_of_rows(trees, rows, baselines, kernel)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exact, "has_numba", lambda: False)
        slow = phi_of_rows(trees, rows, baselines, kernel)
    np.testing.assert_allclose(fast, slow, rtol=0, atol=1e-12)


def one_tree(left, right, column, threshold, value, n_columns=2):
    nodes = {"left": left, "right": right, "column": column, "threshold": threshold, "roots": [0]}
    nodes |= {"default_left": [True] * len(left), "values": [[v] for v in value]}
    about = {"columns": Columns.plain(n_columns), "base": [0.0], "divisor": 1.0}
    return gralis.models.TreeEnsemble.of_nodes(nodes, **about, inclusive=True, single=False)


def test_a_single_leaf_and_a_constant_tree_give_nothing(path):
    leaf = one_tree([-1], [-1], [0], [0.0], [3.0])
    constant = one_tree([1, -1, -1], [2, -1, -1], [0, 0, 0], [0.5, 0.0, 0.0], [0.0, 3.0, 3.0])
    for trees in (leaf, constant):
        assert not phi_of_rows(trees, np.ones((1, 2)), np.zeros((1, 2)), Gaussian(0.5)).any()


def test_the_order_of_crossings_decides(path):
    """[a > 0.2 and b > 0.6] is entered when b crosses, and [a > 0.6 and b > 0.2] when a does; a tie is halved."""
    for cut_a, cut_b, truth in ((0.2, 0.6, [0.0, 0.5]), (0.6, 0.2, [0.5, 0.0]), (0.5, 0.5, [0.25, 0.25])):
        trees = one_tree(
            [1, -1, 3, -1, -1], [2, -1, 4, -1, -1], [0, 0, 1, 0, 0], [cut_a, 0, cut_b, 0, 0], [0, 0, 0, 0, 1]
        )
        found = phi_of_rows(trees, np.ones((1, 2)), np.zeros((1, 2)), Uniform())[0, 0]
        np.testing.assert_allclose(found, truth, atol=1e-15)


def test_a_missing_value_jumps_half_way(path):
    """From NaN (which goes left) to 1, a crosses at 1/2, so it enters before b that crosses at 0.6."""
    trees = one_tree([1, -1, 3, -1, -1], [2, -1, 4, -1, -1], [0, 0, 1, 0, 0], [0.9, 0, 0.6, 0, 0], [0, 0, 0, 0, 1])
    found = phi_of_rows(trees, np.ones((1, 2)), np.array([[np.nan, 0.0]]), Uniform())[0, 0]
    np.testing.assert_allclose(found, [0.0, 0.5], atol=1e-15)
    found = phi_of_rows(trees, np.ones((1, 2)), np.array([[0.0, 0.0]]), Uniform())[0, 0]
    np.testing.assert_allclose(found, [0.5, 0.0], atol=1e-15)


def test_many_features_need_many_nodes():
    """Z of a thousand features with a narrow kernel: the nodes in u are as exact as the law itself."""
    n = 1000
    rng = np.random.default_rng(3)
    trees = one_tree([1, -1, 3, -1, -1], [2, -1, 4, -1, -1], [0, 0, 1, 0, 0], [0.2, 0, 0.6, 0, 0], [0, 0, 0, 0, 1], n)
    x, z = np.ones(n), -rng.random(n)
    for sigma in (0.05, 0.3, 5.0):
        kernel = Gaussian(sigma, "euclidean")
        law = kernel.bind((x - z) ** 2)
        truth = law.subset_moments(np.array([[1, 0]]))[0]  # a must be a member when b crosses
        found = phi_of_rows(trees, x[None], z[None], kernel)[0, 0]
        np.testing.assert_allclose(found[1], truth, rtol=1e-9)


def test_blocks_of_trees_add_up(monkeypatch, path):
    trees, rows, baselines = case(3)
    whole, predicted = phi_of_rows(trees, rows, baselines, Gaussian(0.5)), trees.predict(rows)
    monkeypatch.setattr("gralis.trees.ensemble._BLOCK", 1)
    trees, _, _ = case(3)
    assert len(trees.blocks) == trees.n_trees == 2
    np.testing.assert_allclose(phi_of_rows(trees, rows, baselines, Gaussian(0.5)), whole, atol=1e-15)
    np.testing.assert_array_equal(trees.predict(rows), predicted)
