"""layer=: the rest of the network as the function, against networks cut by hand; what cannot be cut is refused."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from gralis import GralisError, ModelError, Uniform, explain
from gralis.models.layer import Tail


def convnet(inplace: bool = True) -> nn.Sequential:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        layers = [
            nn.Conv2d(3, 6, 3, padding=1),
            nn.BatchNorm2d(6),
            nn.ReLU(inplace=inplace),
            nn.MaxPool2d(2),
            nn.Conv2d(6, 5, 3, padding=1),
            nn.ReLU(inplace=inplace),
            nn.AdaptiveAvgPool2d(2),
            nn.Flatten(),
            nn.Linear(20, 3),
        ]
        return nn.Sequential(*layers).double().eval()


IMAGE = torch.rand(3, 8, 8, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
CELLS = np.arange(16).reshape(4, 4)


@pytest.mark.parametrize("inplace", [False, True])
@pytest.mark.parametrize("index", [3, 4])
def test_the_same_as_a_network_cut_by_hand(inplace: bool, index: int) -> None:
    """Layer 4 is followed by a ReLU that may work in place on its output."""
    net = convnet(inplace)
    head, tail = net[: index + 1].eval(), convnet(inplace=False)[index + 1 :].eval()
    baseline = torch.full_like(IMAGE, 0.3)
    with torch.no_grad():
        there, start = head(IMAGE[None].clone())[0].clone(), head(baseline[None].clone())[0].clone()
    options = {"target": 1, "features": CELLS, "kernel": Uniform(), "budget": 300}
    ours = explain(net, IMAGE, baseline=baseline, layer=str(index), **options)
    by_hand = explain(tail, there, baseline=start, **options)
    assert ours.values == pytest.approx(by_hand.values, rel=1e-9, abs=1e-12)
    with torch.no_grad():
        delta = float((net(IMAGE[None].clone()) - net(baseline[None].clone()))[0, 1])
    assert ours.delta == pytest.approx(delta)


def test_nothing_is_left_behind() -> None:
    net = convnet().train()
    state = {name: value.clone() for name, value in net.state_dict().items()}
    with pytest.warns(UserWarning, match="train mode"):
        explain(net, IMAGE, target=0, layer=net[4], features=CELLS, budget=150)
    assert all(not module._forward_hooks for module in net.modules())
    assert all(module.training for module in net.modules())
    assert all(parameter.requires_grad and parameter.grad is None for parameter in net.parameters())
    assert all(torch.equal(value, state[name]) for name, value in net.state_dict().items())


def test_token_ids_through_their_embedding() -> None:
    """A linear readout of the embeddings: phi of a token is its own term."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        net = nn.Sequential(nn.Embedding(20, 6), nn.Flatten(), nn.Linear(30, 2)).double().eval()
    ids = torch.tensor([3, 4, 9, 11, 2])
    tokens = np.repeat(np.arange(5)[:, None], 6, axis=1)
    found = explain(net, ids, baseline=0, target=1, layer="0", features=tokens)
    table, weight = net[0].weight.detach(), net[2].weight.detach()[1].reshape(5, 6)
    terms = ((table[ids] - table[0]) * weight).sum(1).numpy()
    assert found.values == pytest.approx(terms)
    assert explain(net, ids, baseline=0, target=1).values == pytest.approx(terms)  # without the layer the ids jump


class Reshaping(nn.Module):
    """Remembers the number of rows of its input, so the part before the layer cannot run on one row alone."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(4, 6), nn.Linear(6, 1)

    def forward(self, z: torch.Tensor) -> torch.Tensor:
        rows = len(z)
        return self.last(self.first(z).tanh().reshape(rows, 6))


def test_a_network_that_minds_its_rows() -> None:
    net = Reshaping().double().eval()
    x = torch.linspace(0.5, 1.5, 4, dtype=torch.float64)
    found = explain(net, x, layer="first")
    cut = explain(lambda a: net.last(a.tanh())[:, 0], net.first(x).detach(), baseline=net.first(0 * x).detach())
    assert found.values == pytest.approx(cut.values)


class Around(nn.Module):
    def __init__(self, *, twice: bool = False, several: bool = False) -> None:
        super().__init__()
        self.a, self.b, self.unused = nn.Linear(4, 4), nn.Linear(4, 1), nn.Linear(4, 4)
        self.pair = nn.LSTM(4, 4)
        self.twice, self.several = twice, several

    def forward(self, z: torch.Tensor) -> torch.Tensor:
        if self.several:
            z = self.pair(z)[0]
        inner = self.a(self.a(z)) if self.twice else self.a(z)
        return self.b(inner.tanh() + z)


@pytest.mark.parametrize(
    ("net", "layer", "error", "match"),
    [
        (Around(), "a", GralisError, r"other ways than through the layer a"),
        (Around(twice=True), "a", ModelError, r"layer a ran 2 times"),
        (Around(), "unused", ModelError, r"unused was not reached"),
        (Around(several=True), "pair", ModelError, r"pair returns tuple"),
        (Around(), "uused", GralisError, r"'layer'.*such as 'unused'.*Got 'uused'"),
        (Around(), nn.ReLU(), GralisError, r"'layer'.*inside the model.*ReLU"),
        (lambda z: z.sum(1), "a", GralisError, r"torch\.nn\.Module when layer= is given"),
    ],
)
def test_what_cannot_be_cut_is_refused(net: object, layer: object, error: type[Exception], match: str) -> None:
    if isinstance(net, nn.Module):
        net.eval()
    with pytest.raises(error, match=match):
        explain(net, torch.ones(4), layer=layer)
    if isinstance(net, nn.Module):
        assert all(not module._forward_hooks for module in net.modules())


def test_the_tail_is_a_module_of_the_activation() -> None:
    found = explain(convnet(), IMAGE, target=0, layer="4", features=CELLS, budget=150)
    assert found.endpoints.x[0].shape == (5, 4, 4)
    assert Tail.__name__ not in repr(found)
