"""text.explain: the rays of words are those of their embeddings, at any grain, and special tokens take no part."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import gralis
from gralis import GralisError, Uniform
from gralis.text import Prompt, Span, explain, explain_generation, fill, split
from text_models import network, tokenizer

TEXT = "the film was not very good"


def test_a_ray_of_words_is_the_ray_of_their_embeddings() -> None:
    """All coalitions, against the ordinary explanation at the embedding layer, whose special tokens do not move."""
    model, tok = network("bert"), tokenizer()
    ids = tok(TEXT, return_tensors="pt")["input_ids"][0]
    inner = list(range(1, len(ids) - 1))
    baseline = ids.clone()
    baseline[inner] = tok.mask_token_id
    ours = explain(model, tok, TEXT, target=1, plan="exhaustive", budget=None)
    theirs = gralis.explain(
        lambda z: model(inputs_embeds=z).logits,
        model.get_input_embeddings()(ids).detach(),
        baseline=model.get_input_embeddings()(baseline).detach(),
        features=gralis.features.tokens(ids),
        target=1,
        plan="exhaustive",
        budget=None,
    )
    assert isinstance(ours, gralis.Explanation)
    assert ours.f_x == pytest.approx(theirs.f_x, abs=1e-6)
    np.testing.assert_allclose(ours.squared_distance[0], theirs.squared_distance[0][inner], rtol=1e-5)
    np.testing.assert_allclose(ours.values, theirs.values[inner], atol=2e-6)
    assert np.abs(ours.values).max() > 1e-3
    assert list(ours.names) == TEXT.split()


@pytest.mark.parametrize("family", ["bert", "distilbert"])
@pytest.mark.parametrize("absent", ["auto", "pad", "unk", "mean", "zero", 7, np.int64(7)])
def test_the_ends_are_the_outputs_of_the_two_texts(family: str, absent: Any) -> None:
    model, tok = network(family), tokenizer()
    e = explain(model, tok, TEXT, target=2, absent=absent, budget=200)
    ids = tok(TEXT, return_tensors="pt")["input_ids"]
    table = model.get_input_embeddings().weight.detach()
    one = {
        "mean": table.mean(0),
        "zero": torch.zeros(32),
        "auto": table[4],
        "pad": table[0],
        "unk": table[1],
        7: table[7],
    }
    away = table[ids].clone()
    away[0, 1:-1] = one[absent]
    with torch.no_grad():
        assert e.f_x == pytest.approx(model(input_ids=ids).logits[0, 2].item(), abs=1e-5)
        assert e.f_baseline == pytest.approx(model(inputs_embeds=away).logits[0, 2].item(), abs=1e-5)


@pytest.mark.parametrize(
    ("absent", "words"),
    [("auto", "the token [MASK]"), (None, "the token [MASK]"), ("eos", "the token <eos>"), (7, "the token a "),
     ("mean", "the mean embedding"), ("zero", "zeros in the place"), ("removed", "without the features"),
     ("hidden", "the attention mask hides"), ({"film": "book"}, "other texts replace the features")],
)  # fmt: skip
def test_a_result_says_what_an_absent_word_was(absent: Any, words: str) -> None:
    e = explain(network("bert"), tokenizer(), "the film was good", target=0, absent=absent, budget=64)
    assert words in e.provenance["baseline"]
    g = explain_generation(
        network("gpt2"), tokenizer(bos=False), fill("the {a} was {b} .", {"a": "film", "b": "good"}), " red",
        absent={"a": "book"} if isinstance(absent, dict) else absent,
    )  # fmt: skip
    assert words in g.total.provenance["baseline"]


@pytest.mark.parametrize("absent", ["removed", "hidden"])
def test_removed_words_are_the_shorter_text_and_hidden_ones_keep_their_places(absent: str) -> None:
    model, tok = network("bert"), tokenizer()
    e = explain(model, tok, "the film was good", target=0, absent=absent, budget=64)
    assert e.exact
    assert e.method == "Shapley values"
    rows = e.ledger.kept_rows
    words = np.array(["the", "film", "was", "good"])
    for mask, value in zip(rows.masks, rows.value, strict=True):
        with torch.no_grad():
            if absent == "removed":
                f = model(**tok(" ".join(words[mask]), return_tensors="pt")).logits[0, 0].item()
            else:
                encoded = tok("the film was good", return_tensors="pt")
                encoded["attention_mask"] = torch.tensor([[1, *mask.tolist(), 1]]).long()
                f = model(**encoded).logits[0, 0].item()
        assert f - e.f_baseline == pytest.approx(value, abs=1e-5)


def test_a_replacement_of_as_many_tokens_has_rays_and_another_length_has_values() -> None:
    model, tok = network("bert"), tokenizer()
    swap = explain(model, tok, TEXT, target=0, features=["good"], absent={"good": "bad"}, kernel=Uniform())
    with torch.no_grad():
        other = model(**tok("the film was not very bad", return_tensors="pt")).logits[0, 0].item()
        longer = model(**tok("the film was not very bad and long", return_tensors="pt")).logits[0, 0].item()
    assert swap.f_baseline == pytest.approx(other, abs=1e-5)
    assert swap.values[0] == pytest.approx(swap.delta, abs=1e-3)
    assert swap.cost.n_gradients > 0
    long = explain(model, tok, TEXT, target=0, features=["good"], absent={"good": "bad and long"})
    assert long.f_baseline == pytest.approx(longer, abs=1e-5)
    assert long.cost.n_gradients == 0


def test_grains_nest_and_repeated_words_carry_their_position() -> None:
    text = "the film was good. the book was bad!\n\nwho said it?"
    assert [s.of(text) for s in split(text, "sentences")] == ["the film was good.", "the book was bad!", "who said it?"]
    assert [s.of(text) for s in split(text, "passages")] == ["the film was good. the book was bad!", "who said it?"]
    windows = text.replace("\n", "\r\n")
    for grain in ("sentences", "passages"):
        assert [s.of(windows) for s in split(windows, grain)] == [s.of(text) for s in split(text, grain)]
    model, tok = network("bert"), tokenizer()
    names = explain(model, tok, text, target=0, budget=200).names
    assert list(names)[:5] == ["the [0]", "film", "was [2]", "good.", "the [4]"]
    tokens = explain(model, tok, text, target=0, features="tokens", budget=400)
    assert tokens.n_features == 14  # every word and every mark, and neither [CLS] nor [SEP]
    assert not {"[CLS]", "[SEP]"} & set(tokens.names)


def test_slots_of_a_template_and_spans_are_features_and_the_rest_is_fixed() -> None:
    prompt = fill(
        "passage : {context} question : {ask}", {"context": ["Paris is red .", "Lyon is blue ."], "ask": "where ?"}
    )
    model, tok = network("distilbert"), tokenizer()
    e = explain(model, tok, prompt, target=1, absent="removed")
    assert list(e.names) == ["context 1", "context 2", "ask"]
    with torch.no_grad():
        bare = model(**tok("passage : question :", return_tensors="pt")).logits[0, 1].item()
    assert e.f_baseline == pytest.approx(bare, abs=1e-5)
    spans = explain(model, tok, "the film was good", target=1, features={"what": (4, 8), "how": (13, 17)})
    assert list(spans.names) == ["what", "how"]


def test_a_special_token_in_the_text_is_no_feature() -> None:
    model, tok = network("bert"), tokenizer()
    e = explain(model, tok, "the film was [MASK] and good", target=0, budget=200)
    assert list(e.names) == ["the", "film", "was", "and", "good"]


def test_the_class_has_the_name_that_the_configuration_gives_it(tmp_path) -> None:
    model, tok = network("bert"), tokenizer()
    assert explain(model, tok, TEXT, target=1, budget=128).provenance["class"] is None  # LABEL_1 is no name
    model.config.id2label = {0: "bad", 1: "good", 2: "neither"}
    found = explain(model, tok, TEXT, target=[1, 2], budget=256)
    assert [each.provenance["class"] for each in found] == ["good", "neither"]
    assert "<title>Why good?</title>" in found[0].report(tmp_path / "page.html").read_text(encoding="utf-8")


def test_labels_of_the_configuration_are_targets_and_outputs_may_be_tuples_or_dicts() -> None:
    model, tok = network("bert"), tokenizer()

    class As(nn.Module):
        def __init__(self, form: type) -> None:
            super().__init__()
            self.inner, self.form = model, form

        def get_input_embeddings(self) -> nn.Module:
            return model.get_input_embeddings()

        def forward(self, inputs_embeds: Any = None, attention_mask: Any = None) -> Any:
            logits = self.inner(inputs_embeds=inputs_embeds, attention_mask=attention_mask).logits
            return (logits, logits + 1) if self.form is tuple else {"loss": None, "logits": logits}

    plain = explain(model, tok, TEXT, target="LABEL_1", budget=128)
    for form in (tuple, dict):
        np.testing.assert_array_equal(explain(As(form).eval(), tok, TEXT, target=1, budget=128).values, plain.values)
    assert explain(model, tok, TEXT, target="all", budget=384).values.shape == (3, 6)
    both = explain(model, tok, TEXT, target=[0, "LABEL_1"], budget=256)
    with torch.no_grad():
        logits = model(**tok(TEXT, return_tensors="pt")).logits[0]
    np.testing.assert_allclose(both.f_x, logits[:2], atol=1e-5)
    assert explain(model, tok, TEXT, target="predicted", budget=64).f_x == pytest.approx(logits.max().item(), abs=1e-5)


def test_bfloat16_is_near_float32() -> None:
    model, tok = network("bert"), tokenizer()
    fine = explain(model, tok, TEXT, target=1, absent="zero")
    coarse = explain(network("bert").to(torch.bfloat16), tok, TEXT, target=1, absent="zero")
    scale = np.abs(fine.values).max()
    assert np.abs(coarse.values - fine.values).max() < 0.1 * scale
    assert np.abs(coarse.values - fine.values).max() > 0


def test_the_sentence_itself_is_coloured() -> None:
    model, tok = network("bert"), tokenizer()
    e = explain(model, tok, 'the film was [MASK] "good"', target=1, features=["film", '"good"'], budget=128)
    html = e.token_html()
    assert html.count("<span") == 2
    assert "[MASK] <span" in html
    assert "&quot;good&quot;</span>" in html
    assert ">film</span> was [MASK]" in html
    assert html in e._repr_html_()


SENTENCES: list[tuple[dict[str, Any], str]] = [
    ({"text": ""}, "The 'text' parameter of text.explain must be a text with at least one word"),
    ({"text": "   "}, "at least one word"),
    ({"text": "[SEP]"}, "at least one token"),
    ({"text": "the film " * 40}, "context window of this BertForSequenceClassification holds 64"),
    ({"tokenizer": lambda text, **_: {"input_ids": [1]}}, "without offsets"),
    ({"tokenizer": 3}, "a transformers tokenizer"),
    ({"model": nn.Linear(3, 2)}, "a Linear without input embeddings"),
    ({"model": len}, "transformers model with get_input_embeddings"),
    ({"features": "letters"}, "one of 'tokens', 'words', 'sentences', 'passages'"),
    ({"features": [(3, 4)]}, "covers no token"),
    ({"features": [(3, 3)]}, "covers no token"),
    ({"features": ["film", "the"]}, "does not occur there"),
    ({"features": [(0, 8), (4, 12)]}, "spans that do not overlap"),
    ({"features": 3}, "a grain, or a list of spans"),
    ({"features": np.array([[0, 900]])}, "beyond a text of 26 characters"),
    ({"features": {"what": 4}}, "(start, stop) or (start, stop, name)"),
    ({"text": "the film [SEP] was good", "features": "sentences"}, "the special token '[SEP]' in its middle"),
    ({"absent": "nothing"}, "'removed', 'hidden'"),
    ({"absent": 10_000}, "ids are below"),
    ({"absent": "bos"}, "this tokenizer has no bos token"),
    ({"absent": {"dog": "cat"}}, "a dict from names of features"),
    ({"absent": "removed", "plan": "shared"}, "'values' or 'endpoint'"),
    ({"target": "GOOD"}, "one of the labels 'LABEL_0'"),
    ({"target": [0, "GOOD"]}, "one of the labels 'LABEL_0'"),
    ({"target": None}, "choose one with target=k (0..2)"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "sentence"), SENTENCES)
def test_bad_input_is_one_sentence(change: dict[str, Any], sentence: str) -> None:
    arguments: dict[str, Any] = {
        "model": network("bert"),
        "tokenizer": tokenizer(),
        "text": TEXT,
        "target": 1,
        **change,
    }
    with pytest.raises(GralisError) as raised:
        explain(**arguments)
    assert sentence in str(raised.value)


def test_a_template_and_a_conversation_are_checked() -> None:
    with pytest.raises(GralisError, match="a text with slots in braces"):
        fill("no slots here", {})
    with pytest.raises(GralisError, match="each slot once"):
        fill("{a} {b}", {"a": "x"})
    with pytest.raises(GralisError, match="none of them empty"):
        fill("{a}", {"a": [" "]})
    with pytest.raises(GralisError, match="no chat template"):
        explain(network("bert"), tokenizer(), [{"role": "user", "content": "good"}], target=1)
    with pytest.raises(GralisError, match="beyond a text of 3 characters"):
        Prompt("abc", (Span(2, 9, "x"),))
    with pytest.raises(GralisError, match="none of them empty"):
        fill("{a}", {"a": 3})  # type: ignore[dict-item]
    with pytest.raises(GralisError, match=r"'separator' parameter of text\.fill must be a text"):
        fill("{a} {b}", {"a": ["b", "c"], "b": "x"}, separator=3)  # type: ignore[arg-type]
