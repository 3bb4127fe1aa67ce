"""The cases to explain: the network and superpixels of `make histology`, or generated tissue and a small network."""

from __future__ import annotations

import copy
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from explainer import Pieces
from torch import Tensor, nn

import gralis
from gralis.bench import Pictures, read_labels
from gralis.files.images import Preprocessing

sys.path.append(str(Path(__file__).parents[1] / "histology"))
from images import Labels, folder, generate, pixels, split, spread
from network import POOLED, tiny
from parts import Part, parts
from setting import Setting, read_json
from train import Batches
from train import fit as train_further


@dataclass(frozen=True)
class Case:
    """Images to train and to test the explainer on. `models` yields the model and then its updates."""

    name: str
    train: Pieces
    test: Pieces
    halvings: int
    models: Iterator[tuple[str, nn.Module]]


def odds(logits: Tensor) -> Tensor:
    """The explained output: the log-odds of malignant."""
    return logits[:, 1] - logits[:, 0]


def of_histology(out: str, data: str, n_train: int, n_test: int) -> Case:
    """The network that `make histology` wrote to its folder, with images of its training and held-out patients."""
    where = Path(data or Path(out, "pictures"))
    if not Path(out, "training.json").is_file() or not (where / "labels.csv").is_file():
        raise SystemExit(f"{out} must be the folder of a finished `make histology`, and {where} its pictures.")
    known = read_json(Path(out, "setting.json"))
    lists = {name: tuple(known[name]) for name in ("scales", "sigmas")}
    setting = Setting(**{**known, **lists, "out": out, "data": str(where)})
    chosen = parts(setting)[0]
    labels = read_labels(where / "labels.csv")
    first, held_out = _sides(setting, chosen, labels)
    train, test = (
        _load(replace(chosen, labels=spread(side, n, setting.seed)).source())
        for side, n in ((first, n_train), (held_out, n_test))
    )
    models = _probes(setting) if setting.network == POOLED else _histology_models(setting, first)
    return Case("the histology network", train, test, 3, models)


def _sides(setting: Setting, part: Part, labels: Labels) -> tuple[Labels, Labels]:
    """The images of the patients that the network of the part has seen, and those of the others."""
    if setting.network != POOLED:
        return split(labels, setting.test_share, setting.seed)
    folds = read_json(setting.path("training.json"))["folds"]
    unseen = [row for row in labels if folds[row["file"]] == part.name]
    return [row for row in labels if folds[row["file"]] != part.name], unseen


def _probes(setting: Setting) -> Iterator[tuple[str, nn.Module]]:
    """The networks of two folds: the update was fitted on other patients."""
    for name, part in zip(("as trained", "fitted on other patients"), parts(setting), strict=False):
        yield name, part.make_model()().requires_grad_(False)


def _histology_models(setting: Setting, first: Labels) -> Iterator[tuple[str, nn.Module]]:
    network = parts(setting)[0].make_model()()
    yield "as trained", network.requires_grad_(False)
    labels = read_labels(folder(setting) / "labels.csv")
    trained = read_json(setting.path("training.json"))
    index = {row["file"]: i for i, row in enumerate(labels)}
    rows = np.array([index[row["file"]] for row in first])
    truth = torch.tensor([trained["classes"].index(row["label"]) for row in labels])
    images = pixels(folder(setting), labels, setting.size, setting.path("cache"))
    batches = Batches(images, truth, np.array(trained["mean"]), np.array(trained["std"]))
    again = replace(setting, out=str(setting.path("updated")), epochs=1, seed=setting.seed + 1)
    again.path().mkdir(exist_ok=True)
    updated = copy.deepcopy(network).requires_grad_(True)
    train_further(updated, batches, rows, again)
    yield "one epoch later", updated.eval().requires_grad_(False)


def _load(source: Pictures) -> Pieces:
    items = [source.load(number) for number in range(len(source.names()))]
    return Pieces(torch.stack([one.x for one in items]), [one.features for one in items if one.features is not None])


def generated(out: Path, n_patients: int, n_test: int, grid: int) -> Case:
    """Generated tissue in a grid of regions, and a network that trains in seconds."""
    side = 24
    where = generate(out / "generated", 5, n_patients=n_patients)
    labels = read_labels(where / "labels.csv")
    how = Preprocessing(side, side, (0.8, 0.6, 0.75), (0.2, 0.2, 0.2))
    x = torch.stack([how.tensor(how.picture(where / row["file"])) for row in labels])
    y = torch.tensor([int(row["label"] == "malignant") for row in labels])
    features = [gralis.features.grid(tuple(x.shape[1:]), side // grid)] * len(x)
    train, test = (Pieces(x[own], features[own]) for own in (slice(None, -n_test), slice(-n_test, None)))
    return Case("generated tissue", train, test, 1, _generated_models(train.x, y[:-n_test]))


def _generated_models(x: Tensor, y: Tensor) -> Iterator[tuple[str, nn.Module]]:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        first, second = tiny(2), tiny(2)
    trained = _fit(first, x, y, 6, seed=0)
    yield "as trained", trained
    yield "fine-tuned", _fit(copy.deepcopy(trained).requires_grad_(True), x, y, 4, seed=1)
    yield "trained from scratch", _fit(second, x, y, 6, seed=2)


def _fit(network: nn.Module, x: Tensor, y: Tensor, epochs: int, seed: int) -> nn.Module:
    """Train the network for some more epochs."""
    rng, optimiser = np.random.default_rng(seed), torch.optim.Adam(network.parameters(), lr=0.01, weight_decay=1e-3)
    network.train()
    for _ in range(epochs):
        for part in np.array_split(rng.permutation(len(x)), -(-len(x) // 32)):
            loss = nn.functional.cross_entropy(network(x[part]), y[part], label_smoothing=0.1)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    return network.eval().requires_grad_(False)
