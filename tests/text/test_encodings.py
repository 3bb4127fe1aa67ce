"""What a tokenizer returns goes into explain as it is: layer, baseline, tokens and the batch axis are found."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import gralis
from gralis import GralisError
from text_models import network, tokenizer

TEXT = "the film was not the book"
TARGETS: dict[str, Any] = {"bert": 1, "distilbert": 2, "gpt2": (5, 7), "llama": (5, 7), "t5": (1, 7)}


def encoded(family: str) -> Any:
    x = tokenizer(bos=family in ("bert", "distilbert"))(TEXT, return_tensors="pt")
    if family == "t5":
        x["decoder_input_ids"] = torch.tensor([[0, 9]])
    if family == "distilbert":
        x.pop("token_type_ids", None)
    return x


@pytest.mark.parametrize("family", sorted(TARGETS))
def test_an_encoding_is_explained_as_it_is(family: str) -> None:
    model, x, target = network(family), encoded(family), TARGETS[family]
    e = gralis.explain(model, x, target=target, budget=200)
    assert list(e.names) == [
        "the [1]" if family in ("bert", "distilbert") else "the [0]",
        "film",
        "was",
        "not",
        e.names[4],
        "book",
    ]
    place = target if isinstance(target, tuple) else (target,)
    with torch.no_grad():
        logits = model(**x).logits[0]
        assert e.f_x == pytest.approx(logits[place].item(), abs=1e-4)
        away = x["input_ids"].clone()
        inner = slice(1, -1) if family in ("bert", "distilbert") else slice(None)
        away[0, inner] = model.config.pad_token_id if model.config.pad_token_id is not None else 5
        assert e.f_baseline == pytest.approx(model(**{**x, "input_ids": away}).logits[0][place].item(), abs=1e-4)
    assert any("its tokens are the features" in sentence for sentence in e.provenance["choices"])


def test_the_rays_are_those_of_the_embedding_layer() -> None:
    model, x = network("bert"), encoded("bert")
    ours = gralis.explain(model, x, target=1, plan="exhaustive", budget=None)
    away = x["input_ids"].clone()
    away[0, 1:-1] = 0
    layered = gralis.explain(
        model,
        x["input_ids"][0],
        baseline=away[0],
        layer="bert.embeddings.word_embeddings",
        features=gralis.features.tokens(x["input_ids"][0]),
        target=1,
        plan="exhaustive",
        budget=None,
    )
    np.testing.assert_allclose(ours.values, layered.values[1:-1], atol=1e-5)


def test_padding_on_either_side_changes_nothing() -> None:
    model, tok = network("gpt2"), tokenizer(bos=False)
    plain = gralis.explain(model, tok(TEXT, return_tensors="pt"), target=(5, 7), budget=128)
    for side, target in (("right", (5, 7)), ("left", (9, 7))):
        padded = tok(TEXT, return_tensors="pt", padding="max_length", max_length=10, padding_side=side)
        e = gralis.explain(model, padded, target=target, budget=128)
        assert [name.split()[0] for name in e.names] == [name.split()[0] for name in plain.names]
        np.testing.assert_allclose(e.values, plain.values, atol=1e-4)


def test_plain_dicts_labels_and_baselines() -> None:
    model, x = network("bert"), encoded("bert")
    ids = x["input_ids"][0]
    first = gralis.explain(model, {"input_ids": ids}, target=0, budget=128)  # no batch axis, and no encoding behind it
    assert first.n_features == 8  # without the tokenizer nobody knows that [CLS] and [SEP] are special
    halves = gralis.explain(model, x, target=0, features=[0, 0, 0, 0, 1, 1, 1, 1], budget=128)
    assert list(halves.names) == ["group 0", "group 1"]
    table = model.get_input_embeddings().weight.detach()
    for baseline, one in (
        ("mean", table.mean(0)),
        ("zero", torch.zeros(32)),
        (7, table[7]),
        (torch.full((8,), 9), table[9]),
    ):
        e = gralis.explain(model, x, target=0, baseline=baseline, budget=128)
        away = table[ids].clone()
        away[1:-1] = one
        with torch.no_grad():
            expected = model(inputs_embeds=away[None], attention_mask=x["attention_mask"]).logits[0, 0].item()
        assert e.f_baseline == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("form", ["tuple", "dict"])
def test_outputs_may_be_tuples_or_plain_dicts(form: str) -> None:
    model, x = network("bert"), encoded("bert")
    plain = gralis.explain(model, x, target=1, budget=128)

    class Other(type(model)):  # type: ignore[misc]
        def forward(self, input_ids: Any = None, attention_mask: Any = None, inputs_embeds: Any = None) -> Any:
            logits = super().forward(input_ids, attention_mask, inputs_embeds=inputs_embeds).logits
            return (logits,) if form == "tuple" else {"logits": logits}

    other = Other(model.config).eval()
    other.load_state_dict(model.state_dict())
    np.testing.assert_allclose(gralis.explain(other, x, target=1, budget=128).values, plain.values, atol=1e-6)


def test_several_texts_and_wrong_options_are_refused() -> None:
    model, tok = network("bert"), tokenizer()
    two = tok([TEXT, TEXT], return_tensors="pt")
    with pytest.raises(GralisError, match="the encoding of one text"):
        gralis.explain(model, two, target=1)
    with pytest.raises(GralisError, match="special tokens only"):
        gralis.explain(model, tok("", return_tensors="pt"), target=1)
    with pytest.raises(GralisError, match="one label for each of the 8 tokens"):
        gralis.explain(model, encoded("bert"), target=1, features=[0, 1])
    with pytest.raises(GralisError, match="a token id, or ids or embeddings"):
        gralis.explain(model, encoded("bert"), target=1, baseline="noise")


def test_a_layer_may_still_be_named() -> None:
    model, x = network("bert"), encoded("bert")
    x = {"input_ids": x["input_ids"], "attention_mask": x["attention_mask"]}
    away = {"input_ids": torch.zeros_like(x["input_ids"][0]), "attention_mask": x["attention_mask"][0]}
    e = gralis.explain(
        model,
        x,
        baseline=away,
        layer="bert.embeddings",
        target=1,
        features=gralis.features.tokens(range(8)),
        budget=128,
    )
    assert e.n_features == 8


def test_a_dict_baseline_may_name_one_token_for_all_places() -> None:
    model, x = network("bert"), encoded("bert")
    mask = {"input_ids": 4, "attention_mask": 1}
    assert np.array_equal(
        gralis.explain(model, x, target=1, baseline=mask, budget=100).values,
        gralis.explain(model, x, target=1, baseline=4, budget=100).values,
    )
