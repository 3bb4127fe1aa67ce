"""Tokenizers that cut letters into bytes, and chat templates that write the token that begins every text."""

from __future__ import annotations

from functools import cache

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
from torch import nn
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

from gralis.text import explain_generation
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
