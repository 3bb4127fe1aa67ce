"""Doubts reach every reader: prints, notebooks, pictures, files and the results that hold several explanations."""

from __future__ import annotations

import html
import json

import numpy as np
import pytest
import torch

import gralis
from gralis import Explanation
from gralis.features import groups, tokens
from gralis.views.html import explanation_html

X = torch.tensor([1.0, 2.0, 0.5], dtype=torch.float64)


def rounded(z: torch.Tensor) -> torch.Tensor:
    """No gradient sees what the second feature does."""
    return z[:, 0] ** 2 + 3 * torch.round(z[:, 1]) + z[:, 0] * z[:, 2]


def smooth(z: torch.Tensor) -> torch.Tensor:
    return z[:, 0] ** 2 + z[:, 0] * z[:, 2] + z[:, 1]


@pytest.fixture(scope="module")
def doubted() -> Explanation:
    explanation = gralis.explain(rounded, X)
    assert len(explanation.doubts) == 2
    return explanation


@pytest.fixture(scope="module")
def trusted() -> Explanation:
    explanation = gralis.explain(smooth, X)
    assert explanation.doubts == ()
    return explanation


def test_a_notebook_shows_them_above_the_numbers(doubted: Explanation, trusted: Explanation) -> None:
    shown = explanation_html(doubted)
    for sentence in doubted.doubts:
        assert shown.count(html.escape(sentence)) == 1
        assert shown.index(html.escape(sentence)) < shown.index("<table")
    assert "Doubts" not in explanation_html(trusted)


def test_json_has_them(doubted: Explanation, trusted: Explanation) -> None:
    assert json.loads(doubted.to_json())["doubts"] == list(doubted.doubts)
    assert json.loads(trusted.to_json())["doubts"] == []


@pytest.mark.parametrize("kind", ["bars", "interactions", "network"])
def test_pictures_say_how_many_there_are(kind: str, doubted: Explanation, trusted: Explanation) -> None:
    def said(explanation: Explanation) -> str:
        axes = explanation.plot(kind).axes[0]
        return f"{axes.get_title()} {axes.get_xlabel()}"

    assert "2 doubts" in said(doubted)
    assert "doubt" not in said(trusted)


def test_a_heat_map_says_how_many_there_are() -> None:
    picture = torch.linspace(0.2, 2.0, 16, dtype=torch.float64).reshape(1, 4, 4)
    found = gralis.explain(
        lambda z: 3 * torch.round(z.sum((1, 2, 3)) / 4) + z[:, 0, 0, 0],
        picture,
        features=gralis.features.grid((1, 4, 4), 2),
    )
    assert found.doubts
    assert f"{len(found.doubts)} doubt" in found.plot("heatmap").axes[0].get_title()


def test_pairs_are_called_exact_by_their_own_error(doubted: Explanation) -> None:
    """They come from coalition values, which no node changes, while phi of this model is estimated."""
    assert not doubted.exact
    assert doubted.interactions(order=2).exact
    assert "(exact; 2 doubts" in doubted.plot("interactions").axes[0].get_title()


def test_text_says_what_is_known_and_what_is_doubted() -> None:
    words = tokens([0, 1, 2], names=["a", "b", "c"])
    shown = gralis.explain(smooth, X, features=words).token_html()
    assert shown.count("no error above rounding") == 3
    assert "doubt" not in shown
    found = gralis.explain(rounded, X, features=words)
    shown = found.token_html()
    assert "above rounding" not in shown
    assert all(html.escape(sentence) in shown for sentence in found.doubts)


def test_several_targets_have_the_doubts_of_all() -> None:
    found = gralis.explain(lambda z: torch.stack([smooth(z), rounded(z)], 1), X, target=[0, 1])
    assert found[0].doubts == ()
    assert found.doubts == found[1].doubts != ()
    assert repr(found).count("\ndoubt: ") == len(found.doubts)


def test_a_contrast_has_the_doubts_about_the_model_of_both() -> None:
    generator = torch.Generator().manual_seed(0)

    def noisy(z: torch.Tensor) -> torch.Tensor:
        noise = torch.rand(len(z), generator=generator, dtype=z.dtype)
        return torch.stack([smooth(z), smooth(z) + noise], 1)

    found = gralis.explain(noisy, X, target=[0, 1])
    assert found[0].model_doubts == ()
    assert found[1].model_doubts
    for pair in ((0, 1), (1, 0)):
        assert found.contrast(*pair).model_doubts == found[1].model_doubts


def test_a_sweep_has_each_sentence_once(doubted: Explanation) -> None:
    found = doubted.sweep([0.3, 0.75, 2.0])
    each = [e.doubts for e in found.explanations]
    assert len({sentences[0] for sentences in each}) == 1
    assert found.doubts[0] == doubted.doubts[0]
    assert sorted(found.doubts) == sorted({sentence for sentences in each for sentence in sentences})
    assert repr(found).count("\ndoubt: ") == 3
    assert f"({len(found.doubts) - 3} more in .doubts)" in repr(found)


def test_levels_have_the_doubts_of_all() -> None:
    found = gralis.multiscale(rounded, X, [groups([0, 0, 1]), groups([0, 1, 1])])
    each = [level.explanation.doubts for level in found.levels]
    assert all(each)
    assert set(found.doubts) == {sentence for sentences in each for sentence in sentences}
    assert repr(found).count("\ndoubt: ") == len(found.doubts)


def test_rounding_is_no_error_bar(trusted: Explanation) -> None:
    assert trusted.exact
    assert (trusted.half_widths() > 0).all()
    axes = trusted.plot("bars").axes[0]
    assert "no error above rounding" in axes.get_xlabel()
    assert not axes.collections
    assert np.all(trusted.printed_half_widths == 0)
