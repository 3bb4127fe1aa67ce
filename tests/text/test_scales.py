"""Tokens, attention heads and units of a dense layer as levels of one explanation, for texts and for pictures."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import gralis
from gralis.features import Features, channels, grid, heads, patches, tokens
from text_models import network, tokenizer, vision

PICTURE = torch.from_numpy(np.random.default_rng(0).normal(size=(3, 16, 24))).float()
OPTIONS: dict[str, Any] = {"budget": 400, "seed": 3}


def levels_of(family: str, n_tokens: int) -> list[tuple[str, Features]]:
    """Heads before they are mixed, and units before they are summed, in the last layer."""
    places = {
        "gpt2": ("transformer.h.1.attn.c_proj", "transformer.h.1.mlp.c_proj", 32, 4, 128),
        "bert": ("bert.encoder.layer.1.attention.output.dense", "bert.encoder.layer.1.output.dense", 32, 4, 48),
        "vit": ("vit.layers.1.attention.o_proj", "vit.layers.1.mlp.fc2", 24, 3, 32),
    }
    mixed, summed, width, n_heads, n_units = places[family]
    return [
        (f"{mixed}:input", heads((n_tokens, width), n_heads)),
        (f"{summed}:input", channels((n_tokens, n_units), axis=1)),
    ]


def problem(family: str) -> tuple[nn.Module, torch.Tensor, Any, dict[str, Any], Features]:
    """The model, x, the level of its tokens, the options, and the features of the input."""
    if family == "vit":
        whole = grid(PICTURE.shape, 8)
        options = {"baseline": 0.0, "target": 1}
        return vision(0), PICTURE, ("vit.embeddings", patches((7, 24), (2, 3), 1)), options, whole
    tok = tokenizer(bos=family == "bert")
    ids = tok("the film was not good", return_tensors="pt")["input_ids"][0]
    words = tokens(ids, tok)
    table = "transformer.wte" if family == "gpt2" else "bert.embeddings.word_embeddings"
    options = {"baseline": torch.zeros_like(ids), "target": (len(ids) - 1, 7) if family == "gpt2" else 1}
    return network(family), ids, (table, words), options, words


def moved_back(model: nn.Module, layer: str, x: torch.Tensor, away: torch.Tensor, first: int, last: int) -> Any:
    """The outputs at x with these columns of what goes into the layer as they are at the baseline."""
    module, kept = model.get_submodule(layer.removesuffix(":input")), {}

    def swapped(_: nn.Module, args: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
        mixed = args[0].clone()
        mixed[..., first:last] = kept["away"][..., first:last]
        return (mixed, *args[1:])

    with torch.no_grad():
        with module.register_forward_pre_hook(lambda _, args: kept.update(away=args[0].clone())):
            model(away[None])
        with module.register_forward_pre_hook(swapped):
            return model(x[None]).logits[0]


@pytest.mark.parametrize("family", ["gpt2", "bert", "vit"])
def test_tokens_heads_and_units_are_levels_of_one_explanation(family: str) -> None:
    model, x, by_token, options, common = problem(family)
    n_tokens = by_token[1].shapes[0][0]
    levels = [by_token, *levels_of(family, n_tokens)]
    result = gralis.multiscale(model, x, levels, on=common, **options, **OPTIONS)
    n_heads, n_units = (level[1].n_features for level in levels[1:])
    n_own = n_heads + n_units + (family == "vit")  # the class token has no patch
    assert len(result.names) == common.n_features + n_own
    assert result.names[: common.n_features] == tuple(common.names)
    assert [name.split(": ")[1] for name in result.own][-n_units - 1 : -n_units] == [f"head {n_heads - 1}"]
    assert result.weights.sum() == pytest.approx(1)
    # the definition: sum over levels of the weight times phi of the level, where its parts lie
    expected = np.zeros(len(result.names))
    start = common.n_features + (family == "vit")
    for (layer, features), weight in zip(levels, result.weights, strict=True):
        alone = gralis.explain(model, x, layer=layer, features=features, replicates=12, **options, **OPTIONS)
        if layer == by_token[0]:
            inner = alone.values[1:] if family == "vit" else alone.values
            expected[: common.n_features] = weight * inner
        else:
            expected[start : start + alone.n_features] = weight * alone.values
            start += alone.n_features
    np.testing.assert_allclose(result.values, expected, atol=1e-7)
    assert np.abs(result.values[common.n_features + (family == "vit") :]).max() > 0
    if family == "vit":
        assert result.to_input().shape == PICTURE.shape


@pytest.mark.parametrize("part", ["heads", "units"])
def test_heads_and_units_of_a_vision_transformer_are_switched_off(part: str) -> None:
    """The value of all parts but the first, against hooks that put the first part back to the baseline."""
    model, away = vision(0), torch.zeros_like(PICTURE)
    layer, features = levels_of("vit", 7)[part == "units"]
    if part == "units":  # four groups of eight units
        labels = np.repeat(np.arange(4), 8)[None].repeat(7, 0)
        features = gralis.features.groups(labels)
    e = gralis.explain(
        model, PICTURE, baseline=away, layer=layer, features=features, target=1, plan="exhaustive", budget=None
    )
    rows = e.ledger.kept_rows
    others = np.arange(e.n_features) != 0
    value = rows.value[(rows.masks == others).all(1)][0]
    assert e.f_baseline == pytest.approx(float(moved_back(model, layer, PICTURE, away, 0, 10_000)[1]), abs=1e-5)
    assert value + e.f_baseline == pytest.approx(float(moved_back(model, layer, PICTURE, away, 0, 8)[1]), abs=1e-5)
    assert abs(value - e.delta) > 1e-4


def test_the_tokens_of_a_vision_transformer_are_a_level_by_their_name() -> None:
    cells = grid(PICTURE.shape, 8)
    result = gralis.multiscale(vision(0), PICTURE, [cells, "vit.embeddings"], target=1, **OPTIONS)
    assert result.names == (*cells.names, "layer vit.embeddings: class token")
