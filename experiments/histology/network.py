"""The networks: MONAI's DenseNet-121, and a small network for generated images."""

from __future__ import annotations

import torch
from torch import nn


def build(name: str, n_classes: int, weights: str = "") -> nn.Module:
    """The network with this name in eval mode, with the trained weights if a file is given."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = tiny(n_classes) if name == "tiny" else densenet(n_classes)
    if weights:
        network.load_state_dict(torch.load(weights, map_location="cpu", weights_only=True))
    return network.eval()


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
