"""Arguments of `sensitivity` and `hoeffding` that are refused, each with a sentence."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

from gralis import BudgetError, GralisError, ModelError
from gralis.games import SobolG
from gralis.sobol import Sensitivity, hoeffding, sensitivity

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
def test_bad_input_is_refused_with_a_sentence(call: Callable, words: str) -> None:
    with pytest.raises(GralisError, match=words):
        call()


def test_the_error_for_a_small_budget_names_the_least_that_suffices() -> None:
    f = SobolG()
    with pytest.raises(BudgetError, match="at least 1472 here"):
        sensitivity(f, f.bounds, budget=1000)
    result = sensitivity(f, f.bounds, budget=1472)
    assert isinstance(result, Sensitivity)
    assert result.n_evaluations == 1472
    with pytest.raises(BudgetError, match="Quadrature needs at least"):
        sensitivity(f, f.bounds, budget=5000, method="quadrature")


def test_the_error_for_an_output_that_is_not_finite_names_the_point() -> None:
    with pytest.raises(ModelError, match=r"nan, first at the point \(0\."):
        sensitivity(lambda z: torch.log(z[:, 0] - 0.5) + z[:, 1], UNIT, method="sampling")
