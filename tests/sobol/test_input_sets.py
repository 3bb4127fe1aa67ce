"""Indices of three and more inputs: S_T and closed S_T, by quadrature, by enumeration and sampled."""

from __future__ import annotations

import json

import numpy as np
import pytest

from gralis import GralisError
from gralis.games import Multilinear, SobolG
from gralis.sobol import sensitivity

SETS = [(0, 1, 2), (3, 1, 0, 2), (4,)]


def answers(f: SobolG | Multilinear, t: tuple[int, ...]) -> tuple[float, float]:
    """S_T and closed S_T from the closed form."""
    parts, variance = f.parts(), f.variance()
    within = [part for part in parts if set(part) <= set(t)]
    return float(parts.get(tuple(sorted(t)), 0) / variance), float(sum(parts[part] for part in within) / variance)


@pytest.mark.parametrize("method", ["quadrature", "sampling"])
@pytest.mark.parametrize("f", [SobolG((0, 0, 0.5, 1, 3)), Multilinear.random(5, 5, seed=3)], ids=["g", "polynomial"])
def test_indices_of_any_set(f: SobolG | Multilinear, method: str) -> None:
    result = sensitivity(f, f.bounds, sets=SETS, method=method)
    assert result.sets[-3:] == ((0, 1, 2), (0, 1, 2, 3), (4,))
    assert len(result.sets) == 13
    for t in [*result.pairs, *SETS]:
        own, closed = answers(f, t)
        t = tuple(sorted(t))
        assert abs(result.interactions[t] - own) <= 1.3 * result.interactions_half_width[t] < 0.1
        assert abs(result.closed[t] - closed) <= 1.3 * result.closed_half_width[t] < 0.1
    assert result.interactions[4,] == pytest.approx(result.first[4], abs=0.02)
    assert result.n_evaluations <= 2**16
    known = json.loads(json.dumps(result.to_dict()))
    assert known["closed"]["x[0] x x[1] x x[2]"] == result.closed[0, 1, 2]
    assert known["doubts"] == list(result.doubts)
    assert "x[0] x x[1] x x[2]: " in repr(result)


def test_sets_leave_the_other_indices_unbiased_and_count_in_the_budget() -> None:
    f = SobolG((0, 0, 0.5, 1, 3))
    plain, more = (sensitivity(f, f.bounds, sets=sets, method="sampling", budget=20000) for sets in (None, SETS))
    assert plain.interactions == plain.pairs
    assert (np.abs(more.first - f.first_order().astype(float)) <= 1.3 * more.first_half_width).all()
    assert more.n_evaluations <= 20000


def test_sets_by_name_and_wrong_sets() -> None:
    f = SobolG((0, 1, 2))
    names = ["a", "b", "c"]
    assert sensitivity(f, f.bounds, names=names, sets=[("c", "a", "b")]).sets[-1] == (0, 1, 2)
    for wrong in ("ab", 3, [(0, 0)], [(0, 3)], [()], [("d",)], [2.5]):
        with pytest.raises(GralisError, match="'sets' parameter of sensitivity"):
            sensitivity(f, f.bounds, names=names, sets=wrong)
    with pytest.raises(GralisError, match="a set of 20 inputs has 1048576 subsets"):
        sensitivity(SobolG([1] * 20), [(0, 1)] * 20, sets=[range(20)])
