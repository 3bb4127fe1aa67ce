"""The functions, networks and inputs on which the canonical triples are tested."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import torch

from reference import Model

N = 4
BASE = np.linspace(-0.4, 0.3, N)


def conv_net(seed: int, head: str = "mlp") -> torch.nn.Sequential:
    """Two channels of 4 x 4 positions, three outputs; no global generator is touched."""
    layers = [torch.nn.Conv2d(1, 2, 3, padding=1), torch.nn.ReLU(inplace=True)]
    if head == "mlp":
        layers += [torch.nn.Flatten(), torch.nn.Linear(32, 6), torch.nn.Tanh(), torch.nn.Linear(6, 3)]
    else:
        layers += [torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(2, 3)]
    net = torch.nn.Sequential(*layers).double().eval()
    rng = np.random.default_rng(seed)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.copy_(torch.from_numpy(rng.standard_normal(parameter.shape)))
    return net


def image(seed: int) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng([seed, 5]).standard_normal((1, 4, 4)))


def mixed(c: float) -> Callable[[torch.Tensor], torch.Tensor]:
    """y_0 + c y_1: the functions of one fixed network and layer that a linear method must respect."""
    return lambda outputs: outputs[:, 0] + c * outputs[:, 1]


def every_mask(n: int) -> np.ndarray:
    return np.array(list(itertools.product([0, 1], repeat=n)))


def values_at(model: Model, x: np.ndarray, base: np.ndarray, masks: np.ndarray) -> np.ndarray:
    return model(torch.from_numpy(np.where(masks, x, base))).numpy()
