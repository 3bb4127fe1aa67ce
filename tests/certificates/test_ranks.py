"""Rank ranges against all orders the intervals allow, and against the truth over seeds."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from gralis import GralisError, Uniform, explain
from gralis.certificates.ranks import ranks
from gralis.estimators import Estimate
from reference import network

NAMES = tuple("abcd")


def exact(values: list[float]) -> Estimate:
    return Estimate(np.array(values), np.zeros((1, len(values))), "exact", exact=True)


def test_exact_values_have_one_rank() -> None:
    found = ranks(exact([0.5, -3.0, 1.0, 0.0]), NAMES, 0.95, 1, "magnitude")
    assert found.lowest.tolist() == found.highest.tolist() == [3, 1, 2, 4]
    by_value = ranks(exact([0.5, -3.0, 1.0, 0.0]), NAMES, 0.95, 1, "value")
    assert by_value.lowest.tolist() == [2, 4, 1, 3]
    assert found.top(2) == (["b", "c"], ["b", "c"])


def test_ties_stay_open() -> None:
    found = ranks(exact([1.0, -1.0, 0.2, 0.1]), NAMES, 0.95, 1, "magnitude")
    assert (found.lowest.tolist(), found.highest.tolist()) == ([1, 1, 3, 4], [2, 2, 3, 4])
    assert found.top(1) == ([], ["a", "b"])


def test_shared_noise_cancels_in_differences() -> None:
    """All values move together: single intervals overlap widely, the order is certain all the same."""
    rng = np.random.default_rng(0)
    rows = np.array([3.0, 2.0, 1.0]) + rng.standard_normal((12, 1)) * 5 + rng.standard_normal((12, 3)) * 0.01
    found = ranks(Estimate.mean(rows, "test"), NAMES[:3], 0.95, 1, "value")
    assert found.highest.tolist() == [1, 2, 3]


@pytest.mark.parametrize("by", ["magnitude", "value"])
def test_true_ranks_are_covered(by: str) -> None:
    model, x = network("relu", 8, 4), torch.linspace(-1, 1.5, 8, dtype=torch.float64)
    truth = explain(model, x, kernel=Uniform(), plan="exhaustive", quadrature="midpoint", n_nodes=200, budget=None)
    score = np.abs(truth.values) if by == "magnitude" else truth.values
    true_rank = 1 + np.argsort(np.argsort(-score))
    found = [explain(model, x, kernel=Uniform(), budget=150, seed=seed).ranks(0.95, by=by) for seed in range(30)]
    hits = [((r.lowest <= true_rank) & (true_rank <= r.highest)).all() for r in found]
    assert np.mean(hits) >= 0.87
    assert np.mean([(r.lowest < r.highest).any() for r in found]) > 0.5  # at this budget the order is not certain


def test_bad_input() -> None:
    found = explain(network("relu", 4, 4), torch.ones(4, dtype=torch.float64))
    with pytest.raises(GralisError, match=r"'by'.*'magnitude' or 'value'.*'size'"):
        found.ranks(by="size")
    with pytest.raises(GralisError, match="'level'"):
        found.ranks(95)
    with pytest.raises(GralisError, match=r"'k'.*1 to 4.*Got 5"):
        found.ranks().top(5)
