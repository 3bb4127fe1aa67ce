"""Special tokens where a text has them itself, where a decoder begins with them, and where one token has two roles."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
from torch import nn
from transformers import PreTrainedTokenizerFast

import gralis
from gralis import GralisError
from gralis.text import explain, explain_generation, fill, load, replay
from gralis.text.encoded import encode
from text_models import network, tokenizer

TURNS = [{"role": "user", "content": "the key is red"}, {"role": "user", "content": "where is it ?"}]
SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}


def scores(model: nn.Module, ids: list[int], answer: list[int]) -> np.ndarray:
    """log p of every token of an answer to these ids."""
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([ids + answer])).logits[0, len(ids) - 1 : -1]
    return torch.log_softmax(logits, -1)[torch.arange(len(answer)), torch.tensor(answer)].numpy()


def marked() -> PreTrainedTokenizerFast:
    """A tokenizer whose chat template ends with a special token, after which the assistant answers."""
    tok = PreTrainedTokenizerFast(tokenizer_object=tokenizer(bos=False).backend_tokenizer, pad_token="[PAD]")
    tok.add_special_tokens({"cls_token": "[CLS]", "sep_token": "[SEP]", "eos_token": "<eos>"})
    tok.chat_template = "{% for m in messages %}{{ m['content'] }} [SEP] {% endfor %}[CLS]"
    return tok


def test_a_role_mark_at_the_end_of_a_chat_belongs_to_the_prompt() -> None:
    model, tok = network("llama"), marked()
    ids, answer = tok(tok.apply_chat_template(TURNS, tokenize=False))["input_ids"], tok("red")["input_ids"]
    assert tok.convert_ids_to_tokens(ids)[-2:] == ["[SEP]", "[CLS]"]
    g = explain_generation(model, tok, TURNS, " red")
    assert g.tokens == ("red",)
    np.testing.assert_allclose(g.scores, scores(model, ids, answer), atol=1e-4)
    written = explain_generation(model, tok, TURNS, max_new_tokens=1)
    with torch.no_grad():
        assert tok.decode([int(model(input_ids=torch.tensor([ids])).logits[0, -1].argmax())]) == written.tokens[0]


def two_roles() -> PreTrainedTokenizerFast:
    """A tokenizer as that of GPT-2: the token that ends a text also stands for unknown words."""
    vocabulary = {sign: n for n, sign in enumerate(["<end>", *sorted(pre_tokenizers.ByteLevel.alphabet())])}
    raw = Tokenizer(models.BPE(vocabulary, []))
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=raw, bos_token="<end>", eos_token="<end>", unk_token="<end>")


def test_the_token_that_ends_a_text_is_special_although_it_stands_for_unknown_words() -> None:
    tok = two_roles()
    config = transformers.GPT2Config(vocab_size=len(tok), n_positions=64, n_embd=16, n_layer=1, n_head=2)
    model = transformers.GPT2LMHeadModel(config).eval()
    g = explain_generation(model, tok, "a b<end> c d", " e<end>", features="words")
    assert [span.of(g.text) for span in g.spans] == ["a", "b", "c", "d"]
    assert g.tokens == (" ", "e")
    model.transformer.wte.weight.data[0] = 9.0 * model.transformer.ln_f.bias.data + 9.0
    model.transformer.ln_f.bias.data += 1.0  # this network writes the end after every text
    with pytest.raises(GralisError, match="answered with no token at all"):
        explain_generation(model, tok, "a b", max_new_tokens=3)


def test_a_token_of_unknown_words_that_also_pads_is_a_word() -> None:
    tok = PreTrainedTokenizerFast(tokenizer_object=tokenizer(bos=False).backend_tokenizer, unk_token="[UNK]")
    tok.pad_token = tok.unk_token
    assert encode(tok, "the zebra", "text.explain").special == (False, False)


def begun() -> tuple[nn.Module, Any]:
    """A small BART, whose decoder begins every answer with <eos> [CLS]; the tokenizer writes [CLS] before targets."""
    sizes = {f"{part}_{what}": 2 for part in ("encoder", "decoder") for what in ("layers", "attention_heads")}
    with torch.random.fork_rng():
        torch.manual_seed(0)
        config = transformers.BartConfig(
            vocab_size=len(tokenizer()), d_model=32, encoder_ffn_dim=40, decoder_ffn_dim=40, pad_token_id=0,
            bos_token_id=2, eos_token_id=5, decoder_start_token_id=5, max_position_embeddings=24, **sizes,
        )  # fmt: skip
        model = transformers.BartForConditionalGeneration(config).eval()
    for parameter in model.parameters():
        parameter.data.mul_(6.0) if parameter.ndim > 1 else None
    return model, tokenizer()


def test_a_decoder_reads_the_token_that_begins_an_answer_and_nobody_scores_it(tmp_path: Any) -> None:
    model, tok = begun()
    text, labels = "the key is red . where is it ?", tok(text_target="Paris is")["input_ids"]
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([tok(text)["input_ids"]]), labels=torch.tensor([labels])).logits[0]
    expected = torch.log_softmax(logits, -1)[[1, 2], labels[1:3]]
    g = explain_generation(model, tok, text, "Paris is")
    assert g.tokens == ("Paris", "is")
    np.testing.assert_allclose(g.scores, expected, atol=1e-4)
    assert replay(load(g.save(tmp_path / "g.zip")), model, tok).same
    model.generation_config.forced_bos_token_id, model.generation_config.forced_eos_token_id = tok.cls_token_id, None
    model.final_logits_bias[0, :6] = -50.0  # no special token after the first
    written = explain_generation(model, tok, text, max_new_tokens=4)
    assert len(written.tokens) == 3
    assert "[CLS]" not in written.tokens


def test_prompt_and_answer_of_an_encoder_decoder_have_windows_of_their_own() -> None:
    model, tok = begun()
    long = "the key is red . " * 4
    assert len(explain_generation(model, tok, long, "Paris " * 10, features="sentences").tokens) == 10
    with pytest.raises(GralisError, match="The prompt has 27 tokens"):
        explain_generation(model, tok, long + "the key is red .", "Paris")
    with pytest.raises(GralisError, match="The answer has 26 tokens"):
        explain_generation(model, tok, long, "Paris " * 24)


@pytest.mark.parametrize("scheme", ["always", "first", "never"])
def test_a_replacement_has_the_tokens_that_it_has_in_its_place(scheme: str) -> None:
    """Sentencepiece writes a blank before a text of its own, which is not there after a line break or a bracket."""
    signs = [*"abcdefgh▁():\n", "▁ab", "▁cd", "ab", "cd"]
    raw = Tokenizer(models.Unigram([("<unk>", 0.0), *((sign, -float(len(signs))) for sign in signs)], unk_id=0))
    raw.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme)
    raw.decoder = decoders.Metaspace(prepend_scheme=scheme)
    raw.post_processor = processors.TemplateProcessing(single="$A", special_tokens=[])
    tok = PreTrainedTokenizerFast(tokenizer_object=raw, unk_token="<unk>")
    config = transformers.GPT2Config(vocab_size=len(tok), n_positions=64, n_embd=16, n_layer=1, n_head=2)
    model = transformers.GPT2LMHeadModel(config).eval()
    prompt = fill("a: {x}\n{y} ({z}) h:", {"x": "cd e", "y": "cd", "z": "fg"})
    replaced = prompt.text.replace("cd e", "ab g").replace("\ncd", "\nab").replace("fg", "ab")
    g = explain_generation(model, tok, prompt, " ab", absent={"x": "ab g", "y": "ab", "z": "ab"})
    ids, answer = tok(replaced)["input_ids"], tok(replaced + " ab")["input_ids"]
    expected = scores(model, ids, answer[len(ids) :]).sum()
    assert g.total.f_baseline == pytest.approx(expected, abs=1e-5)


def test_an_output_that_belongs_to_a_place_needs_the_place() -> None:
    tok = tokenizer()
    config = transformers.BertConfig(vocab_size=len(tok), **SMALL)
    model, text = transformers.BertForMaskedLM(config).eval(), "the key is [MASK] and the film was long"
    ids = tok(text)["input_ids"]
    place, red = ids.index(tok.mask_token_id), tok.convert_tokens_to_ids("red")
    e = explain(model, tok, text, target=(place, red), absent="hidden")
    assert "[MASK]" not in "".join(e.names)
    mask = [int(token in (tok.cls_token_id, tok.sep_token_id, tok.mask_token_id)) for token in ids]
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([ids]), attention_mask=torch.tensor([mask])).logits
    assert e.f_baseline == pytest.approx(logits[0, place, red].item(), abs=1e-5)
    for absent in ("removed", {"film": "very long book"}):
        with pytest.raises(GralisError, match="outputs at every place of a text"):
            explain(model, tok, text, target=(place, red), absent=absent)
    read = explain(model, tok, text, target=lambda outputs: outputs.logits[:, 0, red], absent="removed")
    with torch.no_grad():
        short = model(input_ids=torch.tensor([[tok.cls_token_id, tok.mask_token_id, tok.sep_token_id]])).logits
    assert read.f_baseline == pytest.approx(short[0, 0, red].item(), abs=1e-5)


def test_an_encoding_knows_special_tokens_that_the_text_has_itself() -> None:
    x = tokenizer()("the film [SEP] the book", return_tensors="pt")
    assert gralis.explain(network("bert"), x, target=1, budget=128).names == ("the [1]", "film", "the [4]", "book")


@pytest.mark.parametrize("family", ["roberta", "bert"])
def test_padding_before_a_text_leaves_its_positions(family: str) -> None:
    tok = tokenizer()
    kinds: dict[str, tuple[Any, Any]] = {
        "roberta": (transformers.RobertaForMaskedLM, transformers.RobertaConfig),
        "bert": (transformers.BertForMaskedLM, transformers.BertConfig),
    }
    made, config = kinds[family]
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = made(config(vocab_size=len(tok), pad_token_id=0, **SMALL)).eval()
    text = "the film was good"
    padded = tok(text, return_tensors="pt", padding="max_length", max_length=9, padding_side="left")
    e = gralis.explain(model, padded, target=(5, 7), plan="values")
    with torch.no_grad():
        alone = model(**tok(text, return_tensors="pt")).logits[0, 2, 7].item()
    assert e.f_x == pytest.approx(alone, abs=1e-5)


def test_a_classifier_that_reads_padding_says_what_it_says_of_the_encoding() -> None:
    """BERT reads the token at place 0, which is padding here: no positions make this the text alone."""
    model = network("bert")
    x = tokenizer()("the film was good", return_tensors="pt", padding="max_length", max_length=9, padding_side="left")
    with torch.no_grad():
        expected = model(**x).logits[0, 1].item()
    assert gralis.explain(model, x, target=1, plan="values").f_x == pytest.approx(expected, abs=1e-5)
