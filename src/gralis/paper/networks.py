"""Random small models in float64, drawn from local generators."""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt

import numpy as np
import torch
from torch import Tensor, nn

from gralis.arrays import Array

Function = Callable[[Tensor], Tensor]


def network(seed: int, n_features: int, hidden: int = 6) -> Function:
    """w . tanh(A softplus(B z + b)), a smooth function with interactions of every order."""
    rng = np.random.default_rng([seed, n_features])
    first = torch.from_numpy(rng.standard_normal((n_features, hidden)) * 1.2 / sqrt(n_features))
    second = torch.from_numpy(rng.standard_normal((hidden, hidden)) / sqrt(hidden))
    last = torch.from_numpy(rng.standard_normal(hidden))
    shift = torch.from_numpy(rng.standard_normal(hidden) / 2)

    def function(z: Tensor) -> Tensor:
        return torch.tanh(nn.functional.softplus(z @ first + shift) @ second) @ last

    return function


def point(seed: int, n_features: int) -> Array:
    """An input whose features differ from 0 by different amounts and in both directions."""
    rng = np.random.default_rng([seed, n_features, 1])
    return rng.choice([-1.0, 1.0], n_features) * rng.uniform(0.5, 1.5, n_features)


class FunctionModule(nn.Module):
    """A function of tensors as a module."""

    def __init__(self, function: Function) -> None:
        super().__init__()
        self.function = function

    def forward(self, z: Tensor) -> Tensor:
        return self.function(z)


def conv_net(seed: int, head: Function | None = None, n_channels: int = 2) -> nn.Sequential:
    """A convolution with ReLU on 3 x 3 positions (layer 1), then a head on its activations (rows, channels, 3, 3)."""
    rng = np.random.default_rng([seed, 9])
    conv = nn.Conv2d(1, n_channels, 3, padding=1).double().requires_grad_(False)
    conv.weight.copy_(torch.from_numpy(rng.standard_normal(conv.weight.shape)))
    conv.bias = nn.Parameter(torch.from_numpy(rng.uniform(0.2, 1.0, n_channels)), requires_grad=False)
    inner = network(seed, 9 * n_channels)
    return nn.Sequential(conv, nn.ReLU(), FunctionModule(head or (lambda a: inner(a.flatten(1))))).eval()


def image(seed: int) -> Tensor:
    """One input for `conv_net`."""
    return torch.from_numpy(np.random.default_rng([seed, 5]).standard_normal((1, 3, 3)))
