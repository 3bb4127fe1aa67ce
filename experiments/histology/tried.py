"""What else was tried for the network: other pictures, other layers, another backbone, by the same folds over patients.

python experiments/histology/tried.py --data FOLDER --out OUT [--weights DENSENET121] [--side 230 --width 350]

It writes tried.json, which the page shows. Whatever is chosen is chosen inside the training patients of a fold.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np
import torch
from images import Labels, folder, pixels
from network import POOLED, PooledEfficientNet, build, densenet, start_from
from numpy.typing import NDArray
from probe import N_OUTER, areas, nested, patient_folds, pooled
from section import Section
from setting import Setting, read_json, read_setting, write_json
from torch import Tensor, nn
from train import classes_of

from gralis.bench import read_labels

Numbers = NDArray[np.float64]
Pixels = NDArray[np.uint8]

ZOOM = 0.7  # of the height and the width
EPOCHS, RATE, BATCH = 8, 1e-4, 32  # of the last blocks, fixed beforehand
TRAINED = ("block 14", "block 15")  # and the last convolution; what comes before them stays frozen


def tried(setting: Setting) -> dict[str, Any]:
    """The areas of every idea. An idea that is known from an earlier run of the same setting is not repeated."""
    where = folder(setting)
    labels = read_labels(where / "labels.csv")
    images = pixels(where, labels, setting.size, setting.path("cache"))
    y = np.array([row["label"] == classes_of(labels)[1] for row in labels])
    network = build(POOLED, 2)
    assert isinstance(network, PooledEfficientNet)
    cache = setting.path("cache")
    done = setting.path("tried.json")
    found = read_json(done) if done.is_file() else {}

    def probed(shown: Pixels) -> dict[str, Any]:
        return nested(pooled(network, shown, cache), labels, y, network.widths, setting.seed).record

    def zoomed() -> dict[str, Any]:
        features = np.mean([pooled(network, view, cache) for view in views(images)], axis=0)
        return nested(features, labels, y, network.widths, setting.seed).record

    ideas: dict[str, Callable[[], dict[str, Any]]] = {
        "the probe of the study": lambda: probed(images),
        "colours of every picture as those of the first": lambda: probed(normalised(images)),
        "last two blocks trained": lambda: areas(fine_tuned(network, images, labels, y, setting.seed), labels, y),
    }
    if setting.weights:
        ideas["DenseNet-121 of typefaces, frozen"] = lambda: of_densenet(setting, images, labels, y)
    ideas["mean of the features over the picture and five zooms"] = zoomed
    for name, idea in ideas.items():
        key = f"{name}, {setting.size[1]} x {setting.size[0]}"
        if key not in found:
            start = time.process_time()
            record = idea()
            seconds = round(time.process_time() - start, 1)
            found[key] = {**{what: record[what] for what in ("patient_auc", "image_auc")}, "seconds": seconds}
            write_json(done, found)
            print(f"{key}: {found[key]}", flush=True)
    return found


def normalised(images: Pixels) -> Pixels:
    """Every picture with the mean and the deviation of the first in the optical density of each channel (Reinhard)."""
    reference = density(images[0])
    goal, width = reference.mean((0, 1)), reference.std((0, 1))
    made = np.empty_like(images)
    for picture, given in zip(made, images, strict=True):
        of = density(given)
        moved = (of - of.mean((0, 1))) / np.maximum(of.std((0, 1)), 1e-6) * width + goal
        picture[...] = np.round(256 * np.exp(-moved) - 1).clip(0, 255)
    return made


def density(picture: Pixels) -> Numbers:
    """-log of the share of light that comes through, (rows, columns, channels)."""
    return -np.log((picture.astype(np.float64) + 1) / 256)


def views(images: Pixels) -> Iterator[Pixels]:
    """The pictures, then their four corners and their middle, enlarged to the full size."""
    yield np.asarray(images)
    sizes = images.shape[1:3]
    parts = [round(ZOOM * n) for n in sizes]
    ends = [n - part for n, part in zip(sizes, parts, strict=True)]
    for top, left in (*product((0, ends[0]), (0, ends[1])), (ends[0] // 2, ends[1] // 2)):
        cut = torch.from_numpy(np.array(images[:, top : top + parts[0], left : left + parts[1]])).permute(0, 3, 1, 2)
        enlarged = [
            nn.functional.interpolate(some.float(), size=sizes, mode="bilinear", align_corners=False).round()
            for some in cut.split(64)
        ]
        yield torch.cat(enlarged).permute(0, 2, 3, 1).to(torch.uint8).numpy()


class LastBlocks(nn.Module):
    """The last blocks of EfficientNet-Lite0 with its ImageNet weights, and a new linear layer with one log-odds."""

    def __init__(self, network: PooledEfficientNet) -> None:
        super().__init__()
        body = copy.deepcopy(network.body)
        self.blocks = nn.Sequential(*(body._blocks[int(name.split()[1])] for name in TRAINED))
        self.head = nn.Sequential(body._conv_head, body._bn1, body._swish)
        self.last = nn.Linear(body._conv_head.out_channels, 1)
        nn.init.zeros_(self.last.weight)
        nn.init.zeros_(self.last.bias)
        self.eval().requires_grad_(True)  # batch norms keep their statistics

    def forward(self, maps: Tensor) -> Tensor:
        return self.last(self.head(self.blocks(maps)).mean((2, 3)))[:, 0]


def fine_tuned(network: PooledEfficientNet, images: Pixels, labels: Labels, y: NDArray[np.bool_], seed: int) -> Numbers:
    """The log-odds of every image by last blocks that were trained on the patients of the other folds."""
    with torch.no_grad():  # everything before them, once
        maps = torch.cat([before(network, images[i : i + 16]) for i in range(0, len(images), 16)])
    folds, truth = patient_folds(labels, N_OUTER, seed), torch.from_numpy(y).float()
    scores = np.zeros(len(y))
    for fold in range(N_OUTER):
        rows, out = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            tail = LastBlocks(network)
        train_last(tail, maps[rows], truth[rows], np.random.default_rng([seed, fold]))
        with torch.no_grad():
            scores[out] = torch.cat([tail(part) for part in maps[out].split(64)]).double().numpy()
    return scores


def before(network: PooledEfficientNet, images: Pixels) -> Tensor:
    """What goes into the last blocks."""
    body = network.body
    batch = torch.from_numpy(np.array(images)).permute(0, 3, 1, 2).float() / 255
    x = body._swish(body._bn0(body._conv_stem((batch - 0.5) / 0.5)))
    for block in body._blocks[: int(TRAINED[0].split()[1])]:
        x = block(x)
    return x


def train_last(tail: nn.Module, maps: Tensor, truth: Tensor, rng: np.random.Generator) -> None:
    """AdamW with a cosine rate and evenly weighted classes, for a number of epochs that was fixed beforehand."""
    share = truth.mean()
    weights = torch.where(truth > 0, 0.5 / share, 0.5 / (1 - share))
    optimiser = torch.optim.AdamW(tail.parameters(), lr=RATE, weight_decay=1e-2)
    n_batches = -(-len(truth) // BATCH)
    rate = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, EPOCHS * n_batches)
    for _ in range(EPOCHS):
        for part in np.array_split(rng.permutation(len(truth)), n_batches):
            given = nn.functional.binary_cross_entropy_with_logits(tail(maps[part]), truth[part], weights[part])
            optimiser.zero_grad()
            given.backward()
            optimiser.step()
            rate.step()


class PooledDenseNet(nn.Module):
    """The mean and the deviation of every channel of DenseNet-121's last map."""

    def __init__(self, weights: str) -> None:
        super().__init__()
        body = densenet(2)
        start_from(body, weights)
        self.features = body.eval().requires_grad_(False).features

    def pool(self, x: Tensor) -> Tensor:
        flat = self.features(x).flatten(2)
        return torch.cat([flat.mean(2), (flat.var(2, correction=0) + 1e-6).sqrt()], 1)


def of_densenet(setting: Setting, images: Pixels, labels: Labels, y: NDArray[np.bool_]) -> dict[str, Any]:
    """A probe on the last map of DenseNet-121, with the penalty chosen as for the others."""
    features = pooled(PooledDenseNet(setting.weights), images, setting.path("cache", "densenet121"))
    choices = [(("last",), penalty) for penalty in (1e-3, 1e-2, 1e-1)]
    return nested(features, labels, y, {"last": features.shape[1]}, setting.seed, choices).record


def tried_section(setting: Setting) -> Section | None:
    """The ideas as a table of the page."""
    path = setting.path("tried.json")
    if not path.is_file():
        return None
    lines = []
    for name, one in read_json(path).items():
        shown = ("{:.3f} ({:.3f} to {:.3f})".format(*one[what]) for what in ("patient_auc", "image_auc"))
        lines.append((*name.rsplit(", ", 1), *shown))
    says = (
        "Areas under the curve with 95% intervals over patients, from the same five folds over all patients. Maps and "
        f"penalties are chosen inside the training patients of a fold. The last blocks are trained for {EPOCHS} epochs "
        "with frozen batch statistics; that number was fixed beforehand. Lines of one size share their pictures, so "
        "that the intervals, which are about patients, overlap more than their differences would."
    )
    return Section("What was tried for the network", says, ("idea", "pixels", "patients", "images"), lines)


if __name__ == "__main__":
    tried(read_setting(__doc__))
