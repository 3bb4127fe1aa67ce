"""Vision transformers and parts of layers: tokens know their place, heads and units are switched off."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import gralis
from gralis.features import channels, grid, heads
from text_models import network, tokenizer, vision


@pytest.mark.parametrize(
    ("registers", "layer", "size"), [(0, "vit.embeddings", (16, 24)), (2, "dinov2_with_registers.embeddings", (24, 24))]
)
def test_tokens_of_a_picture_know_their_patches(registers: int, layer: str, size: tuple[int, int]) -> None:
    picture = torch.from_numpy(np.random.default_rng(0).normal(size=(3, *size))).float()
    e = gralis.explain(vision(registers), picture, layer=layer, target=1, budget=300)
    first = ["class token", *(f"register {k}" for k in range(1, registers + 1))]
    cells = [f"r{r}c{c}" for r in range(size[0] // 8) for c in range(size[1] // 8)]
    assert list(e.names) == [*first, *cells]
    on = e.on(grid((3, *size), 8))
    np.testing.assert_allclose(on.values[: len(cells)], e.values[len(first) :], atol=1e-9)
    assert list(on.names[len(cells) :]) == first
    moved = e.values[: len(first)]
    assert np.abs(moved).max() == 0  # neither class token nor registers depend on the picture
    assert np.abs(e.values[len(first) :]).max() > 0


def test_only_the_patch_that_differs_gets_a_value() -> None:
    """A picture that equals its baseline but for the patch in row 1, column 2."""
    picture = torch.zeros(3, 16, 24)
    picture[:, 8:, 16:] = 1.0
    e = gralis.explain(vision(0), picture, layer="vit.embeddings", target=1, budget=300)
    assert [name for name, value in zip(e.names, e.values, strict=True) if value != 0] == ["r1c2"]
    assert np.argmax(np.abs(e.on(grid((3, 16, 24), 8)).values[:6])) == 5


@pytest.mark.parametrize(
    ("family", "layer"),
    [("gpt2", "transformer.h.1.attn.c_proj:input"), ("bert", "bert.encoder.layer.1.attention.output.dense:input")],
)
def test_heads_are_switched_off_before_they_are_mixed(family: str, layer: str) -> None:
    """v of all heads but one, against a network whose projection lacks the rows of that head."""
    model = network(family)
    tok = tokenizer(bos=family == "bert")
    x = tok("the film was not good", return_tensors="pt")["input_ids"]
    target = 1 if family == "bert" else (4, 7)
    away = torch.zeros_like(x)
    e = gralis.explain(
        model, x[0], baseline=away[0], layer=layer, features=heads((x.shape[1], 32), 4), target=target,
        plan="exhaustive", budget=None,
    )  # fmt: skip
    assert list(e.names) == ["head 0", "head 1", "head 2", "head 3"]
    kept: dict[str, torch.Tensor] = {}
    module = model.get_submodule(layer.removesuffix(":input"))
    with module.register_forward_pre_hook(lambda m, args: kept.update(away=args[0].clone())), torch.no_grad():
        model(input_ids=away)
    place = (0, target) if family == "bert" else (0, *target)

    def only(first: int, last: int) -> float:
        """F with the units from first to last at their activation at the baseline."""

        def swapped(m: torch.nn.Module, args: tuple[torch.Tensor]) -> tuple[torch.Tensor]:
            mixed = args[0].clone()
            mixed[..., first:last] = kept["away"][..., first:last]
            return (mixed,)

        with module.register_forward_pre_hook(swapped), torch.no_grad():
            return float(model(input_ids=x).logits[place])

    rows = e.ledger.kept_rows
    value = rows.value[(rows.masks == [False, True, True, True]).all(1)][0]
    assert e.f_baseline == pytest.approx(only(0, 32), abs=1e-4)
    assert value + e.f_baseline == pytest.approx(only(0, 8), abs=1e-4)
    assert abs(value - e.delta) > 1e-3


def test_units_of_a_dense_layer_are_features_too() -> None:
    model, tok = network("gpt2"), tokenizer(bos=False)
    x = tok("the film was", return_tensors="pt")["input_ids"][0]
    units = channels((3, 128), axis=1)
    e = gralis.explain(
        model,
        x,
        baseline=torch.zeros_like(x),
        layer="transformer.h.0.mlp.c_proj:input",
        features=units,
        target=(2, 7),
        budget=600,
    )
    assert e.n_features == 128
    assert np.abs(e.values).max() > 0
