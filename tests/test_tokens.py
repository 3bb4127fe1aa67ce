"""Tokens in colour: their order, their names, their signs; and sentences where sequence and activation differ."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
import torch
from torch import nn

import gralis
from gralis import GralisError
from gralis.features import tokens
from gralis.views.tokens import INK, colours

WORDS = ["<b>bad</b>", 'say "no"', "&", "good", "\n", "$x_1$"]
SLOPES = torch.tensor([-2.0, 0.5, 0.0, 4.0, -1.0, 1.0], dtype=torch.float64)


def linear(level_of_noise: float = 0.0) -> gralis.Explanation:
    def f(z: torch.Tensor) -> torch.Tensor:
        return z @ SLOPES + level_of_noise * (3 * z).sin().prod(1)

    x = torch.ones(6, dtype=torch.float64)
    plan = "independent" if level_of_noise else "shared"
    return gralis.explain(f, x, features=tokens(range(6), names=WORDS), plan=plan)


class Spans(HTMLParser):
    """What a browser would make of the snippet."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.spans: list[dict[str, str]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag == "span":
            self.spans.append({key: value or "" for key, value in attributes} | {"text": ""})

    def handle_data(self, data: str) -> None:
        if self.spans and not self.spans[-1].get("done"):
            self.spans[-1]["text"] += data

    def handle_endtag(self, tag: str) -> None:
        if tag == "span":
            self.spans[-1]["done"] = "yes"


def test_every_token_is_there_escaped_and_coloured_by_its_sign() -> None:
    page = Spans(linear().token_html())
    assert page.tags == ["p"] + ["span"] * 6 + ["br", "small"]
    assert [span["text"] for span in page.spans] == ["<b>bad</b>", 'say "no"', "&", "good", "⏎", "$x_1$"]
    for span, slope in zip(page.spans, SLOPES.tolist(), strict=True):
        red, _, blue = (int(part, 16) for part in re.findall(r"background:#(..)(..)(..)", span["style"])[0])
        assert np.sign(red - blue) == np.sign(slope)
        match = re.search(r"phi = (\S+)", span["title"])
        assert match
        assert float(match[1]) == pytest.approx(slope, abs=1e-9)
        assert ("underline" in span["style"]) == (slope != 0)


def test_intervals_are_in_the_title() -> None:
    explanation = linear(0.7)
    low, high = explanation.interval(0.9)[3]
    title = Spans(explanation.token_html(level=0.9)).spans[3]["title"]
    assert f"[{low:.4g}, {high:.4g}], 90% for all together" in title


def test_an_unknown_error_is_not_called_none() -> None:
    explanation = linear(0.7)
    unknown = replace(explanation, estimate=replace(explanation.estimate, departures=np.full((1, 6), np.nan)))
    assert np.isnan(unknown.interval()).all()
    for span in Spans(unknown.token_html()).spans:
        assert "(error unknown)" in span["title"]
        assert "text-decoration:none" in span["style"]


def test_text_can_be_read_on_every_colour() -> None:
    def luminance(colour: str) -> float:
        parts = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
        linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
        return float(linear @ (0.2126, 0.7152, 0.0722))

    shades = colours(np.linspace(-1, 1, 21))
    assert shades[10] == "#ffffff"
    for shade in shades:
        light, dark = sorted((luminance(shade), luminance(INK)), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 4.5  # WCAG 2, normal text


def test_a_picture_of_the_tokens() -> None:
    explanation = linear()
    (ax,) = explanation.plot("text").axes
    assert [drawn.get_text() for drawn in ax.texts] == ["<b>bad</b>", 'say "no"', "&", "good", "⏎", "$x_1$"]
    red = [patch.get_facecolor()[0] - patch.get_facecolor()[2] for patch in ax.patches]
    assert np.sign(red).tolist() == SLOPES.sign().tolist()
    assert len(ax.lines) == 5  # underlined: all but the one that is zero
    starts = [patch.get_x() for patch in ax.patches]
    assert starts == sorted(starts)


def test_long_texts_go_on_in_the_next_line(tmp_path) -> None:
    n = 60
    features = tokens(range(n), names=[f"word{i}" for i in range(n)])
    explanation = gralis.explain(lambda z: z.sum(1), torch.ones(n), features=features)
    figure = explanation.plot("text")
    boxes = figure.axes[0].patches
    assert all(box.get_x() >= 0 and box.get_x() + box.get_width() <= 72 for box in boxes)
    assert len({box.get_y() for box in boxes}) == 6  # 6.6 or 7 characters to a word
    figure.savefig(tmp_path / "text.png")


def test_coordinates_are_no_tokens() -> None:
    explanation = gralis.explain(lambda z: z.sum(1), torch.ones(3))
    for ask in (explanation.token_html, lambda: explanation.plot("text")):
        with pytest.raises(GralisError, match=r"features=gralis.features.tokens\(ids, tokenizer\)"):
            ask()


# --- ragged lengths --------------------------------------------------------------------------------------------------


class Bag(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(10, 3)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.embedding(ids).sum((1, 2))


def test_ids_of_another_length_than_the_activation() -> None:
    ids = torch.tensor([1, 2, 3, 4])
    with pytest.raises(GralisError, match=r"one token for each of the 4 positions of x, of shape \(4, 3\)\. Got 3"):
        gralis.explain(Bag().eval(), ids, layer="embedding", features=tokens(ids[:3]))


def test_ragged_ids() -> None:
    for ragged in ([[1, 2, 3], [4, 5]], [torch.tensor([1, 2]), torch.tensor([3])]):
        with pytest.raises(GralisError, match=r"'ids' parameter of tokens .*one sequence.*explained one by one"):
            tokens(ragged)
    with pytest.raises(GralisError, match=r"'ids' parameter of tokens .*shape \(2, 2\)"):
        tokens([[1, 2], [3, 4]])
    with pytest.raises(GralisError, match="3 names"):
        tokens([1, 2], names=["a", "b", "c"])
    short = type("Tokenizer", (), {"convert_ids_to_tokens": lambda self, ids: ["a"]})()
    with pytest.raises(GralisError, match=r"2 in all\. Got 1 names"):
        tokens([1, 2], short)
    unknown = type("Tokenizer", (), {"convert_ids_to_tokens": lambda self, ids: ["a", None]})()
    with pytest.raises(GralisError, match=r"'names' .* Got None at place 1"):
        tokens([1, 99], unknown)


def test_a_baseline_of_another_length() -> None:
    ids = torch.tensor([1, 2, 3, 4])
    with pytest.raises(GralisError, match=r"'baseline'.*shape"):
        gralis.explain(Bag().eval(), ids, layer="embedding", features=tokens(ids), baseline=torch.tensor([0, 0, 0]))
