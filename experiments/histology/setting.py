"""The setting of the experiment: one value for the command line and for the files of every stage."""

from __future__ import annotations

import argparse
import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Setting:
    """The paper's setting on real images; `small` is the same on generated images with a small network.

    The pictures of 350 x 230 pixels are used whole, at two fifths of their size and with 16 regions, so that the study
    takes less than an hour of one core. The network is a probe on frozen ImageNet features, which tells benign from
    malignant on patients that it has not seen; there is one for every fold over the patients. `--network densenet121
    --side 128 --width 0` trains the paper's network on squares instead.
    """

    data: str = ""  # a folder with labels.csv and the pictures (or a zip of them)
    out: str = "histology-output"
    weights: str = ""  # a state dict to start from
    network: str = "efficientnet-pooled"  # or "densenet121"
    side: int = 92  # the height of the pictures
    width: int = 140  # their width; 0 for squares
    test_share: float = 0.25  # of the patients of each class
    epochs: int = 20
    batch: int = 16
    rate: float = 3e-4
    probe: int = 0  # 1: train only the last layer and keep the backbone frozen
    n_images: int = 40  # held-out images, scored by all metrics
    n_paper: int = 2  # images explained by Algorithm 1
    segments: int = 16
    compactness: float = 50.0
    n_permutations: int = 30
    n_nodes: int = 10
    sigma: float = 0.75
    share: int = 40  # the default plan has 1 / share of Algorithm 1's budget
    repeats_on: int = 2
    n_repeats: int = 2
    steps: int = 20  # of deletion and insertion
    n_curves: int = 10  # images whose deletion is computed for every sigma
    n_shifted: int = 12  # images that are explained again under every shift of stain and compression
    scales: tuple[int, ...] = (10, 20, 30, 50, 100)
    sigmas: tuple[float, ...] = (0.1, 0.2, 0.35, 0.5, 0.75, 1.0, 1.5, 3.0)
    forwards: int = 256  # for the Shapley values of each of them
    seed: int = 0
    workers: int = os.cpu_count() or 1
    note: str = ""  # printed with the quality of the network
    remark: str = ""  # about the circumstances of the run; printed with its times
    docs: str = ""  # also write the text to this file, e.g. docs/experiments/histology.md

    def path(self, *parts: str) -> Path:
        return Path(self.out, *parts)

    @property
    def size(self) -> tuple[int, int]:
        """The height and the width of the pictures."""
        return self.side, self.width or self.side

    def budget(self, n_features: int) -> int:
        """The budget of the default plan: by default a fortieth of 30 permutations x n regions x 10 nodes."""
        whole = self.n_permutations * n_features * self.n_nodes
        return max(self.least_budget(n_features), whole // self.share)

    def least_budget(self, n_features: int) -> int:
        """Enough for a pilot and a few rays for every region."""
        return 6 * n_features + 32


SMALL: dict[str, Any] = {
    "network": "tiny",
    "side": 32,
    "width": 0,
    "epochs": 12,
    "batch": 16,
    "rate": 0.01,
    "n_images": 6,
    "n_paper": 1,
    "segments": 9,
    "n_permutations": 4,
    "n_nodes": 4,
    "share": 1,
    "repeats_on": 1,
    "n_repeats": 2,
    "n_curves": 2,
    "n_shifted": 2,
    "forwards": 64,
    "scales": (4, 9),
    "sigmas": (0.35, 0.75, 1.5),
}


def read_setting(description: str | None) -> Setting:
    """The setting from the command line: --small, and an option for every field."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--small", action="store_true", help="use generated images and a small network; takes minutes")
    for field in fields(Setting):
        kind = {"int": int, "float": float}.get(str(field.type), str)
        if "tuple" not in str(field.type):
            parser.add_argument(f"--{field.name.replace('_', '-')}", type=kind, default=None)
    given = vars(parser.parse_args())
    base = replace(Setting(), **(SMALL if given.pop("small") else {}))
    return replace(base, **{name: value for name, value in given.items() if value is not None})


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write the file completely or not at all, so that a stage that was killed is repeated."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}")
    temporary.write_text(json.dumps(content, indent=1) + "\n")
    os.replace(temporary, path)


def read_json(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(path.read_text())
    return content


def claimed(description: str | None) -> Setting:
    """The setting from the command line, after a check that its folder belongs to it."""
    setting = read_setting(description)
    claim(setting)
    return setting


#: Fields that may change without making the existing results invalid.
_FREE = ("out", "docs", "remark", "note", "workers", "n_images", "n_paper", "n_curves", "n_shifted")
_TRAINING = ("network", "side", "width", "test_share", "epochs", "batch", "rate", "probe", "seed")


def of_training(setting: Setting) -> dict[str, Any]:
    """The fields that determine the network."""
    return {**{name: getattr(setting, name) for name in _TRAINING}, "weights": Path(setting.weights).name}


def claim(setting: Setting) -> None:
    """Check that the folder holds no results of another setting, and record this one."""
    path = setting.path("setting.json")
    given = {**asdict(setting), "data": _content(setting.data, "labels.csv"), "weights": _content(setting.weights)}
    wanted = json.loads(json.dumps({name: v for name, v in given.items() if name not in _FREE}))
    known = read_json(path) if path.is_file() else wanted
    for name in wanted:
        if known.get(name, wanted[name]) != wanted[name]:
            raise SystemExit(
                f"{setting.out} was made with {name} = {known[name]!r}, not {wanted[name]!r}; use another --out."
            )
    write_json(path, wanted)


def _content(place: str, *inside: str) -> str:
    """The name and the hash of a file that determines the results. Its location does not matter."""
    if not place:
        return ""
    path = Path(place, *inside)
    try:
        return f"{path.name} {hashlib.sha256(path.read_bytes()).hexdigest()}"
    except OSError as error:
        raise SystemExit(f"{path} cannot be read: {error.strerror}.") from None
