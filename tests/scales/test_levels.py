"""Levels of transformers and dense networks: tokens on their patches and positions, and parts without a place."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from gralis import GralisError, Uniform, explain, multiscale
from gralis.features import channels, coordinates, grid, groups, heads, patches, tokens, windows
from gralis.features.overlap import carried, overlap

WIDTH, HEADS, PATCH = 8, 2, 4


class Attention(nn.Module):
    """Self-attention whose heads can be seen at `heads` as (heads, tokens, dims), at `joined` as (tokens, dims)."""

    def __init__(self) -> None:
        super().__init__()
        self.mix, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.heads, self.joined = nn.Identity(), nn.Identity()

    def forward(self, z: Tensor) -> Tensor:
        rows, length, _ = z.shape
        query, key, value = self.mix(z).reshape(rows, length, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        seen = torch.softmax(query @ key.transpose(-1, -2) / 2, -1) @ value
        seen = self.heads(seen).transpose(1, 2).reshape(rows, length, WIDTH)
        return self.out(self.joined(seen))


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = Attention()
        self.dense = nn.Sequential(nn.Linear(WIDTH, 12), nn.Tanh(), nn.Linear(12, WIDTH))

    def forward(self, z: Tensor) -> Tensor:
        z = z + self.attention(z)
        return z + self.dense(z)


class Vision(nn.Module):
    """Patches of 4 x 4 pixels, a class token, two blocks; the class token is read out."""

    def __init__(self, n_patches: int) -> None:
        super().__init__()
        self.embedding = nn.Conv2d(3, WIDTH, PATCH, stride=PATCH)
        self.start, self.places = nn.Parameter(torch.randn(1, 1, WIDTH)), nn.Parameter(torch.randn(n_patches, WIDTH))
        self.tokens = nn.Identity()
        self.blocks = nn.Sequential(Block(), Block())
        self.head = nn.Linear(WIDTH, 3)

    def forward(self, image: Tensor) -> Tensor:
        z = self.embedding(image).flatten(2).transpose(1, 2) + self.places
        z = self.tokens(torch.cat([self.start.expand(len(z), 1, WIDTH), z], 1))
        return self.head(self.blocks(z)[:, 0])


class Text(nn.Module):
    """Embedding, attention, mean, head."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.attention, self.head = nn.Embedding(20, WIDTH), Attention(), nn.Linear(WIDTH, 2)

    def forward(self, ids: Tensor) -> Tensor:
        return self.head(self.attention(self.embedding(ids)).tanh().mean(1))


class Heads(nn.Module):
    """Everything flows through the heads: attention, then a readout."""

    def __init__(self) -> None:
        super().__init__()
        self.attention, self.head = Attention(), nn.Linear(WIDTH, 1)

    def forward(self, z: Tensor) -> Tensor:
        return self.head(self.attention(z).tanh().sum(1))[:, 0]


def made(kind: type[nn.Module], *arguments: int) -> nn.Module:
    torch.manual_seed(3)
    return kind(*arguments).double().eval()


def image(*shape: int) -> Tensor:
    return 4 * torch.randn(*shape, generator=torch.Generator().manual_seed(5), dtype=torch.float64)


SIX = patches((7, WIDTH), (2, 3), extra=1)
ENUMERATED = {"plan": "exhaustive", "budget": None, "kernel": Uniform(), "n_nodes": 12}


# ---- vision transformer


def test_tokens_lie_on_their_patches() -> None:
    """The embedding is affine in each patch, so its rays are those of the patches: phi must be that of the input."""
    net, x = made(Vision, 6), image(3, 8, 12)
    cells = grid(x.shape, PATCH)
    of_input = explain(net, x, target=1, features=cells, **ENUMERATED)
    of_tokens = explain(net, x, target=1, layer="tokens", features=SIX, **ENUMERATED).on(cells)
    assert of_tokens.values[:6] == pytest.approx(of_input.values, rel=1e-6)
    assert np.abs(of_input.values).min() > 1e-3
    assert of_tokens.names[:] == (*cells.names, "token 0")
    assert of_tokens.values[6] == pytest.approx(0, abs=1e-12)  # the class token is the same for x and x'
    assert of_tokens.to_input() == pytest.approx(of_input.to_input(), rel=1e-6)


def test_the_class_token_has_a_row_of_its_own() -> None:
    net, x = made(Vision, 6), image(3, 8, 12)
    inside = explain(net, x, target=1, layer="blocks.0", features=SIX, **ENUMERATED)
    halves = groups(np.arange(12) // 6 * np.ones((8, 1), dtype=int), ["left", "right"], x.shape)
    found = inside.on(halves)
    own = dict(zip(inside.names, inside.values, strict=True))
    assert found.names[:] == ("left", "right", "token 0")
    left = own["r0c0"] + own["r1c0"] + (own["r0c1"] + own["r1c1"]) / 2
    assert found.values == pytest.approx([left, sum(own.values()) - own["token 0"] - left, own["token 0"]])
    assert abs(own["token 0"]) > 1e-3
    assert found.to_input().shape == (3, 8, 12)


def test_levels_of_a_vision_transformer() -> None:
    net, x = made(Vision, 6), image(3, 8, 12)
    levels = [grid(x.shape, PATCH), ("tokens", SIX), ("blocks.0", SIX), ("blocks.0.dense", SIX)]
    with pytest.raises(GralisError, match="around it"):  # a residual connection passes by the dense part
        multiscale(net, x, levels, target=1, budget=400)
    result = multiscale(net, x, levels[:3], target=1, budget=400)
    assert result.own == ("layer tokens, patches: token 0", "layer blocks.0, patches: token 0")
    assert result.names[6:] == result.own
    assert len(result.values) == 8
    for level, weight in zip(result.levels, result.weights, strict=True):
        assert level.estimate.values.sum() == pytest.approx(level.explanation.values.sum())
        if level.name == "layer blocks.0, patches":
            assert result.values[7] == pytest.approx(weight * level.explanation.values[0])
    assert result.to_input().shape == (3, 8, 12)
    assert "2 without a place" in repr(result)
    assert result.interval().shape == (8, 2)


def test_what_has_no_known_place_is_refused() -> None:
    net, x = made(Vision, 6), image(3, 8, 12)
    cells = grid(x.shape, PATCH)
    stripes = explain(net, x, target=1, layer="tokens", features=grid((7, WIDTH), (1, WIDTH)), budget=300)
    with pytest.raises(GralisError, match=r"no known place.*features\.patches"):
        stripes.on(cells)
    by_token = explain(net, x, target=1, layer="tokens", features=tokens(range(7)), budget=300)
    with pytest.raises(GralisError, match=r"spatial axes \(7,\).*features\.patches"):
        by_token.on(cells)
    for layer in ("tokens", "blocks.0.attention.heads"):
        with pytest.raises(GralisError, match="does not say where its parts lie"):
            multiscale(net, x, [cells, layer], target=1, budget=300)
    with pytest.raises(GralisError, match=r"h \* w = 6"):
        patches((7, WIDTH), (2, 2), extra=1)
    with pytest.raises(GralisError, match="'extra'"):
        patches((7, WIDTH), (2, 3), extra=[9])


def test_tokens_without_a_patch_may_stand_anywhere() -> None:
    ends = patches((8, WIDTH), (2, 3), extra=[0, 7])
    rows, own = carried(ends, grid((3, 8, 12), 4), at_layer=True)
    assert own == ("token 0", "token 7")
    assert rows[:6, 1:7] == pytest.approx(np.eye(6))
    assert rows.sum(0) == pytest.approx(np.ones(8))


# ---- text


def test_positions_of_a_text() -> None:
    net, ids = made(Text), torch.tensor([1, 7, 3, 9, 2])
    words = tokens(ids, names=["[CLS]", "not", "a", "film", "[SEP]"])
    options = {"target": 1, "baseline": torch.tensor([1, 0, 0, 0, 2]), "plan": "exhaustive", "budget": None}
    levels = [("embedding", words), ("attention", words)]
    with pytest.raises(GralisError, match="on=Features"):
        multiscale(net, ids, levels, **options)
    result = multiscale(net, ids, levels, on=words, **options)
    alone = [explain(net, ids, layer=layer, features=words, **options).values for layer, _ in levels]
    assert np.abs(alone[0] - alone[1]).max() > 0.01
    assert result.values == pytest.approx(result.weights @ np.stack(alone))
    pairs = groups([0, 0, 1, 1, 2], ["start", "middle", "end"])
    found = explain(net, ids, layer="embedding", features=words, **options).on(pairs)
    each = alone[0]
    assert found.values == pytest.approx([each[0] + each[1], each[2] + each[3], each[4]])
    with pytest.raises(GralisError, match="spatial axes"):
        explain(net, ids, layer="embedding", features=words, **options).on(tokens([1, 2, 3]))


# ---- dense units


def test_dense_units_have_rows_of_their_own() -> None:
    """As many units as inputs: unit i is not input i. Only a sum follows them: phi is in closed form."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1)).double().eval()
    x = image(4)
    result = multiscale(net, x, [coordinates(x), "1"], target=0)
    with torch.no_grad():
        units = (net[2].weight[0] * (net[:2](x) - net[:2](torch.zeros_like(x)))).numpy()
    assert result.own == tuple(f"layer 1: unit {i}" for i in range(4))
    assert result.values[4:] == pytest.approx(result.weights[1] * units, rel=1e-6)
    assert result.values[:4] == pytest.approx(result.weights[0] * result.levels[0].explanation.values)
    assert result.weights == pytest.approx([0.5, 0.5], abs=0.01)
    with pytest.raises(GralisError, match="no place in the input"):
        explain(net, x, target=0, layer="1").on(coordinates(x))
    with pytest.raises(GralisError, match="nothing to combine"):
        multiscale(net, x, ["1", "0"], on=coordinates(x), target=0)


def test_a_matrix_of_shares() -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 1)).double().eval()
    x = image(4)
    shares = np.array([[1.0, 0.5, 0], [0, 0.5, 0], [0, 0, 0], [0, 0, 0]])
    inside = explain(net, x, target=0, layer="1")
    a, b, c = inside.values
    assert inside.on(coordinates(x), shares).values == pytest.approx([a + b / 2, b / 2, 0, 0, c])
    for level in ((inside, shares), ("1", coordinates((3,)), shares)):
        result = multiscale(net, x, [coordinates(x), level], weights=[0.0, 1.0], target=0)
        assert result.values == pytest.approx([a + b / 2, b / 2, 0, 0, c])
    for wrong in (shares * 2, shares[:3], -shares, "by area"):
        with pytest.raises(GralisError, match="columns sum to 1"):
            inside.on(coordinates(x), wrong)


# ---- attention heads


def test_heads_in_both_layouts() -> None:
    net, z = made(Heads), image(5, WIDTH)
    apart = explain(net, z, layer="attention.heads", features=heads((HEADS, 5, 4), HEADS, axis=0), **ENUMERATED)
    joined = explain(net, z, layer="attention.joined", features=heads((5, WIDTH), HEADS), **ENUMERATED)
    assert apart.values == pytest.approx(joined.values, rel=1e-9)
    assert abs(apart.values[0] - apart.values[1]) > 0.01
    words = tokens(range(5))
    by_token = channels((HEADS, 5, 4), axis=1).at((5,), range(5))
    result = multiscale(
        net, z, [words, ("attention.joined", joined.features), ("attention.heads", by_token)], on=words, **ENUMERATED
    )
    assert result.own == ("layer attention.joined, heads: head 0", "layer attention.joined, heads: head 1")
    assert result.values[5:] == pytest.approx(result.weights[1] * joined.values)
    placed = explain(net, z, layer="attention.heads", features=by_token, **ENUMERATED).values
    first = result.levels[0].explanation.values
    assert result.values[:5] == pytest.approx(result.weights[0] * first + result.weights[2] * placed)
    with pytest.raises(GralisError, match="divisor of 8"):
        heads((5, WIDTH), 3)


def test_heads_and_tokens_together_lie_at_their_tokens() -> None:
    each = groups(np.arange(HEADS * 5).reshape(HEADS, 5, 1) * np.ones((1, 1, 4), dtype=int)).at((5,), [*range(5)] * 2)
    assert overlap(each, tokens(range(5)), at_layer=True) == pytest.approx(np.tile(np.eye(5), 2))
    for grid_, cells in (((0,), [0] * 10), ((5,), [0] * 9), ((5,), [5] * 10), (3, [0] * 10)):
        with pytest.raises(GralisError, match=r"Features\.at"):
            each.at(grid_, cells)  # type: ignore[arg-type]


def test_windows_of_a_convolution_over_time() -> None:
    rows = overlap(windows(4, 1, channels=6), windows(8, 4, channels=2), at_layer=True)
    assert rows == pytest.approx(np.array([[1, 1, 0, 0], [0, 0, 1, 1]]))
