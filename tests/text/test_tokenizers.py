"""Tokenizers that cut letters into bytes, and chat templates that write the token that begins every text."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
from torch import nn
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    GPT2Config,
    GPT2LMHeadModel,
    PreTrainedTokenizerFast,
)

from gralis import GralisError
from gralis.text import explain, explain_generation
from gralis.text.encoded import encode

TURNS = [{"role": "user", "content": "the key"}, {"role": "user", "content": "is red"}]


@cache
def bytes_tokenizer(begins: bool = False) -> PreTrainedTokenizerFast:
    """One token per byte, as GPT-2 writes what it has no word for; perhaps with <s> before every text."""
    vocabulary = {sign: n for n, sign in enumerate(["<s>", "</s>", *sorted(pre_tokenizers.ByteLevel.alphabet())])}
    raw = Tokenizer(models.BPE(vocabulary, []))
    raw.add_special_tokens(["<s>", "</s>"])
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    if begins:
        raw.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
    made = PreTrainedTokenizerFast(tokenizer_object=raw, bos_token="<s>", eos_token="</s>")
    made.chat_template = "<s>{% for m in messages %}[{{ m['role'] }}] {{ m['content'] }}\n{% endfor %}"
    return made


@cache
def writer() -> nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        config = GPT2Config(vocab_size=len(bytes_tokenizer()), n_positions=64, n_embd=16, n_layer=1, n_head=2)
        made: nn.Module = GPT2LMHeadModel(config)
        return made.eval()


@cache
def reader() -> nn.Module:
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    with torch.random.fork_rng():
        torch.manual_seed(0)
        made: nn.Module = BertForSequenceClassification(BertConfig(vocab_size=len(bytes_tokenizer()), **sizes))
    for parameter in made.parameters():
        parameter.data.mul_(8.0) if parameter.ndim > 1 else None
    return made.eval()


def test_tokens_that_are_bytes_of_one_letter_are_one_feature() -> None:
    tok = bytes_tokenizer()
    assert len(tok("é😀.")["input_ids"]) == 2 + 4 + 1
    g = explain_generation(writer(), tok, "é😀.", " a", features="tokens")
    assert g.names == ("é", "😀", ".")
    assert [span.of(g.text) for span in g.spans] == ["é", "😀", "."]
    assert g.total.values.sum() == pytest.approx(g.total.delta, abs=1e-5)


def test_the_token_that_begins_a_text_stands_there_once() -> None:
    tok = bytes_tokenizer(begins=True)
    wanted = tok.apply_chat_template(TURNS, tokenize=True, return_dict=False)
    assert wanted[0] == 0
    assert wanted[1] != 0
    text = tok.apply_chat_template(TURNS, tokenize=False)
    assert tok(text)["input_ids"][:2] == [0, 0]  # what happens without care
    assert list(encode(tok, text, "text.explain").ids) == wanted
    assert encode(tok, "red", "text.explain").ids[0] == 0
    g = explain_generation(writer(), tok, TURNS, " ok")
    ids = torch.tensor([[*wanted, *tok(" ok", add_special_tokens=False)["input_ids"]]])
    with torch.no_grad():
        logp = torch.log_softmax(writer()(input_ids=ids).logits[0, len(wanted) - 1 : -1], -1)
    expected = logp.gather(1, ids[0, len(wanted) :, None]).sum().item()
    assert g.total.f_x == pytest.approx(expected, abs=1e-4)


def test_a_special_token_that_the_text_repeats_itself_stays() -> None:
    ids = encode(bytes_tokenizer(), "<s><s>a</s></s>", "text.explain").ids
    assert [ids.count(0), ids.count(1)] == [2, 2]


def test_a_blank_token_has_a_name_that_can_be_seen() -> None:
    g = explain_generation(writer(), bytes_tokenizer(), "a b\n", " a", features="tokens")
    assert g.names == ("a", "␣", "b", "⏎")


def test_a_closer_look_ends_at_the_tokens() -> None:
    text = "the key.\n\nred é"
    first = explain_generation(writer(), bytes_tokenizer(), text, " a", features="passages")
    words = first.drill("passage 2", into="words")
    assert words.names[1:] == ("passage 2: red", "passage 2: é")
    letters = words.drill("passage 2: red")
    assert [span.of(text) for span in letters.spans] == ["the key.", "r", "e", "d", " ", "é"]
    assert letters.total.values.sum() == pytest.approx(letters.total.delta, abs=1e-5)
    blanks = first.drill("passage 2", into="tokens")
    assert [span.of(text) for span in blanks.spans] == ["the key.", "r", "e", "d", " ", "é"]
    with pytest.raises(GralisError, match="'passage 2: é' cannot be split any further; it is a single token"):
        words.drill("passage 2: é")
    with pytest.raises(GralisError, match="it is a single passage"):
        first.drill("passage 2", into="passages")


@pytest.mark.parametrize("into", ["words", ["he", "di"]])
def test_a_closer_look_gives_the_numbers_of_its_parts_from_the_start(into: str | list[str]) -> None:
    """Blanks are tokens here, and given parts leave letters out: what is known of the whole must fit to its parts."""
    text = "the key.\n\nhe did it"
    first = explain_generation(writer(), bytes_tokenizer(), text, " a", features="passages")
    closer = first.drill("passage 2", into=into)
    start = explain_generation(writer(), bytes_tokenizer(), text, " a", features=list(closer.spans))
    assert closer.exact
    assert start.exact
    np.testing.assert_allclose(closer.values, start.values, atol=1e-6)
    assert closer.total.values.sum() == pytest.approx(closer.total.delta, abs=1e-5)
    words = explain(reader(), bytes_tokenizer(), text, target=1, features="passages", plan="values")
    part = words.drill("passage 2", into=into)
    again = explain(reader(), bytes_tokenizer(), text, target=1, features=list(part.spans), plan="values")
    np.testing.assert_allclose(part.values, again.values, atol=1e-6)
