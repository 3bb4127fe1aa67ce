"""The small networks that learn planted scenes. Each returns one number per input, the log-odds of class 1."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

__all__ = ["MAKERS", "SentenceNetwork", "VisionTransformer", "trained_network", "trained_trees"]

_BATCH = 64
_RATE = 3e-3


class VisionTransformer(nn.Module):
    """A transformer over the 16 cells of a picture: two layers, four heads, the mean of the tokens."""

    def __init__(self, cell: int = 6, width: int = 32) -> None:
        super().__init__()
        self.cells = nn.Conv2d(3, width, cell, stride=cell)
        self.place = nn.Parameter(torch.randn(1, 16, width) / 10)
        self.blocks = _encoder(width, 2)
        self.head = nn.Linear(width, 1)

    def forward(self, pictures: Tensor) -> Tensor:
        tokens = self.cells(pictures).flatten(2).transpose(1, 2) + self.place  # (rows, 16, width)
        return self.head(self.blocks(tokens).mean(1))[:, 0]  # type: ignore[no-any-return]


class SentenceNetwork(nn.Module):
    """A transformer over embedded words, (rows, words, width). `embed` turns word numbers into them."""

    def __init__(self, n_words: int = 40, length: int = 10, width: int = 32) -> None:
        super().__init__()
        self.words = nn.Embedding(n_words, width)
        self.place = nn.Parameter(torch.randn(1, length, width) / 10)
        self.blocks = _encoder(width, 1)
        self.head = nn.Linear(width, 1)

    def embed(self, words: Tensor) -> Tensor:
        """The embedded words, (..., words, width)."""
        return self.words(words)  # type: ignore[no-any-return]

    def forward(self, embedded: Tensor) -> Tensor:
        return self.head(self.blocks(embedded + self.place).mean(1))[:, 0]  # type: ignore[no-any-return]


def _encoder(width: int, n_layers: int) -> nn.Module:
    layer = nn.TransformerEncoderLayer(width, 4, 2 * width, dropout=0.0, batch_first=True)
    return nn.TransformerEncoder(layer, n_layers, enable_nested_tensor=False)


def _convnet() -> nn.Module:
    return nn.Sequential(
        *(nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 24, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(24, 32, 3, padding=1), nn.ReLU(), nn.AdaptiveMaxPool2d(2), nn.Flatten()),
        *(nn.Linear(128, 32), nn.ReLU(), nn.Linear(32, 1), nn.Flatten(0)),
    )


def _mlp() -> nn.Module:
    return nn.Sequential(*(nn.Linear(12, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 1), nn.Flatten(0)))


#: The networks by name, each made anew by a call.
MAKERS: dict[str, Callable[[], nn.Module]] = {
    "convnet": _convnet,
    "transformer": VisionTransformer,
    "mlp": _mlp,
    "sentences": SentenceNetwork,
}


def trained_network(kind: str, x: NDArray[np.generic], y: NDArray[np.int64], epochs: int, seed: int) -> nn.Module:
    """The network of this kind, trained on x and y. The same seed gives the same weights on the same machine."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = MAKERS[kind]()
        inputs, classes = torch.as_tensor(x), torch.as_tensor(y, dtype=torch.float32)
        optimiser = torch.optim.AdamW(network.parameters(), _RATE, weight_decay=1e-2)
        n_steps = epochs * (len(inputs) // _BATCH)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, _RATE, total_steps=n_steps)
        embed = getattr(network, "embed", lambda given: given)
        for _ in range(epochs):
            order = torch.randperm(len(inputs))
            for step in range(len(inputs) // _BATCH):
                rows = order[step * _BATCH : (step + 1) * _BATCH]
                loss = nn.functional.binary_cross_entropy_with_logits(network(embed(inputs[rows])), classes[rows])
                optimiser.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]
                optimiser.step()
                schedule.step()
    return network.eval()


def trained_trees(x: NDArray[np.generic], y: NDArray[np.int64], seed: int) -> Any:
    """A gradient boosting of scikit-learn, trained on x and y."""
    from sklearn.ensemble import GradientBoostingClassifier

    return GradientBoostingClassifier(n_estimators=60, max_depth=3, random_state=seed).fit(x.astype(np.float64), y)
