"""The airport game and the glove game against enumeration, and as black boxes."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
import torch

from games.definitions import check_game
from gralis import GralisError, Uniform, explain, models
from gralis.games import Airport, Game, Glove


@pytest.mark.parametrize("costs", [[1, 2, 4], [3, 0, 3, 1], [Fraction(1, 2)] * 3, [5]])
def test_airport_against_enumeration(costs: list) -> None:
    check_game(Airport(costs), lambda s: Fraction(max((costs[i] for i in s), default=0)))


@pytest.mark.parametrize("hands", [(1, 2), (2, 2), (3, 2), (1, 4)])
def test_glove_against_enumeration(hands: tuple[int, int]) -> None:
    def value(s: frozenset[int]) -> Fraction:
        left = len([i for i in s if i < hands[0]])
        return Fraction(min(left, len(s) - left))

    check_game(Glove(*hands), value)


def test_glove_by_the_formula_of_shapley_and_shubik() -> None:
    few, many = 30, 40
    series = sum(
        Fraction(math.factorial(many) * math.factorial(few), math.factorial(many + k) * math.factorial(few - k))
        for k in range(few + 1)
    )
    expected = Fraction(1, 2) - Fraction(many - few, 2 * many) * series
    assert Glove(few, many).shapley()[-1] == expected
    assert Glove(few, many).shapley().sum() == few


@pytest.mark.parametrize("game", [Airport([1.0, 2.5, 4.0, 0.5]), Glove(1, 3)], ids=["airport", "glove"])
def test_mask_games_are_black_boxes(game: Game) -> None:
    masks = np.array(list(itertools.product([0, 1], repeat=4)))
    expected = [float(game.value(np.flatnonzero(row))) for row in masks]
    assert game(masks).tolist() == expected
    assert game(masks.astype(bool)).tolist() == expected
    on_tensor = game(torch.from_numpy(masks).float())
    assert on_tensor.dtype == torch.float32
    assert on_tensor.tolist() == expected
    options = {"baseline": 0.0, "kernel": Uniform(), "plan": "endpoint"}
    for model in (game, models.blackbox(game)):
        explanation = explain(model, np.ones(4), **options)
        np.testing.assert_allclose(explanation.values, game.shapley().astype(float), rtol=0, atol=1e-12)
    with pytest.raises(GralisError, match="0/1 rows"):
        explain(game, np.ones(4), baseline=0.0, plan="shared")
