"""text.explain_generation: the matrix against enumeration, drill against the fine grain, pages and files."""

from __future__ import annotations

import itertools
import re
from math import factorial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from gralis import GralisError
from gralis.text import Generation, explain_generation, fill, generation_page, load
from gralis.text.answer import Answer, answered
from gralis.text.reading import Reading
from text_models import WORDS, network, tokenizer, tokenizer_of

PROMPT = (
    "Paris is red . the film was good .\n\nLyon is blue . the book was bad .\n\nthe key is green . he said it .\n\n"
    "where is the key ?"
)
ANSWER = " Paris is red"


def log_probabilities(model: nn.Module, prompt: list[int], answer: list[int]) -> np.ndarray:
    """log p of every token of the answer, straight from the model."""
    with torch.no_grad():
        if model.config.is_encoder_decoder:
            start = torch.tensor([[0, *answer[:-1]]])
            logits = model(input_ids=torch.tensor([prompt]), decoder_input_ids=start).logits[0]
        else:
            logits = model(input_ids=torch.tensor([prompt + answer])).logits[0, len(prompt) - 1 : -1]
    return torch.log_softmax(logits, -1)[torch.arange(len(answer)), torch.tensor(answer)].numpy()


def enumerated(model: nn.Module, pieces: list[list[int]], answer: list[int], absent: int) -> np.ndarray:
    """Shapley values by their definition, (n_tokens, n_features): every coalition is one prompt of token ids."""
    n = len(pieces)
    value = {
        members: log_probabilities(
            model, [t if k in members else absent for k, piece in enumerate(pieces) for t in piece], answer
        )
        for size in range(n + 1)
        for members in itertools.combinations(range(n), size)
    }
    found = np.zeros((len(answer), n))
    for members, before in value.items():
        for i in set(range(n)) - set(members):
            weight = factorial(len(members)) * factorial(n - len(members) - 1) / factorial(n)
            found[:, i] += weight * (value[tuple(sorted((*members, i)))] - before)
    return found


@pytest.mark.parametrize("family", ["gpt2", "llama", "t5"])
def test_the_matrix_is_that_of_all_coalitions(family: str) -> None:
    model, tok = network(family), tokenizer(bos=False)
    g = explain_generation(model, tok, PROMPT, ANSWER, absent="eos")
    pieces = [tok(part)["input_ids"] for part in PROMPT.split("\n\n")]
    answer = tok(ANSWER)["input_ids"]
    truth = enumerated(model, pieces, answer, tok.eos_token_id)
    np.testing.assert_allclose(g.values, truth, atol=2e-4 if family == "t5" else 2e-5)
    np.testing.assert_allclose(g.total.values, truth.sum(0), atol=5e-4 if family == "t5" else 5e-5)
    np.testing.assert_allclose(g.scores, log_probabilities(model, list(itertools.chain(*pieces)), answer), atol=1e-4)
    assert g.exact
    assert g.tokens == ("Paris", "is", "red")
    assert g.names == ("passage 1", "passage 2", "passage 3", "passage 4")
    assert g.cost.n_forwards == 16


def test_the_model_writes_the_answer_by_itself() -> None:
    model, tok = network("gpt2"), tokenizer(bos=False)
    g = explain_generation(model, tok, PROMPT, max_new_tokens=4)
    ids = tok(PROMPT)["input_ids"]
    written: list[int] = []
    for _ in range(4):
        with torch.no_grad():
            written.append(int(model(input_ids=torch.tensor([ids + written])).logits[0, -1].argmax()))
    assert list(g.tokens) == tok.convert_ids_to_tokens(written)


def test_a_written_answer_stays_inside_the_context_window() -> None:
    model, tok = network("gpt2"), tokenizer(bos=False)  # whose window holds 96 tokens
    assert len(explain_generation(model, tok, "the film " * 46, features="sentences", max_new_tokens=20).tokens) <= 4
    with pytest.raises(GralisError, match="fills the context window"):
        explain_generation(model, tok, "the film " * 48, features="sentences")


def test_logits_and_an_alternative_are_other_scores() -> None:
    model, tok = network("gpt2"), tokenizer(bos=False)
    prompt = tok(PROMPT)["input_ids"]
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([prompt])).logits[0, -1]
    paris, lyon = tok.convert_tokens_to_ids(["Paris", "Lyon"])
    raw = explain_generation(model, tok, PROMPT, " Paris", score="logit")
    assert raw.total.f_x == pytest.approx(logits[paris].item(), abs=1e-4)
    why = explain_generation(model, tok, PROMPT, " Paris", alternative=" Lyon")
    assert why.total.f_x == pytest.approx((logits[paris] - logits[lyon]).item(), abs=1e-4)
    assert why.tokens == ("Paris | Lyon",)
    longer = explain_generation(model, tok, PROMPT, " Paris is", alternative=" Lyon")
    ours, theirs = (
        log_probabilities(model, prompt, tok(answer)["input_ids"]).sum() for answer in (" Paris is", " Lyon")
    )
    assert longer.total.f_x == pytest.approx(ours - theirs, abs=1e-4)
    np.testing.assert_allclose(longer.values.sum(0), longer.total.values, atol=1e-5)


def test_removed_passages_are_a_shorter_prompt() -> None:
    model, tok = network("llama"), tokenizer(bos=False)
    slots = {"context": ["Paris is red .", "Lyon is blue ."], "ask": "where ?"}
    prompt = fill("passage : {context} question : {ask} answer :", slots, separator=" ")
    for absent, without in (("removed", "passage : question : answer :"), ("hidden", None)):
        g = explain_generation(model, tok, prompt, " Paris is", absent=absent)
        answer = tok(" Paris is")["input_ids"]
        rows = g[1].ledger.kept_rows
        if without is not None:
            assert g[1].f_baseline == pytest.approx(
                log_probabilities(model, tok(without)["input_ids"], answer)[1], abs=1e-4
            )
            both = tok("passage : Lyon is blue . question : answer :")["input_ids"]
        else:  # the mask hides the tokens, and the others keep their positions
            ids = tok(prompt.text)["input_ids"]
            seen = [0 if k in (2, 3, 4, 5, 12, 13) else 1 for k in range(len(ids))]
            with torch.no_grad():
                places = torch.arange(len(ids) + 2)[None]
                mask = torch.tensor([[*seen, 1, 1]])
                logits = model(input_ids=torch.tensor([ids + answer]), attention_mask=mask, position_ids=places).logits
            expected = torch.log_softmax(logits[0, -2], -1)[answer[1]].item()
        place = int(np.flatnonzero((rows.masks == [False, True, False]).all(1))[0])
        found = rows.value[place] + g[1].f_baseline
        if without is not None:
            expected = log_probabilities(model, both, answer)[1]
        assert found == pytest.approx(expected, abs=1e-4)


def test_turns_of_a_conversation_are_features_and_role_marks_are_not() -> None:
    tok = tokenizer_of([*WORDS, "user", "assistant"], bos=False, chat=True)
    turns = [{"role": "user", "content": "the key is red ."}, {"role": "assistant", "content": "very good ."}]
    model = network("gpt2")
    model.resize_token_embeddings(len(tok))
    g = explain_generation(model, tok, [*turns, {"role": "user", "content": "where is it ?"}], " red")
    assert g.names == ("user 1", "assistant 2", "user 3")
    assert "<eos>" not in "".join(span.of(g.text) for span in g.spans)
    tok.chat_template = (
        "{% for m in messages %}{% for part in m['content'] %}{{ part['text'] }} {% endfor %}{% endfor %}"
    )
    listed = [{"role": "user", "content": [{"type": "text", "text": "the key"}, {"type": "text", "text": "is red ."}]}]
    parts = explain_generation(model, tok, listed, " red")
    assert [span.of(parts.text) for span in parts.spans] == ["the key is red ."]


def test_drill_splits_one_passage_and_agrees_with_the_fine_grain_from_the_start() -> None:
    model, tok = network("gpt2"), tokenizer(bos=False)
    coarse = explain_generation(model, tok, PROMPT, ANSWER)
    deep = coarse.drill("passage 1")
    assert [span.of(PROMPT) for span in deep.spans[:2]] == ["Paris is red .", "the film was good ."]
    assert deep.names[2:] == coarse.names[1:]
    start = explain_generation(model, tok, PROMPT, ANSWER, features=[span.of(PROMPT) for span in deep.spans])
    np.testing.assert_allclose(deep.values, start.values, atol=1e-6)
    assert deep.cost.n_forwards == 18  # the 16 coalitions of whole passages are known; two ends are evaluated again
    assert start.cost.n_forwards == 32
    words = coarse.drill(3)
    assert [span.of(PROMPT) for span in words.spans[3:]] == ["where", "is", "the", "key", "?"]
    with pytest.raises(GralisError, match="cannot be split any further"):
        words.drill(words.names[-1])
    with pytest.raises(GralisError, match="a number below 4"):
        coarse.drill("passage 9")
    with pytest.raises(GralisError, match="one of 'tokens', 'words'"):
        coarse.drill(0, into="letters")
    assert coarse.drill(1, into=["Lyon", "bad"]).names[1:3] == ("Lyon", "bad")
    assert coarse.drill(0, into=[(0, 5), (6, 14, "rest")]).names[:2] == ("Paris", "rest")
    for parts, sentence in (
        ([(0, 5), (50, 60)], r"beyond 'passage 1' \(0 to 34\)"),
        ([(0, 8), (5, 14)], "do not overlap"),
        ([], "Got nothing"),
        (["green"], "does not occur there"),
        ([3], "parts of the text in their order"),
    ):
        with pytest.raises(GralisError, match=sentence):
            coarse.drill(0, into=parts)


def test_a_look_may_be_taken_closer_and_closer() -> None:
    model, tok = network("gpt2"), tokenizer(bos=False)
    deep = explain_generation(model, tok, PROMPT, ANSWER).drill("passage 1").drill("passage 1: Paris is red .")
    start = explain_generation(model, tok, PROMPT, ANSWER, features=deep.spans, budget=None)
    assert [span.of(PROMPT) for span in deep.spans[:4]] == ["Paris", "is", "red", "."]
    assert deep.exact
    np.testing.assert_allclose(deep.values, start.values, atol=1e-5)


def test_many_tokens_share_one_process_and_their_values_add_up() -> None:
    """Sampled: 12 features, 9 tokens; the whole answer is the sum of its tokens, and errors are honest."""
    model, tok = network("llama"), tokenizer(bos=False)
    prompt = "the film was good and the book was very bad but it"
    answer = " is red . Paris is the key of Lyon"
    sampled = explain_generation(model, tok, prompt, answer, features="words", budget=200)
    truth = explain_generation(model, tok, prompt, answer, features="words", budget=None)
    assert truth.exact
    assert not sampled.exact
    np.testing.assert_allclose(sampled.values.sum(0), sampled.total.values, atol=1e-5)
    low, high = np.moveaxis(sampled.interval(), -1, 0)
    assert ((low <= truth.values) & (truth.values <= high)).all()
    assert np.median(sampled.half_widths()) < 0.5 * np.abs(truth.values).max()
    alone = np.stack([one.half_widths() for one in sampled.each])
    assert (sampled.half_widths() > alone).all()  # the whole matrix together is more than each row by itself


def test_a_plan_with_rays_gives_phi_of_every_token() -> None:
    model, tok = network("gpt2"), tokenizer(bos=False)
    g = explain_generation(model, tok, PROMPT, " Paris is", plan="shared", budget=1500)
    assert g.cost.n_gradients > 0
    assert g.total.residual.observed.value == pytest.approx(g.total.delta - g.total.values.sum())
    assert "rays" in g.method


@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_bfloat16_knows_its_rounding(family: str) -> None:
    """All coalitions are evaluated, so what is left is rounding: that of the network, not of the log-probabilities."""
    tok = tokenizer(bos=False)
    fine, coarse = network(family), network(family).to(torch.bfloat16)
    for options in ({}, {"alternative": " Lyon is"}):
        truth = explain_generation(fine, tok, PROMPT, ANSWER, **options)  # type: ignore[arg-type]
        rough = explain_generation(coarse, tok, PROMPT, ANSWER, **options)  # type: ignore[arg-type]
        away = np.abs(rough.values - truth.values)
        assert away.max() > 10 * truth.half_widths().max()
        assert (away <= rough.half_widths()).all()
        assert rough.exact
        assert "exact" not in repr(rough)  # its rounding is a part of the numbers that a reader sees
        assert "no error above rounding" not in generation_page.page(rough)
        assert "exact" in repr(truth)
        assert "no error above rounding" in generation_page.page(truth)


def test_sums_tables_and_files(tmp_path: Path) -> None:
    model, tok = network("gpt2"), tokenizer(bos=False)
    g = explain_generation(model, tok, PROMPT, ANSWER, features="sentences")
    assert g.values.shape == (3, 7)
    parts = g.sums("passages")
    assert parts.names == ("passage 1", "passage 2", "passage 3", "passage 4")
    np.testing.assert_allclose(parts.values[:, 0], g.values[:, :2].sum(1))
    with pytest.raises(GralisError, match=r"'Paris is red \.' is larger than the part 'Paris'"):
        g.sums("words")
    with pytest.raises(GralisError, match="'grain' parameter of sums"):
        g.sums("letters")
    slots = fill("passage : {p} question : {q}", {"p": ["Paris is red .", "Lyon is blue ."], "q": "where ?"})
    words = explain_generation(model, tok, slots, " Paris", features="words", budget=None)
    by_slot = words.sums(slots)
    assert by_slot.names == ("p 1", "p 2", "q")
    np.testing.assert_allclose(by_slot.values[0], [words.values[0, a:b].sum() for a, b in ((0, 4), (4, 8), (8, 10))])
    frame = g.to_frame()
    assert list(frame.columns) == ["token", "position", "feature", "value", "stderr", "low", "high"]
    assert len(frame) == 21
    again = load(g.save(tmp_path / "why.zip"))
    assert isinstance(again, Generation)
    np.testing.assert_array_equal(again.values, g.values)
    np.testing.assert_array_equal(again.interval(), g.interval())
    assert repr(again) == repr(g)
    with pytest.raises(GralisError, match="loaded from a file"):
        again.drill(0)
    with pytest.raises(GralisError, match=r"that Generation\.save wrote"):
        load(tmp_path / "nothing.zip")


def test_the_page_has_every_token_and_escapes_the_prompt(tmp_path: Path) -> None:
    tok = tokenizer_of([*WORDS, "<b>"], bos=False)
    model = network("gpt2")
    model.resize_token_embeddings(len(tok))
    prompt = "the key is <b> .\n\nwhere is it ?"
    g = explain_generation(model, tok, prompt, " red key")
    page = g.report(tmp_path / "why.html").read_text(encoding="utf-8")
    assert page.count('type="radio"') == 3
    assert "<b> ." not in page
    assert page.count("&lt;b&gt; .</mark>") == 3
    assert not re.search(r"<script|https?://|src=", page)
    assert "&lt;b&gt;" in g._repr_html_()
    figure = g.plot()
    assert figure.axes[0].images[0].get_array().shape == (2, 2)


@pytest.mark.parametrize(("n_features", "n_more"), [(13, 0), (14, 2)])
def test_the_table_of_a_token_says_what_it_leaves_out(n_features: int, n_more: int) -> None:
    prompt = " ".join(WORDS[:n_features])
    g = explain_generation(network("gpt2"), tokenizer(bos=False), prompt, " red", features="words", budget=100)
    assert generation_page.page(g).count(f'<p class="about">{n_more} more features') == (2 if n_more else 0)


def test_whole_lines_are_blocks_with_their_names_and_words_are_not(tmp_path: Path) -> None:
    model, tok = network("gpt2"), tokenizer(bos=False)
    slots = {"p": ["Paris is red .", "Lyon is blue ."]}
    g = explain_generation(
        model, tok, fill("{p}\n\nquestion : who ?", slots, separator="\n\n"), " key", alternative=" word"
    )
    page = g.report(tmp_path / "why.html").read_text(encoding="utf-8")
    first = page[page.index('id="p0"') : page.index('id="p1"')]
    marks = re.findall(r'<mark class="([^"]*)"[^>]*>(.*?)</mark>', first)
    assert [kind.split()[0] for kind, _ in marks] == ["block", "block"]
    assert all(f"<span>{name}</span>" in inside for name, (_, inside) in zip(g.names, marks, strict=True))
    assert "<h3>whole answer</h3>" in first
    assert "log-probability of the answer minus that of &#x27;word&#x27;" in page
    assert g.exact
    assert "no error above rounding" in first
    words = g.drill(0, into="words").report(tmp_path / "words.html").read_text(encoding="utf-8")
    kinds = re.findall(r'<mark class="([^"]*)"', words[words.index('id="p0"') : words.index('id="p1"')])
    assert ["block" in kind for kind in kinds] == [False] * 4 + [True]


def test_a_notebook_unfolds_the_prompt_of_a_token_and_the_page_is_dark_at_night(tmp_path: Path) -> None:
    model, tok = network("gpt2"), tokenizer(bos=False)
    g = explain_generation(model, tok, PROMPT, ANSWER)
    shown = g._repr_html_()
    unfolded = re.findall(r"<details>.*?</details>", shown, flags=re.DOTALL)
    assert len(unfolded) == len(g.tokens)
    for each, token in zip(unfolded, g.tokens, strict=True):
        assert f">{token.strip()} <small" in each
        assert each.count("display:block") == len(g.names)  # every passage is a block
    first = g[0]
    assert f"{g.names[0]}: {first.values[0]:.3g} " in unfolded[0]
    page = g.report(tmp_path / "why.html").read_text(encoding="utf-8")
    night = page.split("@media screen and (prefers-color-scheme: dark) { :root {", 1)[1].split("}", 1)[0]
    assert "--paper: #15181b" in night
    assert "--ink: #e9e6e1" in night


SENTENCES: list[tuple[dict[str, Any], str]] = [
    ({"prompt": ""}, "The 'prompt' parameter of text.explain_generation must be a text with at least one word"),
    ({"prompt": "the film " * 60}, "context window of this GPT2LMHeadModel holds 96"),
    ({"prompt": "the film " * 47}, "The prompt and the answer have 97 tokens"),
    ({"continuation": "is red"}, "does not tokenise cleanly after the prompt"),
    ({"continuation": " "}, "None, a text with at least one word"),
    ({"continuation": []}, "or a list of token ids"),
    ({"continuation": [7, 4000]}, "a list of token ids below 49"),
    ({"model": network("bert")}, "returned logits of shape"),
    ({"model": nn.Linear(2, 2)}, "without input embeddings"),
    ({"model": network("gpt2").transformer}, "take the class with a language model's head"),
    ({"continuation": " <eos>"}, "an answer with at least one token that is not special. Got ' <eos>'"),
    ({"score": "perplexity"}, "'logprob'"),
    ({"absent": "removed"}, "Keep a fixed part"),
    ({"max_new_tokens": 0, "continuation": None}, "max_new_tokens"),
]


@pytest.mark.parametrize(("change", "sentence"), SENTENCES)
def test_bad_input_is_one_sentence(change: dict[str, Any], sentence: str) -> None:
    base = {"model": network("gpt2"), "tokenizer": tokenizer(bos=False), "prompt": "where is the key"}
    with pytest.raises(GralisError) as raised:
        explain_generation(**{**base, "continuation": " Paris is red", **change})  # type: ignore[arg-type]
    assert sentence in str(raised.value)


def test_a_long_text_says_how_much_memory_it_needs() -> None:
    """Four times the tokens need about four times the bytes, and a backward needs more than a forward."""
    model, tok = network("llama"), tokenizer(bos=False)
    needs = []
    for n_words in (10, 40):
        reading = Reading.of(model, tok, "film " * n_words, "pad", "test")
        answer = Answer((7,), ("good",), "good")
        needs.append(answered(reading, reading.with_features("tokens"), answer, "logprob").row_bytes)
    assert 3 < needs[1][0] / needs[0][0] < 4
    assert needs[0][1] > needs[0][0] > 4 * 10 * 32
