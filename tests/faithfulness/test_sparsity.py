"""Gini, entropy and locality in closed form."""

import warnings

import numpy as np
import pytest

from gralis import features
from gralis.faithfulness import entropy, gini, locality


def f(z):
    return z.flatten(1).sum(1)


def test_gini_of_known_distributions() -> None:
    one_of_n, ramp = np.eye(10)[3], np.arange(1.0, 11)
    assert gini(f, np.ones(10), one_of_n).value == pytest.approx(0.9)
    assert gini(f, np.ones(10), np.full(10, -2.0)).value == pytest.approx(0.0)
    # |a_i - a_j| over all pairs / (2 n^2 mean): the definition by mean differences.
    signed = ramp * np.array([1, -1] * 5)
    by_pairs = np.abs(ramp[:, None] - ramp).sum() / (2 * 100 * ramp.mean())
    assert gini(f, np.ones(10), signed).value == pytest.approx(by_pairs)
    assert gini(f, np.ones(3), np.zeros(3)).value == 0.0


def test_gini_against_quantus() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        quantus = pytest.importorskip("quantus")
        phi = np.random.default_rng(0).random((8, 8))
        metric = quantus.Sparseness(abs=True, normalise=False, disable_warnings=True, display_progressbar=False)
        theirs = metric.evaluate_batch(np.ones((1, 1, 8, 8)), np.copy(phi)[None])[0]
    assert gini(f, np.ones((8, 8)), phi).value == pytest.approx(theirs, abs=1e-6)


def test_entropy_of_known_distributions() -> None:
    assert entropy(f, np.ones(8), np.eye(8)[0]).value == pytest.approx(0.0)
    assert entropy(f, np.ones(8), np.array([1.0, -1, 1, -1, 1, -1, 1, -1])).value == pytest.approx(1.0)
    assert entropy(f, np.ones(8), np.array([1.0, -1, 1, -1, 0, 0, 0, 0])).value == pytest.approx(2 / 3)
    assert (gini(f, np.ones(2), np.ones(2)).better, entropy(f, np.ones(2), np.ones(2)).better) == ("higher", "lower")


def test_signs_are_summed_before_the_magnitude() -> None:
    """Two channels that cancel on a pixel, or two pixels that cancel in a region, leave nothing."""
    cancels = np.array([[[5.0, 1.0]], [[-5.0, 1.0]]])
    regions = features.grid((2, 1, 2), 1)
    assert gini(f, np.ones((2, 1, 2)), cancels, features=regions).value == pytest.approx(0.5)  # of 0 and 2
    assert locality(f, np.ones((2, 1, 2)), cancels).value == pytest.approx(1.0)


def test_locality() -> None:
    point, flat, corners = np.zeros((9, 9)), np.ones((9, 9)), np.zeros((9, 9))
    point[2, 7] = -3.0
    corners[0, 0] = corners[-1, -1] = 1.0
    assert locality(f, np.ones((9, 9)), point).value == pytest.approx(1.0)
    assert locality(f, np.ones((9, 9)), flat).value == pytest.approx(0.0)
    # Both corners lie 4 sqrt 2 from the centre; a flat square of side n has 2 (n^2 - 1) / 12 per square.
    expected = 1 - 4 * np.sqrt(2) / np.sqrt(2 * 80 / 12)
    assert locality(f, np.ones((9, 9)), corners).value == pytest.approx(expected)
    corners[0, 0] = -3.0  # magnitudes 3 and 1: a quarter and three quarters of the way
    signed = locality(f, np.ones((9, 9)), corners).value
    assert signed == pytest.approx(1 - 8 * np.sqrt(2) * np.sqrt(3 / 16) / np.sqrt(160 / 12))
    half = features.groups(np.arange(81).reshape(9, 9) // 27)  # three bands of three rows
    band = locality(f, np.ones((9, 9)), np.array([0.0, 1.0, 0.0]), features=half).value
    assert band == pytest.approx(1 - np.sqrt((8 / 12 + 80 / 12) / (160 / 12)))
