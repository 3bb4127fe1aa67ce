"""`accuracy.py --real`: Algorithm 1 and the default plan with 1/20 of its gradients, on real networks.

The truth is a long run of the default plan with its stated error. A cell takes twenty minutes to an hour on one core.
Every finished part (truth, Algorithm 1, ours) is therefore written to the JSON file at once and not computed again.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from report import table, verdict, write
from torch import Tensor, nn
from zoo import GREY, densenet, efficientnet, photograph, superpixels

import gralis
from gralis import Explanation

N_NODES = 10
FRACTION = 20  # ours has the gradients of Algorithm 1 divided by this number
LONG_RUN = 3000
SEEDS = (1, 2, 3)  # of our runs, whose squared errors are averaged
TARGET = 1.0  # RMSE of ours divided by that of Algorithm 1

# A gradient of DenseNet-121 at 224 pixels costs as much as four of EfficientNet-Lite0.
PIXELS = {"efficientnet": 224, "densenet": 128}

DEFAULT = tuple(
    f"{network}/chelsea/{score}/{baseline}"
    for network in PIXELS
    for score in ("logit", "probability")
    for baseline in ("grey", "blur")
)

Part = dict[str, Any]


@dataclass(frozen=True)
class Cell:
    """One prediction of one network on one photograph: network/photograph/score/baseline."""

    name: str
    net: nn.Module
    note: str
    photo: Tensor
    target: Any
    baseline: float | str

    @classmethod
    def load(cls, name: str) -> Cell:
        network, photo_name, score, baseline = name.split("/")
        net, note = (efficientnet(), "ImageNet weights") if network == "efficientnet" else densenet()
        photo = photograph(photo_name, PIXELS[network])
        predicted = int(net(photo[None])[0].argmax())
        target = {"logit": gralis.targets.logit, "probability": gralis.targets.probability}[score](predicted)
        return cls(name, net, note, photo, target, {"grey": GREY, "blur": "blur"}[baseline])

    def explain(self, **options: Any) -> Explanation:
        return gralis.explain(
            self.net,
            self.photo,
            target=self.target,
            baseline=self.baseline,
            features=superpixels(self.photo),
            progress=True,
            **options,
        )


def run_cells(path: Path | None, names: list[str] | None, n_permutations: int, n_nodes: int | None = None) -> None:
    """Compute every cell part by part, and print the table of the complete cells after each."""
    kept = json.loads(path.read_text())["cells"] if path is not None and path.exists() else {}
    long_run = LONG_RUN * n_permutations // 30
    ours = f"ours m={n_permutations}" + (f" n_nodes={n_nodes}" if n_nodes else "")
    wanted = (f"truth {long_run}", f"algorithm 1 m={n_permutations}", ours)
    for name in names or DEFAULT:
        cell: Cell | None = None
        parts = kept.setdefault(name, {})
        for part in wanted:
            if part not in parts:
                cell = cell or Cell.load(name)
                parts["note"] = cell.note
                parts[part] = _compute(cell, part.split()[0], n_permutations, long_run, n_nodes)
                write(path, "accuracy_real", {"cells": kept, "target": TARGET})
        print(show(kept, wanted), flush=True)


def _compute(cell: Cell, part: str, n_permutations: int, long_run: int, n_nodes: int | None) -> list[Part]:
    """One run, or one per seed."""
    if part == "truth":
        return [_plain(cell.explain(budget=long_run, seed=99))]
    if part == "algorithm":
        plan = gralis.plans.permutation(n_permutations=n_permutations, antithetic=True)
        return [_plain(cell.explain(plan=plan, n_nodes=N_NODES, budget=None, coalition_values=False))]
    n_features = superpixels(cell.photo).n_features
    budget = max(n_permutations * n_features * N_NODES // FRACTION, 7 * n_features)
    return [_plain(cell.explain(budget=budget, seed=seed, n_nodes=n_nodes)) for seed in SEEDS]


def _plain(explanation: Explanation) -> Part:
    whole = explanation.to_dict()
    return {key: whole[key] for key in ("values", "stderr", "f_x", "f_baseline", "kernel", "method", "cost")}


def show(cells: dict[str, dict[str, Any]], wanted: tuple[str, str, str]) -> str:
    """The RMSE of both, relative to the long run. Cells without all wanted parts are left out."""
    rows = []
    for name, parts in cells.items():
        if not all(part in parts for part in wanted):
            continue
        (truth,), (theirs,), ours = (parts[part] for part in wanted)
        phi = np.array(truth["values"])
        rmse_theirs = _rms(np.array(theirs["values"]) - phi)
        rmse = _rms(np.stack([part["values"] for part in ours]) - phi)
        row = {
            "cell": name,
            "weights": parts["note"],
            "n": len(phi),
            "rms phi": _rms(phi),
            "truth stderr": _rms(truth["stderr"]),
            "Alg. 1 gradients": theirs["cost"]["n_gradients"],
            "Alg. 1 RMSE": rmse_theirs,
            "gradients": ours[0]["cost"]["n_gradients"],
            "forwards": ours[0]["cost"]["n_forwards"],
            "RMSE": rmse,
            "stated": _rms([part["stderr"] for part in ours]),
            "ratio": rmse / rmse_theirs,
            "target": verdict(rmse / rmse_theirs, TARGET, at_most=True),
            "surrogate": ours[0]["method"].removeprefix("adjusted rays "),
        }
        rows.append(row)
    title = f"real networks, {wanted[2]}, at 1/{FRACTION} of the gradients of {wanted[1]}"
    return table(title, rows) if rows else "no cell is complete yet"


def _rms(numbers: Any) -> float:
    return float(np.sqrt(np.mean(np.square(numbers))))
