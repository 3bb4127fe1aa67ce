"""Words that are left out or hidden, on networks that read their answer off the last token or count positions apart.

Every value is compared with the network's own answer to one text alone, without padding.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
import transformers
from torch import nn

from gralis import GralisError, ModelError
from gralis.text import explain, explain_generation, fill
from text_models import network, tokenizer

SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}
TEXT = "the film was good and the book was long"


def classifier(family: str, **options: Any) -> nn.Module:
    """A small classifier of this family with random weights."""
    kinds: dict[str, tuple[Any, Any]] = {
        "gpt2": (transformers.GPT2ForSequenceClassification, transformers.GPT2Config),
        "llama": (transformers.LlamaForSequenceClassification, transformers.LlamaConfig),
        "roberta": (transformers.RobertaForSequenceClassification, transformers.RobertaConfig),
        "mpnet": (transformers.MPNetForSequenceClassification, transformers.MPNetConfig),
        "t5": (transformers.T5ForSequenceClassification, transformers.T5Config),
        "xlnet": (transformers.XLNetForSequenceClassification, transformers.XLNetConfig),
    }
    sizes = {
        "gpt2": {"n_embd": 32, "n_layer": 2, "n_head": 4},
        "t5": {"d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4, "decoder_start_token_id": 0},
        "xlnet": {"d_model": 32, "n_layer": 2, "n_head": 4, "d_inner": 48},
    }.get(family, SMALL)
    made, config = kinds[family]
    with torch.random.fork_rng():
        torch.manual_seed(0)
        found = made(config(vocab_size=len(tokenizer()), num_labels=3, **{"eos_token_id": 5, **sizes, **options}))
        for parameter in found.parameters():
            parameter.data.mul_(8.0) if parameter.ndim > 1 else None
    return found.eval()  # type: ignore[no-any-return]


def alone(model: nn.Module, **inputs: Any) -> float:
    with torch.no_grad():
        return float(model(**{name: torch.tensor([row]) for name, row in inputs.items()}).logits[0, 1])


@pytest.mark.parametrize("family", ["gpt2", "llama"])
@pytest.mark.parametrize("padding", [0, 4])
def test_a_shorter_text_ends_where_it_ends(family: str, padding: int) -> None:
    """These classifiers read the last token that is no padding: a wrong padding token would be read as a word."""
    model, tok = classifier(family, pad_token_id=padding), tokenizer(bos=False)
    prompt = fill("who said : {text}", {"text": TEXT})
    e = explain(model, tok, prompt, target=1, features="words", absent="removed")
    assert e.f_baseline == pytest.approx(alone(model, input_ids=tok("who said :")["input_ids"]), abs=1e-4)
    assert e.f_x == pytest.approx(alone(model, input_ids=tok(prompt.text)["input_ids"]), abs=1e-4)
    rows = e.ledger.require_rows("the test")
    words = TEXT.split()
    for mask, value in list(zip(rows.masks, rows.value, strict=True))[:40]:
        kept = " ".join(["who said :", *(word for word, there in zip(words, mask, strict=True) if there)])
        by_hand = alone(model, input_ids=tok(kept)["input_ids"])
        assert value + e.f_baseline == pytest.approx(by_hand, abs=1e-4)


@pytest.mark.parametrize("family", ["roberta", "mpnet"])
def test_hidden_words_leave_the_positions_of_the_others(family: str) -> None:
    """Positions begin behind the padding index in these networks."""
    model, tok = classifier(family, pad_token_id=1, max_position_embeddings=66), tokenizer()
    e = explain(model, tok, TEXT, target=1, absent="hidden")
    ids = tok(TEXT)["input_ids"]
    assert e.f_x == pytest.approx(alone(model, input_ids=ids), abs=1e-4)
    mask = [1, *[0] * (len(ids) - 2), 1]
    assert e.f_baseline == pytest.approx(alone(model, input_ids=ids, attention_mask=mask), abs=1e-4)


def test_the_context_window_of_roberta_ends_before_its_last_position() -> None:
    model, tok = classifier("roberta", pad_token_id=1, max_position_embeddings=66), tokenizer()
    explain(model, tok, "film " * 62, target=1, features=["film film"], budget=64)  # 64 tokens
    with pytest.raises(GralisError, match=r"has 65 tokens.*holds 64"):
        explain(model, tok, "film " * 63, target=1)


@pytest.mark.parametrize("family", ["gpt2", "llama", "t5"])
def test_a_model_that_sees_hidden_words_is_refused(family: str) -> None:
    model, tok = classifier(family, pad_token_id=0), tokenizer(bos=False)
    prompt = fill("who said : {text}" + " <eos>" * (family == "t5"), {"text": TEXT})
    with pytest.raises(GralisError, match="sees tokens that the attention mask hides"):
        explain(model, tok, prompt, target=1, absent="hidden")
    if family != "t5":  # whose decoder sees every word
        closed = fill("who said : {text} answer", {"text": TEXT})
        assert explain(model, tok, closed, target=1, absent="hidden").exact


@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_an_answer_is_read_off_the_last_token_of_its_prompt(family: str) -> None:
    model, tok, slots = network(family), tokenizer(bos=False), {"p": "the film .", "q": "who ?"}
    with pytest.raises(GralisError, match="fixed text behind the features helps"):
        explain_generation(model, tok, fill("passage : {p} question : {q}", slots), " Paris", absent="hidden")
    explain_generation(model, tok, fill("passage : {p} question : {q} answer :", slots), " Paris", absent="hidden")


@pytest.mark.parametrize(("family", "padding"), [("gpt2", None), ("xlnet", 0)])
def test_a_model_that_sees_padding_is_refused(family: str, padding: int | None) -> None:
    model, tok = classifier(family, pad_token_id=padding), tokenizer(bos=False)
    with pytest.raises(GralisError, match=r"sees the padding of shorter texts.*config\.pad_token_id"):
        explain(model, tok, fill("who said : {text}", {"text": TEXT}), target=1, absent="removed")


def test_a_network_that_refuses_embeddings_says_what_helps() -> None:
    model, tok = classifier("t5", pad_token_id=0), tokenizer()
    with pytest.raises(ModelError, match=r"takes no input embeddings.*absent='removed'"):
        explain(model, tok, f"{TEXT} <eos>", target=1)


def test_a_model_in_train_mode_writes_the_same_answer() -> None:
    model, tok = network("gpt2"), tokenizer(bos=False)
    calm = explain_generation(model, tok, TEXT, max_new_tokens=6).answer
    model.train()
    with pytest.warns(UserWarning, match="was in train mode"):
        answers = {explain_generation(model, tok, TEXT, max_new_tokens=6).answer for _ in range(3)}
    assert answers == {calm}
    assert model.training
