"""Stage 1: train the network on some patients and test it on others.

python experiments/histology/train.py --data FOLDER --out OUT [--weights STATE_DICT] [--small]

A probe on frozen features is fitted once for every fold over the patients (model-fold-1.pt and so on), and every image
is tested by the network that has not seen its patient. Other networks are trained once (model.pt) on the patients of
split.json, with checkpoint.pt after every epoch, so that a killed run continues. The number of epochs is fixed
beforehand and the last state is used, so the held-out patients influence nothing. The results are in training.json.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from images import Labels, folder, pixels, split
from network import POOLED, PooledEfficientNet, build, start_from
from numpy.typing import NDArray
from parts import WHOLE, model_path, of_fold
from probe import nested, pooled
from scipy.special import expit
from scipy.stats import rankdata
from setting import Setting, claimed, of_training, read_json, write_json
from torch import Tensor, nn

from gralis.bench import read_labels

Numbers = NDArray[np.float64]


def train(setting: Setting) -> dict[str, Any]:
    """Train and test the network and write the results, unless this is done already."""
    done = setting.path("training.json")
    if done.is_file() and read_json(done)["setting"] == of_training(setting):
        return read_json(done)
    where = folder(setting)
    labels = read_labels(where / "labels.csv")
    images = pixels(where, labels, setting.size, setting.path("cache"))
    start = time.perf_counter()
    way = by_folds if setting.network == POOLED else by_split
    record = {"setting": of_training(setting), "classes": classes_of(labels), **way(setting, labels, images)}
    record["seconds_now"] = round(time.perf_counter() - start, 1)
    write_json(done, record)
    return record


def classes_of(labels: Labels) -> list[str]:
    return sorted({row["label"] for row in labels})


def by_folds(setting: Setting, labels: Labels, images: NDArray[np.uint8]) -> dict[str, Any]:
    """A probe on frozen features for every fold; each is tested on the patients of its fold."""
    start, classes = time.perf_counter(), classes_of(labels)
    truth = np.array([classes.index(row["label"]) for row in labels])
    network = build(setting.network, len(classes))
    assert isinstance(network, PooledEfficientNet)
    features = pooled(network, images, setting.path("cache"))
    found = nested(features, labels, truth == 1, network.widths, setting.seed)
    patients, seen = [row["patient"] for row in labels], []
    for fold, probe in enumerate(found.probes):
        probe.into(network)
        save(network, model_path(setting, of_fold(fold)))
        rows = np.flatnonzero(found.folds != fold)
        scores = probe.scores(features[rows])
        seen.append(quality(probabilities(scores), truth[rows], [patients[i] for i in rows]))
    test = quality(probabilities(found.scores), truth, patients)
    return {
        "mean": [0.5] * 3,  # as in its training on ImageNet
        "std": [0.5] * 3,
        "folds": {row["file"]: of_fold(int(fold)) for row, fold in zip(labels, found.folds, strict=True)},
        "log_odds": {row["file"]: float(score) for row, score in zip(labels, found.scores, strict=True)},
        "nested": found.record,
        "seconds": round(time.perf_counter() - start, 1),
        "train": {name: float(np.mean([one[name] for one in seen])) for name in seen[0]},
        "test": {"images": len(labels), "patients": len(set(patients)), **test},
    }


def probabilities(log_odds: Numbers) -> Numbers:
    """The probabilities of both classes, (n, 2)."""
    return np.stack([expit(-log_odds), expit(log_odds)], 1)


def by_split(setting: Setting, labels: Labels, images: NDArray[np.uint8]) -> dict[str, Any]:
    """One network, trained on some patients and tested on the others."""
    classes = classes_of(labels)
    first, held_out = split(labels, setting.test_share, setting.seed)
    write_json(setting.path("split.json"), {"train": [r["file"] for r in first], "test": [r["file"] for r in held_out]})
    index = {row["file"]: i for i, row in enumerate(labels)}
    rows = np.array([index[row["file"]] for row in first])
    truth = torch.tensor([classes.index(row["label"]) for row in labels])
    network = build(setting.network, len(classes))
    mean, std = (stat(images[np.sort(rows)[::4]] / 255.0, axis=(0, 1, 2)) for stat in (np.mean, np.std))
    batches = Batches(images, truth, mean, std)
    n_copied = start_from(network, setting.weights) if setting.weights else 0
    history = fit(network, batches, rows, setting)
    unseen = predict(network, batches, np.array([index[row["file"]] for row in held_out])).clip(1e-12)
    log_odds = np.log(unseen[:, -1] / unseen[:, 0])  # meant for two classes
    save(network, model_path(setting, WHOLE))
    return {
        "n_copied": n_copied,
        "log_odds": {row["file"]: float(score) for row, score in zip(held_out, log_odds, strict=True)},
        "weights": Path(setting.weights).name,
        "history": history,
        "mean": mean.round(4).tolist(),
        "std": std.round(4).tolist(),
        "seconds": round(sum(epoch["seconds"] for epoch in history), 1),
        **{name: tested(network, batches, part, index) for name, part in (("train", first), ("test", held_out))},
    }


def save(network: nn.Module, path: Path) -> None:
    torch.save(network.state_dict(), path.with_suffix(".part"))
    os.replace(path.with_suffix(".part"), path)


class Batches:
    """Batches of pixels as the network sees them."""

    def __init__(self, images: NDArray[np.uint8], truth: Tensor, mean: Numbers, std: Numbers) -> None:
        self.images, self.truth = images, truth
        self.mean, self.std = (torch.tensor(v, dtype=torch.float32).view(3, 1, 1) for v in (mean, std))

    def __call__(self, rows: NDArray[np.int64]) -> tuple[Tensor, Tensor]:
        table = torch.from_numpy(np.stack([self.images[i] for i in rows])).permute(0, 3, 1, 2).float() / 255
        return ((table - self.mean) / self.std).contiguous(memory_format=torch.channels_last), self.truth[rows]


def fit(network: nn.Module, batches: Batches, rows: NDArray[np.int64], setting: Setting) -> list[dict[str, float]]:
    """Train with AdamW, a cosine rate and evenly weighted classes, on augmented images; save every epoch."""
    network.to(memory_format=torch.channels_last)
    if setting.probe:
        network.requires_grad_(False)
        list(network.modules())[-1].requires_grad_(True)
    counts = torch.bincount(batches.truth[rows]).float()
    loss_of = nn.CrossEntropyLoss(weight=counts.sum() / (len(counts) * counts))
    optimiser = torch.optim.AdamW(
        [p for p in network.parameters() if p.requires_grad], lr=setting.rate, weight_decay=1e-4
    )
    steps = setting.epochs * -(-len(rows) // setting.batch)
    rate = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)
    path, history = setting.path("checkpoint.pt"), []
    if path.is_file():
        state = torch.load(path, weights_only=True)
        if state["setting"] == repr(of_training(setting)):
            network.load_state_dict(state["network"])
            optimiser.load_state_dict(state["optimiser"])
            rate.load_state_dict(state["rate"])
            history = state["history"]
    for epoch in range(len(history), setting.epochs):
        start, losses = time.perf_counter(), []
        rng = np.random.default_rng([setting.seed, epoch])  # depends on the epoch only: continuing equals not stopping
        network.train(not setting.probe)  # a frozen backbone also keeps its batch statistics
        for part in np.array_split(rng.permutation(rows), -(-len(rows) // setting.batch)):
            x, y = batches(part)
            x = zoomed(stained(torch.rot90(x, int(rng.integers(4)), (2, 3)), rng), rng)
            loss = loss_of(network(x.flip(3) if rng.random() < 0.5 else x), y)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            rate.step()
            losses.append(float(loss.detach()))
        history.append({"loss": round(float(np.mean(losses)), 4), "seconds": round(time.perf_counter() - start, 1)})
        print(
            f"epoch {epoch + 1} of {setting.epochs}: loss {history[-1]['loss']}, {history[-1]['seconds']} s", flush=True
        )
        state = {"network": network.state_dict(), "optimiser": optimiser.state_dict(), "rate": rate.state_dict()}
        torch.save({**state, "history": history, "setting": repr(of_training(setting))}, path.with_suffix(".part"))
        os.replace(path.with_suffix(".part"), path)
    network.eval()
    return history


def stained(x: Tensor, rng: np.random.Generator) -> Tensor:
    """Vary the stain: scale every channel by up to 20% and shift it by up to half a deviation.

    Slides of one patient share a stain, and a network could recognise patients by it.
    """
    shape = (*x.shape[:2], 1, 1)
    gain, shift = rng.uniform(0.8, 1.2, shape), rng.uniform(-0.5, 0.5, shape)
    return x * torch.from_numpy(gain).float() + torch.from_numpy(shift).float()


def zoomed(x: Tensor, rng: np.random.Generator) -> Tensor:
    """A random square of 70 to 100% of the side, the same for the whole batch, scaled to the full size."""
    side = x.shape[-1]
    part = int(rng.integers(round(0.7 * side), side + 1))
    top, left = rng.integers(0, side - part + 1, 2)
    cut = x[:, :, top : top + part, left : left + part]
    return nn.functional.interpolate(cut, size=(side, side), mode="bilinear", align_corners=False)


def predict(network: nn.Module, batches: Batches, rows: NDArray[np.int64]) -> Numbers:
    """Class probabilities, (n, classes)."""
    with torch.no_grad():
        parts = [network(batches(part)[0]).softmax(1) for part in np.array_split(rows, -(-len(rows) // 16))]
    return torch.cat(parts).double().numpy()


def tested(network: nn.Module, batches: Batches, labels: Labels, index: dict[str, int]) -> dict[str, Any]:
    """How good the network is on these images."""
    rows, patients = np.array([index[row["file"]] for row in labels]), [row["patient"] for row in labels]
    scores = quality(predict(network, batches, rows), batches.truth[rows].numpy(), patients)
    return {"images": len(rows), "patients": len(set(patients)), **scores}


def quality(scores: Numbers, truth: NDArray[np.int64], patients: list[str]) -> dict[str, float]:
    """Accuracy (over images, balanced over classes, over patients by their mean score) and area under the ROC curve."""
    right = scores.argmax(1) == truth
    per_class = [right[truth == k].mean() for k in np.unique(truth)]
    groups: dict[str, list[int]] = {}
    for i, patient in enumerate(patients):
        groups.setdefault(patient, []).append(i)
    voted = [scores[images].mean(0).argmax() == np.bincount(truth[images]).argmax() for images in groups.values()]
    measures = {"accuracy": right.mean(), "balanced_accuracy": np.mean(per_class), "patient_accuracy": np.mean(voted)}
    if scores.shape[1] == 2:
        measures["auc"] = auc(scores[:, 1], truth == 1)
        measures["auc_low"], measures["auc_high"] = auc_over_patients(scores[:, 1], truth == 1, list(groups.values()))
    return {name: round(float(value), 4) for name, value in measures.items()}


def auc_over_patients(
    scores: Numbers, positive: NDArray[np.bool_], groups: Sequence[Sequence[int]], n: int = 2000
) -> tuple[float, float]:
    """A 95% interval of the area by resampling patients, because images of one patient are not independent.

    The patients of each class are resampled separately, so that every draw has both classes.
    """
    rng = np.random.default_rng(0)
    classes = [[images for images in groups if bool(positive[images[0]]) == kind] for kind in (True, False)]
    drawn = []
    for _ in range(n):
        again = [kind[i] for kind in classes for i in rng.integers(len(kind), size=len(kind))]
        rows = np.concatenate(again)
        drawn.append(auc(scores[rows], positive[rows]))
    low, high = np.quantile(drawn, (0.025, 0.975))
    return float(low), float(high)


def auc(scores: Numbers, positive: NDArray[np.bool_]) -> float:
    """The probability that a positive image scores above a negative one; a tie counts half."""
    n, m = int(positive.sum()), int((~positive).sum())
    return float((rankdata(scores)[positive].sum() - n * (n + 1) / 2) / (n * m)) if n and m else float("nan")


if __name__ == "__main__":
    made = train(claimed(__doc__))
    print({key: made[key] for key in ("train", "test", "seconds")})
