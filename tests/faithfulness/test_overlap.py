"""Overlap with an annotation, by hand."""

import numpy as np
import pytest

from gralis import GralisError, features
from gralis.faithfulness import iou, mass_inside, pointing_game

X = np.ones((2, 4, 4))
MARKED = np.zeros((4, 4), dtype=int)
MARKED[:2, :2] = 1
QUARTERS = features.grid(X.shape, 2)


def f(z):
    return z.sum((1, 2, 3))


def test_pointing_game_takes_the_largest_value_not_the_largest_magnitude() -> None:
    phi = np.zeros((4, 4))
    phi[0, 1], phi[3, 3] = 1.0, -9.0
    assert pointing_game(f, X, phi, annotation=MARKED).value == 1.0
    assert pointing_game(f, X, -phi, annotation=MARKED).value == 0.0
    assert pointing_game(f, X, np.array([2.0, 1, 0, 0]), features=QUARTERS, annotation=MARKED).value == 1.0
    assert pointing_game(f, X, np.ones(4), features=QUARTERS, annotation=MARKED).value == 0.25


def test_iou_of_as_many_pixels_as_were_marked() -> None:
    assert iou(f, X, np.array([5.0, 1, 0, 0]), features=QUARTERS, annotation=MARKED).value == 1.0
    assert iou(f, X, np.array([0.0, 5, 1, 0]), features=QUARTERS, annotation=MARKED).value == 0.0
    phi = np.zeros((4, 4))
    phi[0, :] = [4, 3, 2, 1]  # two of these four are marked: 2 / (4 + 4 - 2)
    assert iou(f, X, phi, annotation=MARKED).value == pytest.approx(1 / 3)


def test_mass_inside_counts_positive_values() -> None:
    phi = np.array([3.0, 1.0, -50.0, 0.0])
    assert mass_inside(f, X, phi, features=QUARTERS, annotation=MARKED).value == pytest.approx(0.75)
    wide = np.zeros((4, 4), dtype=bool)
    wide[:, :1] = True  # half of the first quarter, half of the third
    assert mass_inside(f, X, phi, features=QUARTERS, annotation=wide).value == pytest.approx(1.5 / 4)
    assert mass_inside(f, X, -np.ones(4), features=QUARTERS, annotation=MARKED).value == 0.0


def test_an_annotation_must_fit_and_mark_something() -> None:
    nan, ragged = np.where(MARKED == 0, np.nan, 1.0), [[1, 0, 0, 0], [1]]
    for wrong in (np.ones((2, 2)), np.zeros((4, 4)), nan, ragged, np.full((4, 4), "a")):
        with pytest.raises(GralisError, match=r"'annotation' .* shape \(4, 4\)"):
            iou(f, X, np.ones(4), features=QUARTERS, annotation=wrong)
