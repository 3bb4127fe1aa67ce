"""The networks: pooled maps of EfficientNet-Lite0, MONAI's DenseNet-121, and a small network for generated images."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from gralis.demo import load_network

#: The maps that are pooled: the outputs of these blocks, and the last map before the classes of ImageNet.
MAPS = ("block 4", "block 7", "block 10", "block 13", "block 15", "head")
POOLED = "efficientnet-pooled"


def build(name: str, n_classes: int, weights: str = "") -> nn.Module:
    """The network with this name in eval mode, with the trained weights if a file is given."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = {"tiny": tiny, POOLED: PooledEfficientNet}.get(name, densenet)(n_classes)
    if weights:
        network.load_state_dict(torch.load(weights, map_location="cpu", weights_only=True))
    return network.eval()


class PooledEfficientNet(nn.Module):
    """Frozen ImageNet features: the mean and deviation of every channel of some maps, standardised, and a linear layer.

    The network and the probe are one module, so that an explanation goes through both. It returns two logits, of which
    the first is zero.
    """

    def __init__(self, n_classes: int) -> None:
        super().__init__()
        if n_classes != 2:
            raise SystemExit(f"{POOLED} tells two classes apart; the labels have {n_classes}.")
        self.body = load_network().requires_grad_(False)
        with torch.no_grad():
            sizes = [2 * m.shape[1] for m in self.maps(torch.zeros(1, 3, 64, 64))]
        self.widths = dict(zip(MAPS, sizes, strict=True))
        n = sum(sizes)
        for name, value in (("mean", torch.zeros(n)), ("std", torch.ones(n)), ("weight", torch.zeros(n))):
            self.register_buffer(name, value)
        self.register_buffer("bias", torch.zeros(()))

    def maps(self, x: Tensor) -> list[Tensor]:
        """The maps of `MAPS`."""
        body, made = self.body, {}
        x = body._swish(body._bn0(body._conv_stem(x)))
        for number, block in enumerate(body._blocks):
            x = block(x)
            made[f"block {number}"] = x
        made["head"] = body._swish(body._bn1(body._conv_head(x)))
        return [made[name] for name in MAPS]

    def pool(self, x: Tensor) -> Tensor:
        """The mean and the standard deviation of every channel of every map, (rows, columns)."""
        flat = [m.flatten(2) for m in self.maps(x)]
        return torch.cat([torch.cat([m.mean(2), (m.var(2, correction=0) + 1e-6).sqrt()], 1) for m in flat], 1)

    def set_last_layer(
        self, mean: NDArray[np.float64], std: NDArray[np.float64], weight: NDArray[np.float64], bias: float
    ) -> None:
        """Take the standardisation and the linear layer of a fitted probe."""
        for name, value in (("mean", mean), ("std", std), ("weight", weight), ("bias", np.array(bias))):
            getattr(self, name).copy_(torch.from_numpy(value))

    def forward(self, x: Tensor) -> Tensor:
        score = ((self.pool(x) - self.mean) / self.std) @ self.weight + self.bias
        return torch.stack([torch.zeros_like(score), score], 1)


def densenet(n_classes: int) -> nn.Module:
    from monai.networks.nets import DenseNet121

    network: nn.Module = DenseNet121(spatial_dims=2, in_channels=3, out_channels=n_classes)
    return network


def tiny(n_classes: int) -> nn.Module:
    return nn.Sequential(
        *(nn.Conv2d(3, 8, 5, stride=2, padding=2), nn.ReLU()),
        *(nn.Conv2d(8, 16, 3, stride=2, padding=1), nn.ReLU()),
        *(nn.AdaptiveMaxPool2d(1), nn.Flatten(), nn.Linear(16, n_classes)),
    )


def start_from(network: nn.Module, path: str) -> int:
    """Copy the tensors that fit from a state dict with torchvision's or MONAI's names; return their number.

    The last layer keeps its random weights, because its classes are different.
    """
    given = torch.load(path, map_location="cpu", weights_only=True)
    own = network.state_dict()
    fitting = {}
    for name, tensor in given.items():
        parts = name.split(".")
        if len(parts) > 3 and parts[2].startswith("denselayer") and parts[3] != "layers":
            parts.insert(3, "layers")
        renamed = ".".join(parts)
        if renamed in own and own[renamed].shape == tensor.shape and not renamed.startswith("class_layers"):
            fitting[renamed] = tensor
    network.load_state_dict({**own, **fitting})
    return len(fitting)
