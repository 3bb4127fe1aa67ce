"""Sobol indices from explanations that exist already, against closed forms."""

from __future__ import annotations

import json

import numpy as np
import pytest

import gralis
from gralis import GralisError, explain, term_shares
from gralis.games import Multilinear


def explained(f: object, X: np.ndarray, baseline: object, **options: object) -> list[gralis.Explanation]:
    return [explain(f, x, baseline=baseline, plan="exhaustive", budget=None, progress=False, **options) for x in X]


F = Multilinear({(0,): 1, (1,): -1, (0, 1): 2, (0, 1, 2): 3}, 3, bounds=(-1, 1))
PARTS = {t: float(var / F.variance()) for t, var in F.parts().items()}


def test_a_multilinear_model_with_its_mean_as_baseline_on_a_design_is_known_in_closed_form() -> None:
    """Var over x = -1, 1 of each input is 1 instead of 1/3, so every term counts 3^|T| times as much."""
    X = np.array([[a, b, c] for a in (-1.0, 1) for b in (-1.0, 1) for c in (-1.0, 1)])
    found = term_shares(explained(F, X, [1e-9] * 3), max_order=3)
    weight = {(0,): 1.0, (1,): 1.0, (0, 1): 4.0, (0, 1, 2): 9.0}
    for t in found.sets:
        assert found.shares[t] == pytest.approx(weight.get(t, 0.0) / 15, abs=1e-6)
        inside = sum(w for part, w in weight.items() if set(part) <= set(t))
        assert found.closed[t] == pytest.approx(inside / 15, abs=1e-6)
    assert not found.doubts


def test_indices_of_any_order_are_covered() -> None:
    X = np.random.default_rng(1).uniform(-1, 1, (120, 3))
    found = term_shares(explained(F, X, [1e-9] * 3), sets=[(0, 1, 2), (1,)])
    assert found.sets == ((0, 1, 2), (1,))
    for t in found.sets:
        assert abs(found.shares[t] - PARTS[t]) <= found.half_width[t] < 0.25
    assert abs(found.closed[0, 1, 2] - 1) <= found.closed_half_width[0, 1, 2]
    assert json.loads(json.dumps(found.to_dict()))["n_inputs"] == 120
    assert "x[0] x x[1] x x[2]" in repr(found) or "0 x 1 x 2" in repr(found)


@pytest.mark.parametrize("seed", [4, 8, 18])
def test_a_term_that_the_model_does_not_have_is_covered_up_to_rounding(seed: int) -> None:
    """Its coefficients are a few roundings of F, and the jackknife does not see how far these move its share."""

    def f(z: object) -> object:
        return z[:, 0] ** 2 + z[:, 0] * z[:, 1] + z[:, 1] * z[:, 2]

    rng = np.random.default_rng(seed)
    X, B = rng.uniform(-1, 1, (100, 3)), rng.uniform(-1, 1, (30, 3))
    found = term_shares(explained(f, X, gralis.baselines.sample(B)), sets=[(0, 1, 2)])
    assert abs(found.shares[0, 1, 2]) <= found.half_width[0, 1, 2] < 1e-24


def test_baselines_drawn_like_the_inputs_give_hoeffding_terms_of_any_model() -> None:
    """F = a^2 + a b on [-1, 1]^2: Var a^2 = 4/45, Var ab = 1/9, so S_0 = 4/9 and S_01 = 5/9."""

    def f(z: object) -> object:
        return z[:, 0] ** 2 + z[:, 0] * z[:, 1]

    rng = np.random.default_rng(3)
    X, B = rng.uniform(-1, 1, (150, 2)), rng.uniform(-1, 1, (40, 2))
    found = term_shares(explained(f, X, gralis.baselines.sample(B)))
    assert not found.doubts
    assert found.n_baselines == 40
    for t, share in {(0,): 4 / 9, (1,): 0.0, (0, 1): 5 / 9}.items():
        assert abs(found.shares[t] - share) <= found.half_width[t] < 0.3
    wrong = term_shares(explained(f, X, [1e-9, 1e-9]))  # E a^2 = 1/3 is not 0
    assert len(wrong.doubts) == 1
    assert "has the mean 0.3" in wrong.doubts[0]
    assert wrong.doubts[0] in repr(wrong)


def test_few_baselines_do_not_bias_the_shares() -> None:
    """F = a b on [-1, 1]^2 has S_0 = S_1 = 0: what two baselines leave of a' b by chance is subtracted."""
    shares = []
    for seed in range(40):
        rng = np.random.default_rng([4, seed])
        X, B = rng.uniform(-1, 1, (12, 2)), rng.uniform(-1, 1, (2, 2))
        found = term_shares(explained(lambda z: z[:, 0] * z[:, 1], X, gralis.baselines.sample(B)))
        shares.append([found.shares[0,], found.shares[1,]])
    mean, error = np.mean(shares, axis=0), np.std(shares, axis=0, ddof=1) / np.sqrt(len(shares))
    assert (np.abs(mean) < 3 * error).all()
    assert (3 * error < 0.7).all()  # without the subtraction the mean would be 1


def test_sampled_explanations_are_doubted() -> None:
    X = np.random.default_rng(2).uniform(-1, 1, (8, 12))
    f = Multilinear({(i,): 1 for i in range(12)}, 12, bounds=(-1, 1))
    found = term_shares([explain(f, x, baseline=[1e-9] * 12, budget=200, progress=False) for x in X], max_order=1)
    assert "8 of 8 explanations sampled" in found.doubts[0]


def test_wrong_explanations_are_one_sentence() -> None:
    some = explained(F, np.ones((3, 3)) * [[1.0], [0.5], [0.2]], [1e-9] * 3)
    other = explained(Multilinear({(0,): 1}, 2), np.ones((1, 2)), [0.0] * 2)
    for wrong in ([], some[:2], [*some, 3], [*some, *other]):
        with pytest.raises(GralisError, match="'explanations' parameter of term_shares"):
            term_shares(wrong)
    with pytest.raises(GralisError, match="'sets' parameter of term_shares"):
        term_shares(some, sets=[(7,)])
    with pytest.raises(GralisError, match="the same for all"):
        term_shares([some[0]] * 3)
