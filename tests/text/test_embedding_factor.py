"""Networks that multiply the embeddings of token ids, but not embeddings that they are given."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import gralis
from gralis import ModelError
from gralis.text import explain, explain_generation
from text_models import network, tokenizer

PROMPT = "the film was good and the book was bad"


def scaled(family: str) -> nn.Module:
    """A small encoder-decoder whose encoder multiplies embeddings by the square root of their width."""
    import transformers as t

    sizes: dict[str, Any] = {
        "vocab_size": len(tokenizer()), "d_model": 32, "encoder_layers": 1, "decoder_layers": 1, "pad_token_id": 0,
        "encoder_attention_heads": 2, "decoder_attention_heads": 2, "encoder_ffn_dim": 40, "decoder_ffn_dim": 40,
        "eos_token_id": 5, "decoder_start_token_id": 0, "scale_embedding": True, "max_position_embeddings": 64,
    }  # fmt: skip
    with torch.random.fork_rng():
        torch.manual_seed(0)
        if family == "pegasus":
            made: nn.Module = t.PegasusForConditionalGeneration(t.PegasusConfig(**sizes))
        else:
            made = t.MarianMTModel(t.MarianConfig(**sizes))
    for parameter in made.parameters():
        parameter.data.mul_(6.0) if parameter.ndim > 1 else None
    return made.eval()


@pytest.mark.parametrize("family", ["pegasus", "marian"])
def test_the_answer_is_that_to_the_token_ids(family: str) -> None:
    model, tok = scaled(family), tokenizer()
    ids, answer = tok(PROMPT, return_tensors="pt")["input_ids"], tok(" is red", add_special_tokens=False)["input_ids"]

    def score(prompt: Tensor) -> float:
        with torch.no_grad():
            begin = torch.tensor([[0, tok.cls_token_id, answer[0]]])  # this tokenizer begins every text with [CLS]
            logits = model(input_ids=prompt, decoder_input_ids=begin).logits[0, 1:]
        return torch.log_softmax(logits, -1).gather(1, torch.tensor(answer)[:, None]).sum().item()

    g = explain_generation(model, tok, PROMPT, " is red", features="words", absent="mask", budget=200)
    assert g.total.f_x == pytest.approx(score(ids), abs=1e-4)
    inner = torch.full_like(ids, tok.mask_token_id)
    inner[0, 0], inner[0, -1] = ids[0, 0], ids[0, -1]
    assert g.total.f_baseline == pytest.approx(score(inner), abs=1e-4)
    assert abs(g.total.delta) > 1e-3


class Otherwise(nn.Module):
    """A classifier that triples the embeddings of token ids, and does not say so; or adds noise to every answer."""

    def __init__(self, triple: float, noise: float) -> None:
        super().__init__()
        self.inner, self.triple, self.noise = network("bert"), triple, noise

    def get_input_embeddings(self) -> nn.Module:
        return self.inner.get_input_embeddings()  # type: ignore[operator,no-any-return]

    def forward(self, input_ids: Any = None, inputs_embeds: Any = None, attention_mask: Any = None) -> Tensor:
        if inputs_embeds is None:
            inputs_embeds = self.triple * self.get_input_embeddings()(input_ids)
        logits: Tensor = self.inner(inputs_embeds=inputs_embeds, attention_mask=attention_mask).logits
        return logits + self.noise * torch.randn_like(logits)


def test_a_network_that_reads_embeddings_otherwise_is_refused() -> None:
    model, tok = Otherwise(3.0, 0.0).eval(), tokenizer()
    with pytest.raises(
        ModelError, match="This Otherwise answers the embeddings of a text otherwise than its token ids"
    ):
        explain(model, tok, PROMPT, target=1)
    with pytest.raises(ModelError, match="answers the embeddings of a text otherwise"):
        gralis.explain(model, tok(PROMPT, return_tensors="pt"), target=1, baseline="mean")


def test_a_random_network_is_explained_with_its_doubt() -> None:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        e = explain(Otherwise(1.0, 0.5).eval(), tokenizer(), PROMPT, target=1, budget=100)
    assert e.doubts[0].startswith("The model is random")
