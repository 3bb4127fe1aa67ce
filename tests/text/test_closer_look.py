"""A closer look at a part of a text that a classifier read: the same game as from the start, at a third of the cost."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import gralis
from gralis import GralisError, Uniform
from gralis.text import TextExplanation, explain, fill, replay, split
from text_models import network, tokenizer

TEXT = "the film was good . the book was bad .\n\nParis is red . who said it ?\n\nLyon is blue ."


@pytest.mark.parametrize("family", ["bert", "distilbert"])
def test_rays_of_a_closer_look_agree_with_those_from_the_start(family: str) -> None:
    model, tok = network(family), tokenizer()
    coarse = explain(model, tok, TEXT, target=1, features="passages", budget=1800, kernel=Uniform())
    assert isinstance(coarse, TextExplanation)
    closer = coarse.drill("passage 1")
    assert closer.names == (
        "passage 1: the film was good .", "passage 1: the book was bad .", "passage 2", "passage 3",
    )  # fmt: skip
    assert closer.cost.n_gradients <= 600
    assert closer.f_x == pytest.approx(coarse.f_x, abs=1e-5)
    start = explain(
        model, tok, TEXT, target=1, features=[(s.start, s.stop) for s in closer.spans], budget=1800, kernel=Uniform()
    )
    room = closer.half_widths() + start.half_widths() + 1e-6
    assert (np.abs(closer.values - start.values) <= room).all()
    deeper = closer.drill(2, into="words")
    assert deeper.names[2:5] == ("passage 2: Paris", "passage 2: is", "passage 2: red")
    assert deeper.cost.n_gradients <= 600  # a third of the first look again, not a third of a third


def test_values_that_are_known_are_not_evaluated_again() -> None:
    model, tok = network("bert"), tokenizer()
    prompt = fill("who said : {p} ?", {"p": ["the film was good . it is red .", "Lyon is blue .", "Paris is long ."]})
    coarse = explain(model, tok, prompt, target=1, absent="removed")
    assert coarse.exact
    closer = coarse.drill("p 1", budget=None)
    assert closer.exact
    assert closer.cost.n_forwards <= 2**4 - 2**3 + 2  # the coalitions with half of the opened part, and the ends
    start = explain(model, tok, prompt, target=1, absent="removed", features=list(map(tuple, spans(closer))))
    np.testing.assert_allclose(closer.values, start.values, atol=1e-5)
    assert replay(closer, model, tok).same


def spans(explanation: TextExplanation) -> list[tuple[int, int, str]]:
    return [(span.start, span.stop, span.name) for span in explanation.spans]


def test_each_target_looks_closer_at_itself() -> None:
    model, tok = network("bert"), tokenizer()
    every = explain(model, tok, TEXT, target="all", features="passages", budget=600)
    assert [each.drill(1).f_x for each in every] == pytest.approx(every.f_x.tolist(), abs=1e-5)  # type: ignore[attr-defined]
    best = explain(model, tok, TEXT, target="predicted", features="passages", budget=600)
    assert best.drill(1).provenance["target"] == best.provenance["target"]


def test_more_rays_keep_the_closer_look_and_what_a_replay_needs() -> None:
    model, tok = network("bert"), tokenizer()
    first = explain(model, tok, TEXT, target=1, features="words", budget=300)
    longer = first.extend(300)
    assert isinstance(longer, TextExplanation)
    assert longer.provenance["baseline"] == first.provenance["baseline"]
    assert replay(longer.extend(300), model, tok).same
    passages = explain(model, tok, TEXT, target=1, features="passages", budget=300)
    assert passages.drill(0).n_features == 4
    assert all(a.stop <= b.start for a, b in pairwise(split(TEXT, "passages")))


def test_bad_closer_looks_are_one_sentence(tmp_path: Path) -> None:
    model, tok = network("bert"), tokenizer()
    e = explain(model, tok, TEXT, target=1, features="passages", budget=300)
    for feature, into, sentence in (
        ("passage 9", None, "The 'feature' parameter of drill must be a number below 3"),
        (True, None, "The 'feature' parameter of drill"),
        (0, "letters", "The 'into' parameter of drill"),
        (0, [(50, 55)], "beyond 'passage 1'"),
    ):
        with pytest.raises(GralisError, match=sentence):
            e.drill(feature, into=into)  # type: ignore[arg-type]
    with pytest.raises(GralisError, match="cannot be split any further"):
        explain(model, tok, "the film", target=1, budget=64).drill("film")
    replaced = explain(model, tok, TEXT, target=1, features="passages", absent={"passage 1": "a book"}, budget=300)
    with pytest.raises(
        GralisError, match="'passage 1' has a text that replaces it as a whole, and its parts have none"
    ):
        replaced.drill(0)
    assert replaced.drill(1).n_features > 3
    saved = TextExplanation.of(gralis.load(e.save(tmp_path / "text.zip")), None)
    with pytest.raises(GralisError, match="no model to drill with"):
        saved.drill(0)
