"""A trained explainer against gralis on the same model and regions: time, accuracy, and after the model is updated.

python experiments/amortised/run.py --out OUT [--small]

Files: amortised.json, amortised.md. Truth are Shapley values by plan="values" with a budget far above the others'. The
images and the model are those of `make histology-small` (generated tissue, a small network), larger: a trained
explainer needs many images, and truth for all test images must be affordable. The update is a few more epochs of
training with another seed, as when data come in.
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from explainer import explain, train
from numpy.typing import NDArray
from torch import Tensor, nn

import gralis

sys.path.append(str(Path(__file__).parents[1] / "histology"))
from images import generate
from network import tiny

SIDE, GRID = 32, 4
Values = NDArray[np.float64]


def load(folder: Path, n_patients: int, seed: int) -> tuple[Tensor, Tensor]:
    """Generated images, normalised, and their classes."""
    from gralis.bench.source import read_labels
    from gralis.cli.images import Preprocessing

    where = generate(folder, seed, n_patients=n_patients)
    labels = read_labels(where / "labels.csv")
    how = Preprocessing(SIDE, SIDE, (0.8, 0.6, 0.75), (0.2, 0.2, 0.2))
    x = torch.stack([how.tensor(how.picture(where / row["file"])) for row in labels])
    return x, torch.tensor([int(row["label"] == "malignant") for row in labels])


def fit(network: nn.Module, x: Tensor, y: Tensor, epochs: int, rate: float, seed: int) -> nn.Module:
    """The network, trained further."""
    rng, optimiser = np.random.default_rng(seed), torch.optim.Adam(network.parameters(), lr=rate, weight_decay=1e-3)
    network.train()
    for _ in range(epochs):
        for part in np.array_split(rng.permutation(len(x)), -(-len(x) // 32)):
            loss = nn.functional.cross_entropy(network(x[part]), y[part], label_smoothing=0.1)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    return network.eval().requires_grad_(False)


def _odds(logits: Tensor) -> Tensor:
    """What is explained: the log-odds of malignant."""
    return logits[:, 1] - logits[:, 0]


def shapley(network: nn.Module, x: Tensor, budget: int, seed: int) -> Values:
    """Shapley values by forwards only."""
    features = gralis.features.grid(tuple(x.shape), SIDE // GRID)
    options = {"features": features, "plan": "values", "budget": budget, "seed": seed, "progress": False}
    return gralis.explain(network, x, target=_odds, batch_size=64, **options).values  # type: ignore[arg-type]


def timed(make: Callable[[], Any]) -> tuple[Any, float]:
    start = time.perf_counter()
    found = make()
    return found, time.perf_counter() - start


def error(found: list[Values], truth: list[Values]) -> float:
    """Root mean squared error over all images and regions, relative to the values."""
    a, b = np.stack(found), np.stack(truth)
    return float(np.sqrt(np.mean((a - b) ** 2) / np.mean(b**2)))


def compare(
    out: Path, *, n_patients: int, epochs: int, n_test: int, budgets: tuple[int, ...], truth_budget: int
) -> dict[str, Any]:
    x, y = load(out / "generated", n_patients, 5)
    x_train, x_test, y_train = x[:-n_test], x[-n_test:], y[:-n_test]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        drawn = tiny(2)
    before = fit(drawn, x_train, y_train, 6, 0.01, seed=0)
    after = fit(copy.deepcopy(before).requires_grad_(True), x_train, y_train, 4, 0.01, seed=1)
    truths = {
        name: [shapley(network, one, truth_budget, seed=99) for one in x_test]
        for name, network in (("before", before), ("after", after))
    }
    (explainer, n_forwards), training = timed(lambda: train(_value(before), x_train, GRID, epochs=epochs))
    (renewed, _), again = timed(lambda: train(_value(after), x_train, GRID, epochs=epochs))

    lines = []
    for name, network, phi, cost in (
        ("trained explainer", before, explainer, training),
        ("trained explainer, not retrained", after, explainer, 0.0),
        ("trained explainer, retrained", after, renewed, again),
    ):
        found, seconds = timed(lambda f=phi, m=network: [explain(f, _value(m), one) for one in x_test])  # type: ignore[misc]
        lines.append(_line(name, network is after, n_forwards if cost else 0, cost, 2, seconds, found, truths, n_test))
    for budget in budgets:
        for network in (before, after):
            found, seconds = timed(lambda m=network, b=budget: [shapley(m, one, b, seed=1) for one in x_test])  # type: ignore[misc]
            lines.append(
                _line(f"gralis, {budget} forwards", network is after, 0, 0.0, budget, seconds, found, truths, n_test)
            )
    moved = error(truths["before"], truths["after"])
    per_image = [line["inference"] for line in lines if line["method"].startswith("gralis") and not line["updated"]]
    return {
        "lines": lines,
        "truth_moved": moved,
        "images": len(x_train),
        "pays_after": [training / s for s in per_image],
    }


def _value(network: nn.Module) -> Callable[[Tensor], Tensor]:
    return lambda points: _odds(network(points))


def _line(
    name: str,
    updated: bool,
    training_forwards: int,
    training: float,
    forwards: int,
    seconds: float,
    found: list[Values],
    truths: dict[str, list[Values]],
    n_test: int,
) -> dict[str, Any]:
    return {
        "method": name,
        "updated": updated,
        "training_forwards": training_forwards,
        "training": round(training, 2),
        "forwards": forwards,
        "inference": seconds / n_test,
        "error": error(found, truths["after" if updated else "before"]),
    }


def markdown(found: dict[str, Any]) -> str:
    head = (
        "method",
        "model",
        "training, forwards",
        "training, s",
        "forwards per image",
        "s per image",
        "relative error",
    )
    table = [head, ("---",) * len(head)]
    for line in found["lines"]:
        own = (line["method"], "updated" if line["updated"] else "as trained", f"{line['training_forwards']:,}")
        table.append(
            (*own, f"{line['training']:.1f}", str(line["forwards"]), f"{line['inference']:.4f}", f"{line['error']:.3f}")
        )
    shown = "\n".join("| " + " | ".join(line) + " |" for line in table)
    pays = ", ".join(f"{n:,.0f}" for n in found["pays_after"])
    return (
        "# A trained explainer\n\n    make amortised\n\n"
        f"Trained on {found['images']} images. Error: root mean square against Shapley values of a far larger budget, "
        f"relative to them. The update moves the true values by {found['truth_moved']:.3f} on the same scale. In "
        f"seconds, training is worth {pays} explanations by gralis at these budgets (its own time per image "
        f"left out).\n\n{shown}\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("amortised-output"))
    parser.add_argument("--small", action="store_true")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    size = {"n_patients": 16, "epochs": 20, "n_test": 8, "budgets": (64, 256), "truth_budget": 4096}
    large = {"n_patients": 160, "epochs": 60, "n_test": 40, "budgets": (64, 256, 1024), "truth_budget": 32768}
    found = compare(given.out, **(size if given.small else large))  # type: ignore[arg-type]
    for name, text in (("amortised.json", json.dumps(found, indent=1)), ("amortised.md", markdown(found))):
        (given.out / f".{name}").write_text(text)
        os.replace(given.out / f".{name}", given.out / name)
    print(markdown(found))


if __name__ == "__main__":
    main()
