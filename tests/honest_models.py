"""Models on which fixed nodes fail, and their true values by enumeration with many nodes on each ray; no `gralis`."""

from __future__ import annotations

import numpy as np
import torch

from reference import Model, definition_1, gauss_panels, gaussian


def relu_net(n: int, seed: int) -> Model:
    """Two layers of 24 ReLU units."""
    rng = np.random.default_rng(seed)
    first, second, last = rng.normal(size=(24, n)) / n**0.5 * 1.5, rng.normal(size=(24, 24)) / 3.5, rng.normal(size=24)
    shift = torch.tensor(rng.normal(size=24) * 0.3)
    layers = [torch.tensor(w) for w in (first, second, last / 5)]
    return lambda z: torch.relu(torch.relu(z @ layers[0].T + shift) @ layers[1].T + shift) @ layers[2]


def steep(n: int, seed: int, slope: float = 60.0) -> Model:
    """A sigmoid of one direction."""
    rng = np.random.default_rng(seed)
    weights = torch.tensor(rng.uniform(0.5, 1.5, n))
    place = float(weights.sum()) * rng.uniform(0.3, 0.55)
    return lambda z: torch.sigmoid(slope * (z @ weights - place))


def oscillating(n: int, seed: int) -> Model:
    """sin 40 u + 4 u, where u is a weighted mean of the features."""
    weights = torch.tensor(np.random.default_rng(seed).uniform(0.5, 1.0, n))
    return lambda z: torch.sin(40 * (z @ weights) / weights.sum()) + 4 * (z @ weights) / weights.sum()


def smooth(n: int, seed: int) -> Model:
    """One layer of tanh units."""
    rng = np.random.default_rng(seed)
    first, last = torch.tensor(rng.normal(size=(24, n)) / n**0.5 * 1.5), torch.tensor(rng.normal(size=24) / 5)
    return lambda z: torch.tanh(z @ first.T + 0.2) @ last


def true_phi(model: Model, n: int, sigma: float = 0.75, panels: int = 400) -> np.ndarray:
    """Definition 1 at x = 1 from x' = 0, with `panels` Gauss panels on each ray."""
    kernel = gaussian([1.0] * n, sigma, "relative")
    return definition_1(model, np.ones(n), np.zeros(n), kernel, gauss_panels(4, panels))
