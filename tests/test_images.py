"""Pictures from files: the centred part, scaled, whatever the size."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from gralis.files.images import Preprocessing


@pytest.mark.parametrize("wider", [0, 22])
def test_a_picture_of_any_size_is_cut(wider, tmp_path):
    """500 x 478 at 224: the scaled height is 478 and a few 1e-14, which is not inside the picture."""
    loader, path = Preprocessing(224, 224), tmp_path / "picture.bmp"
    for height in (1, 7, 223, 224, 225, *range(430, 490)):
        Image.new("RGB", (height + wider, height), (10, 200, 30)).save(path)
        for turned in (False, True):
            if turned:
                Image.open(path).transpose(Image.Transpose.ROTATE_90).save(path)
            picture = loader.picture(path)
            assert picture.shape == (224, 224, 3)
            assert np.abs(picture - np.array([10, 200, 30]) / 255).max() < 1e-6


def test_the_part_is_in_the_middle(tmp_path):
    path = tmp_path / "wide.png"
    pixels = np.zeros((10, 30, 3), dtype=np.uint8)
    pixels[:, 10:20] = 255
    Image.fromarray(pixels).save(path)
    assert Preprocessing(10, 10).picture(path).min() == 1.0
