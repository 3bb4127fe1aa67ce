"""Networks that accelerate splits over devices or keeps on disk: inputs go where the embeddings are."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import gralis
from gralis import GralisError
from gralis.models.device_map import input_device, is_loaded, state_of
from gralis.text import explain, explain_generation
from text_models import network, tokenizer

accelerate = pytest.importorskip("accelerate")

PROMPT = "Paris is red . the film was good .\n\nLyon is blue . the book was bad .\n\nthe key is green ."
MAPS: dict[str, dict[str, str]] = {
    "bert": {"bert.embeddings": "disk", "bert.encoder": "cpu", "bert.pooler": "disk", "dropout": "cpu",
             "classifier": "cpu"},
    "gpt2": {"transformer.wte": "cpu", "transformer.wpe": "disk", "transformer.h.0": "cpu", "transformer.h.1": "disk",
             "transformer.ln_f": "cpu", "lm_head": "cpu"},
    "llama": {"model.embed_tokens": "disk", "model.layers": "cpu", "model.norm": "disk", "model.rotary_emb": "cpu",
              "lm_head": "cpu"},
    "t5": {"shared": "cpu", "encoder": "cpu", "decoder": "disk", "lm_head": "cpu"},
}  # fmt: skip


def split(family: str, folder: Path) -> nn.Module:
    """The network with a device map; what is on disk is on the device 'meta' between calls."""
    module = accelerate.dispatch_model(network(family), MAPS[family], main_device="cpu", offload_dir=str(folder))
    assert any(parameter.is_meta for parameter in module.parameters())
    assert module.hf_device_map == MAPS[family]
    return module  # type: ignore[no-any-return]


@pytest.mark.parametrize("family", ["gpt2", "llama", "t5"])
def test_a_generation_is_that_of_the_same_network_in_one_piece(family: str, tmp_path: Path) -> None:
    whole, parts, tok = network(family), split(family, tmp_path), tokenizer(bos=False)
    for options in ({}, {"plan": "shared", "budget": 600}, {"alternative": " Lyon"}, {"absent": "mean"}):
        given: Any = options
        one, two = (explain_generation(each, tok, PROMPT, " Paris is", **given) for each in (whole, parts))
        np.testing.assert_allclose(two.values, one.values, atol=1e-5)
        assert np.abs(one.values).max() > 0.01
        assert two.total.provenance["hashes"]["model"] == one.total.provenance["hashes"]["model"]
    assert (
        explain_generation(parts, tok, PROMPT, max_new_tokens=2).tokens
        == explain_generation(whole, tok, PROMPT, max_new_tokens=2).tokens
    )


def test_a_classifier_and_an_encoding_are_explained_too(tmp_path: Path) -> None:
    whole, parts, tok = network("bert"), split("bert", tmp_path), tokenizer()
    text = "the film was not good"
    for absent in ("mask", "mean", "removed"):
        one, two = (explain(each, tok, text, target=1, absent=absent, budget=200) for each in (whole, parts))
        np.testing.assert_allclose(two.values, one.values, atol=1e-6)
    encoding = tok(text, return_tensors="pt")
    one, two = (gralis.explain(each, encoding, target=1, budget=200) for each in (whole, parts))
    np.testing.assert_allclose(two.values, one.values, atol=1e-6)


def test_flags_of_weights_on_disk_are_as_before(tmp_path: Path) -> None:
    """accelerate makes new parameters after every call, so the old ones cannot be put back."""
    parts = split("gpt2", tmp_path)
    before = {name: parameter.requires_grad for name, parameter in parts.named_parameters()}
    explain_generation(parts, tokenizer(bos=False), PROMPT, " Paris")
    assert {name: parameter.requires_grad for name, parameter in parts.named_parameters()} == before
    assert any(before.values())


class Reversed(nn.Module):
    """A network whose first parameter is not that of its embeddings, and lies elsewhere."""

    def __init__(self, vocabulary: int) -> None:
        super().__init__()
        self.body, self.table, self.head = nn.Linear(8, 8), nn.Embedding(vocabulary, 8), nn.Linear(8, 3)

    def get_input_embeddings(self) -> nn.Module:
        return self.table

    def forward(self, inputs_embeds: Any = None, attention_mask: Any = None) -> Any:
        assert inputs_embeds.device == attention_mask.device == torch.device("cpu")
        return {"logits": self.head(self.body(inputs_embeds).tanh().cumsum(1)[:, -1])}


def test_points_go_to_the_embeddings_and_not_to_the_first_parameter(tmp_path: Path) -> None:
    tok = tokenizer()
    torch.manual_seed(0)
    whole = Reversed(len(tok)).eval()
    one = explain(whole, tok, "the film was good", target=1, budget=300)
    parts = accelerate.dispatch_model(
        whole, {"body": "disk", "table": "cpu", "head": "disk"}, main_device="cpu", offload_dir=str(tmp_path)
    )
    assert next(parts.parameters()).is_meta
    assert input_device(parts) == torch.device("cpu")
    two = explain(parts, tok, "the film was good", target=1, budget=300)
    np.testing.assert_allclose(two.values, one.values, atol=1e-6)


def test_the_device_is_where_a_part_computes_and_weights_without_a_home_are_refused() -> None:
    module = nn.Linear(2, 1, device="meta")
    assert not is_loaded(module)
    module._hf_hook = SimpleNamespace(  # type: ignore[assignment]
        hooks=[SimpleNamespace(execution_device=None), SimpleNamespace(execution_device="cuda:1", weights_map={})]
    )
    assert input_device(module) == torch.device("cuda:1")
    assert not is_loaded(module)
    with pytest.raises(GralisError, match="must be loaded"):
        gralis.models.torch(module)
    weights = {"weight": torch.ones(1, 2), "bias": torch.zeros(1)}
    module._hf_hook = SimpleNamespace(execution_device="cpu", weights_map=weights)  # type: ignore[assignment]
    assert is_loaded(module)
    assert dict(state_of(module)) == {"bias": weights["bias"], "weight": weights["weight"]}
    reverse = Reversed(5)
    reverse.body.to("meta")._hf_hook = SimpleNamespace(execution_device="cuda:1", weights_map={})  # type: ignore[assignment]
    assert input_device(reverse) == torch.device("cpu")  # that of the embeddings, though the body comes first
