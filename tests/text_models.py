"""Small transformers and a tokenizer of whole words, made without any download; the tests of text share them."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from tokenizers import Tokenizer, pre_tokenizers, processors
from tokenizers.models import WordLevel
from torch import nn
from transformers import PreTrainedTokenizerFast

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "<eos>"]
WORDS = " ".join(
    [
        "the a film book was is good bad not very long short and but it she he said code word red blue green",
        "answer key question where who Paris Lyon capital of France . , ? ! : in passage one two three",
    ]
).split()


def tokenizer_of(words: list[str], *, bos: bool = True, chat: bool = False) -> PreTrainedTokenizerFast:
    """A tokenizer with one token per word or punctuation mark, and [CLS] ... [SEP] or nothing around a text."""
    vocabulary = {word: number for number, word in enumerate(dict.fromkeys([*SPECIAL, *words]))}
    raw = Tokenizer(WordLevel(vocabulary, unk_token="[UNK]"))
    raw.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Punctuation()])
    if bos:
        ends = [("[CLS]", vocabulary["[CLS]"]), ("[SEP]", vocabulary["[SEP]"])]
        raw.post_processor = processors.TemplateProcessing(
            single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=ends
        )
    fast = PreTrainedTokenizerFast(
        tokenizer_object=raw,
        unk_token="[UNK]",
        pad_token="[PAD]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        eos_token="<eos>",
    )
    if chat:
        fast.chat_template = "{% for m in messages %}<eos>{{ m['role'] }} : {{ m['content'] }}\n{% endfor %}answer :"
    return fast


@cache
def tokenizer(bos: bool = True) -> PreTrainedTokenizerFast:
    return tokenizer_of(WORDS, bos=bos)


def network(family: str, n_labels: int = 3) -> nn.Module:
    """A small network of this family with random weights, in eval mode."""
    import transformers as t

    size, pad, eos = len(tokenizer()), 0, 5
    common: dict[str, Any] = {"vocab_size": size, "pad_token_id": pad, "num_labels": n_labels}
    small: dict[str, Any] = {
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 48,
    }
    with torch.random.fork_rng():
        torch.manual_seed(0)
        made: nn.Module
        if family == "bert":
            made = t.BertForSequenceClassification(t.BertConfig(**common, **small, max_position_embeddings=64))
        elif family == "distilbert":
            config = t.DistilBertConfig(
                **common, dim=32, n_layers=2, n_heads=4, hidden_dim=48, max_position_embeddings=64
            )
            made = t.DistilBertForSequenceClassification(config)
        elif family == "gpt2":
            config = t.GPT2Config(
                vocab_size=size, n_positions=96, n_embd=32, n_layer=2, n_head=4, bos_token_id=eos, eos_token_id=eos
            )
            made = t.GPT2LMHeadModel(config)
        elif family == "llama":
            config = t.LlamaConfig(
                **common, **small, num_key_value_heads=2, max_position_embeddings=96, bos_token_id=eos, eos_token_id=eos
            )
            made = t.LlamaForCausalLM(config)
        elif family == "t5":
            config = t.T5Config(
                vocab_size=size, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4, pad_token_id=pad,
                eos_token_id=eos, decoder_start_token_id=pad,
            )  # fmt: skip
            made = t.T5ForConditionalGeneration(config)
        else:
            raise ValueError(family)
        for parameter in made.parameters():  # larger weights than at the start of training, so that something happens
            parameter.data.mul_(8.0) if parameter.ndim > 1 else None
    return made.eval()


def vision(registers: int) -> nn.Module:
    """A small vision transformer for pictures of 16 x 24 pixels in patches of 8: 2 x 3 patches."""
    import transformers

    small = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 32}
    sizes = {**small, "image_size": (16, 24), "patch_size": 8, "num_labels": 4}
    with torch.random.fork_rng():
        torch.manual_seed(0)
        if registers:
            config = transformers.Dinov2WithRegistersConfig(
                **{**sizes, "image_size": 24}, num_register_tokens=registers, mlp_ratio=2
            )
            return transformers.Dinov2WithRegistersForImageClassification(config).eval()  # type: ignore[no-any-return]
        return transformers.ViTForImageClassification(transformers.ViTConfig(**sizes)).eval()  # type: ignore[no-any-return]
