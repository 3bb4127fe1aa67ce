"""Notebooks: plots appear without magic commands, and results show their picture, their sentence or their table."""

from __future__ import annotations

import base64
import io
import re

import numpy as np
import pytest
import torch
from PIL import Image

import gralis
from gralis import Explanation
from gralis.features import grid, tokens

PNG = b"\x89PNG\r\n\x1a\n"


def mean_square(z: torch.Tensor) -> torch.Tensor:
    return (z.flatten(1) ** 2).mean(1)


@pytest.fixture(scope="module")
def photo() -> Explanation:
    x = torch.linspace(0, 1, 24 * 24).reshape(1, 24, 24).expand(3, 24, 24)
    return gralis.explain(mean_square, x, features=grid(x.shape, 8), budget=200)


@pytest.fixture(scope="module")
def sentence() -> Explanation:
    words = tokens([1, 2, 3], names=["not", "<good>", "not"])
    return gralis.explain(lambda z: z[:, 0] * z[:, 1] + z[:, 2], torch.ones(3, dtype=torch.float64), features=words)


def pictures(html: str) -> list[bytes]:
    return [base64.b64decode(data) for data in re.findall(r'src="data:image/png;base64,([^"]+)"', html)]


def test_a_plot_is_shown_without_a_magic_command(photo: Explanation) -> None:
    """A notebook shows what `_repr_png_` returns; matplotlib's own figures have it only after a magic command."""
    for figure in (photo.plot("bars"), photo.plot("heatmap"), photo.sweep([0.5, 1.0]).plot()):
        assert figure._repr_png_().startswith(PNG)


def test_the_explanation_of_an_image_shows_the_image(photo: Explanation) -> None:
    (picture,) = pictures(photo._repr_html_())
    assert picture.startswith(PNG)
    assert "Shapley" in photo._repr_html_()


def test_shapley_values_and_several_scales_and_batches_show_it_too(photo: Explanation) -> None:
    assert len(pictures(photo.shapley()._repr_html_())) == 1
    assert "Shapley values" in photo.shapley()._repr_html_()
    x = torch.linspace(0, 1, 24 * 24).reshape(1, 24, 24).expand(3, 24, 24)
    levels = [grid(x.shape, 12), grid(x.shape, 8)]
    assert len(pictures(gralis.multiscale(mean_square, x, levels, budget=200)._repr_html_())) == 1
    both = gralis.explain_batch(mean_square, torch.stack([x, 1 - x]), features=levels[0], budget=100)
    assert len(pictures(both._repr_html_())) == 2
    assert "input 1" in both._repr_html_()


def test_the_colours_of_the_picture_follow_the_values() -> None:
    """The left half raises the output and is red; the right half lowers it and is blue."""
    x = torch.ones(3, 20, 20, dtype=torch.float64)
    halves = grid(x.shape, (20, 10))
    e = gralis.explain(lambda z: z[..., :10].mean((1, 2, 3)) - z[..., 10:].mean((1, 2, 3)), x, features=halves)
    (picture,) = pictures(e.shapley()._repr_html_())
    pixels = np.asarray(Image.open(io.BytesIO(picture)).convert("RGB")).astype(int)
    height, width = pixels.shape[:2]
    left, right = pixels[height // 2, width // 4], pixels[height // 2, 3 * width // 4]
    assert left[0] > left[2]
    assert right[2] > right[0]


def test_a_text_shows_its_sentence(sentence: Explanation) -> None:
    for result in (sentence, sentence.shapley()):
        html = result._repr_html_()
        assert html.count("<span") == 3
        assert "&lt;good&gt;" in html
        assert "<good>" not in html
        assert ">not</span>" in html  # the words, without the places in their names
    assert "Shapley values = " in sentence.shapley()._repr_html_()


def test_a_table_shows_no_picture() -> None:
    e = gralis.explain(mean_square, torch.ones(5, dtype=torch.float64))
    assert pictures(e._repr_html_()) == []
    assert "<span" not in e._repr_html_()


def test_everything_else_shows_its_table_or_its_sentence(photo: Explanation) -> None:
    for value in (
        photo.ranks(),
        photo.interactions(),
        photo.residual,
        photo.certificate(),
        photo.audit(photo.shapley()),
        photo.sweep([0.5, 1.0]),
        photo.weight_mass(),
        gralis.cost(mean_square, torch.ones(4)),
        gralis.compare(mean_square, mean_square, torch.ones(4)),
    ):
        html = value._repr_html_()
        assert html.startswith("<pre" if "\n" in repr(value) else "<p")
        assert repr(value).splitlines()[0].split("'")[0].split("<")[0].split(">")[0].split("&")[0] in html


def test_without_matplotlib_there_is_the_table_alone(photo: Explanation, monkeypatch: pytest.MonkeyPatch) -> None:
    from gralis import GralisError
    from gralis.views import small_picture

    def missing(*_: float) -> None:
        raise GralisError("Pictures need matplotlib.")

    monkeypatch.setattr(small_picture, "new_figure", missing)
    html = photo._repr_html_()
    assert pictures(html) == []
    assert "<table" in html
