"""The noisy linear imputer against its closed forms, its definition, and quantus."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gralis.faithfulness.impute import NoisyLinear, linear


@given(st.integers(0, 10_000), st.floats(0.05, 1.0))
def test_an_affine_image_is_left_as_it_is(seed: int, share: float) -> None:
    """Any removed pixels inside; at the border a pixel has neighbours on one side only."""
    rng = np.random.default_rng(seed)
    rows, columns = np.mgrid[:9, :11]
    affine = np.stack([rng.normal() + rng.normal() * rows + rng.normal() * columns for _ in range(3)])
    kept = np.ones((9, 11), dtype=bool)
    kept[1:-1, 1:-1] = rng.random((7, 9)) >= share
    assert linear(affine, kept) == pytest.approx(affine, abs=1e-10)
    assert NoisyLinear(0.0)(affine, kept, rng) == pytest.approx(affine, abs=1e-10)


def test_the_centre_of_squares() -> None:
    squares = np.arange(9.0).reshape(3, 3) ** 2
    kept = np.ones((3, 3), dtype=bool)
    kept[1, 1] = False
    assert linear(squares, kept)[1, 1] == pytest.approx((1 + 9 + 25 + 49) / 6 + (0 + 4 + 36 + 64) / 12)
    assert linear(squares, kept)[1, 1] == pytest.approx(22.6667, abs=1e-4)
    assert squares[1, 1] == 16  # the image itself is not written


def test_every_removed_pixel_is_the_mean_of_its_neighbours_and_no_kept_one_moves() -> None:
    rng = np.random.default_rng(0)
    image, kept = rng.random((2, 8, 7)), rng.random((8, 7)) < 0.3
    filled = linear(image, kept)
    assert (filled[:, kept] == image[:, kept]).all()
    for y, x in np.argwhere(~kept):
        total, weights = np.zeros(2), 0.0
        for dy, dx in [(a, b) for a in (-1, 0, 1) for b in (-1, 0, 1) if (a, b) != (0, 0)]:
            if 0 <= y + dy < 8 and 0 <= x + dx < 7:
                weight = 1 / 6 if dy == 0 or dx == 0 else 1 / 12
                total, weights = total + weight * filled[:, y + dy, x + dx], weights + weight
        assert filled[:, y, x] == pytest.approx(total / weights, abs=1e-10)


def test_nothing_kept_gives_the_mean_and_everything_kept_the_image() -> None:
    image = np.random.default_rng(0).random((2, 4, 4))
    assert linear(image, np.zeros((4, 4), dtype=bool)) == pytest.approx(
        np.broadcast_to(image.mean((1, 2), keepdims=True), image.shape)
    )
    assert (linear(image, np.ones((4, 4), dtype=bool)) == image).all()


def test_noise_has_its_size_and_falls_on_removed_pixels_only() -> None:
    rng = np.random.default_rng(0)
    image, kept = rng.random((3, 40, 40)), rng.random((40, 40)) < 0.5
    noise = NoisyLinear(0.1)(image, kept, np.random.default_rng(1)) - linear(image, kept)
    assert (noise[:, kept] == 0).all()
    assert noise[:, ~kept].std() == pytest.approx(0.1, rel=0.1)
    assert np.abs(np.corrcoef(noise[:, ~kept])[0, 1]) < 0.1  # channels have noise of their own


def test_against_quantus() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        perturb = pytest.importorskip("quantus.functions.perturb_func")
    rng = np.random.default_rng(3)
    image, kept = rng.random((3, 10, 12)), rng.random((10, 12)) < 0.4
    theirs = perturb.noisy_linear_imputation(image, np.flatnonzero(~kept), noise=0.0)
    assert linear(image, kept) == pytest.approx(theirs, abs=1e-10)
