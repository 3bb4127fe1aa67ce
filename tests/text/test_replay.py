"""text.replay: texts and generations computed again, from what a file holds, with the same and with another model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import gralis
from gralis import GralisError
from gralis.text import explain, explain_generation, fill, load, remote, replay
from text_models import network, tokenizer

PROMPT = "Paris is red . the film was good .\n\nLyon is blue . the book was bad .\n\nthe key is green ."
SLOTS = fill("passage : {p} question : {q} answer :", {"p": "the film .", "q": "who ?"})


def changed(model: nn.Module) -> nn.Module:
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1.05)
    return model


@pytest.mark.parametrize("family", ["gpt2", "llama", "t5"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"alternative": " Lyon", "score": "logit"},
        {"features": "words", "budget": 200},
        {"plan": "shared", "budget": 900},
        {"prompt": SLOTS, "absent": {"p": "a very long book"}},
        {"prompt": SLOTS, "absent": "hidden"},
    ],
)
def test_a_generation_is_computed_again_from_its_file(family: str, options: dict[str, Any], tmp_path: Path) -> None:
    model, tok = network(family), tokenizer(bos=False)
    given = {"prompt": PROMPT, **options}
    g = load(explain_generation(model, tok, continuation=" Paris is", **given).save(tmp_path / "why.zip"))
    same = replay(g, network(family), tok)
    assert same.same, same
    assert same.n_numbers == 3 * (len(g.names) + 2)  # the whole answer and two tokens, with both ends of each
    other = replay(g, changed(network(family)), tok)
    assert other.hashes[-1] == "model"
    assert any(difference.name.startswith("phi") for difference in other.differences)
    assert max(abs(d.now - d.then) for d in other.differences) == pytest.approx(other.largest)


def test_a_closer_look_and_single_tokens_are_computed_again() -> None:
    model, tok = network("gpt2"), tokenizer(bos=False)
    g = explain_generation(model, tok, PROMPT, " Paris is")
    closer = g.drill(0, into="words")
    assert replay(closer, model, tok).same
    assert replay(closer[1], model, tok).same
    assert replay(closer.total, model, tok).same
    assert not replay(closer, changed(network("gpt2")), tok).same


@pytest.mark.parametrize(
    "options", [{}, {"absent": "removed"}, {"target": gralis.targets.probability(2)}, {"features": "tokens"}]
)
def test_a_text_is_computed_again_from_its_file(options: dict[str, Any], tmp_path: Path) -> None:
    model, tok = network("bert"), tokenizer()
    e = explain(model, tok, "the film was not good", **{"target": 1, "budget": 200, **options})
    assert isinstance(e, gralis.Explanation)
    saved = gralis.load(e.save(tmp_path / "why.gralis"))
    assert replay(saved, network("bert"), tok).same
    assert replay(saved, changed(network("bert")), tok).differences
    with pytest.raises(GralisError, match=r"use gralis\.text\.replay\(explanation, model, tokenizer\)"):
        gralis.replay(saved, model)


def test_what_cannot_be_computed_again_is_one_sentence() -> None:
    model, tok = network("bert"), tokenizer()
    first = explain(model, tok, "the film", target=lambda outputs: outputs.logits[:, 0], budget=100)
    assert isinstance(first, gralis.Explanation)
    with pytest.raises(GralisError, match="was a Python function"):
        replay(first, model, tok)
    assert replay(first, model, tok, target=lambda outputs: outputs.logits[:, 0]).same
    encoded = gralis.explain(model, tok("the film", return_tensors="pt"), target=1, budget=100)
    with pytest.raises(GralisError, match=r"explain the text itself with gralis\.text\.explain"):
        gralis.replay(encoded, model)
    with pytest.raises(GralisError, match=r"use gralis\.replay for other inputs"):
        replay(encoded, model, tok)
    api = explain_generation(remote(lambda prompts: [[-float(len(p))] for p in prompts]), None, SLOTS, " yes")
    with pytest.raises(GralisError, match="explain again with the same cache"):
        replay(api, model, tok)
    with pytest.raises(GralisError, match="an Explanation or a Generation"):
        replay(3, model, tok)  # type: ignore[arg-type]
    with pytest.raises(GralisError, match=r"'tolerance' parameter of text\.replay"):
        replay(explain_generation(network("gpt2"), tokenizer(bos=False), PROMPT, " red"), network("gpt2"),
               tokenizer(bos=False), tolerance=-1)  # fmt: skip
