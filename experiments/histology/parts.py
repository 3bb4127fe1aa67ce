"""The images of the study, and for each of them a network that has not seen its patient.

The probe on frozen features has one network for each fold over the patients, so that every patient is held out once. A
network that takes long to train has one split into training and held-out patients.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from images import Labels, folder, split, spread
from network import POOLED, build
from setting import Setting, read_json

from gralis.bench import Pictures, read_labels
from gralis.files.images import Preprocessing

WHOLE = ""  # the name of the only part of a setting without folds


@dataclass(frozen=True)
class Part:
    """A network, and the images of the study whose patients it has not seen."""

    setting: Setting
    name: str
    labels: Labels
    repeats_on: int  # for so many of them, metrics that run methods again are evaluated

    def source(self) -> Pictures:
        trained = read_json(self.setting.path("training.json"))
        how = Preprocessing(*self.setting.size, tuple(trained["mean"]), tuple(trained["std"]))
        return Pictures(folder(self.setting), tuple(self.labels), how, self.setting.segments, self.setting.compactness)

    def make_model(self) -> Callable[[], Any]:
        n_classes = len(read_json(self.setting.path("training.json"))["classes"])
        return partial(build, self.setting.network, n_classes, str(model_path(self.setting, self.name)))

    @property
    def folder(self) -> Path:
        """Where the study of this part is."""
        return self.setting.path("study", self.name)


@dataclass(frozen=True)
class Case:
    """An image of the study: its part, its place there, and its line of the labels."""

    part: Part
    index: int
    row: Mapping[str, str]


def model_path(setting: Setting, name: str) -> Path:
    """The file of the network of a part."""
    return setting.path(f"model-{name}.pt" if name else "model.pt")


def of_fold(fold: int) -> str:
    """The name of the part with this number."""
    return f"fold-{fold + 1}"


def held_out(setting: Setting) -> Labels:
    """The images of the study in order. Algorithm 1 uses the first of them."""
    labels = read_labels(folder(setting) / "labels.csv")
    unseen = labels if setting.network == POOLED else split(labels, setting.test_share, setting.seed)[1]
    return spread(unseen, setting.n_images, setting.seed)


def parts(setting: Setting) -> list[Part]:
    """The parts of the study: one for every fold, or one for everything."""
    chosen = held_out(setting)
    if setting.network != POOLED:
        return [Part(setting, WHOLE, chosen, setting.repeats_on)]
    folds = read_json(setting.path("training.json"))["folds"]
    names = sorted(set(folds.values()))
    mine = {name: [row for row in chosen if folds[row["file"]] == name] for name in names}
    share = {name: len(range(place, setting.repeats_on, len(names))) for place, name in enumerate(names)}
    return [Part(setting, name, mine[name], share[name]) for name in names if mine[name]]


def cases(setting: Setting) -> list[Case]:
    """Every image of the study with its part, in the order of the study."""
    known = {row["file"]: Case(part, i, row) for part in parts(setting) for i, row in enumerate(part.labels)}
    return [known[row["file"]] for row in held_out(setting)]
