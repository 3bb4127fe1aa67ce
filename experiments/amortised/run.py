"""A trained explainer against gralis on the same model and regions: time, accuracy, and after the model is updated.

python experiments/amortised/run.py --out OUT [--small]

Files: amortised.json, amortised.md. Truth are Shapley values by plan="values" with 2^15 forwards, or all coalitions if
there are fewer. The images and the model are those of `make histology-small` (generated tissue, a small network), only
more of them: a trained explainer needs many images, and truth must be affordable for all test images. With so small a
network the time of gralis is mostly overhead; forwards are what carries over to large ones.
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import sys
import time
from collections.abc import Callable
from functools import partial
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

SIDE = 24
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


def shapley(network: nn.Module, x: Tensor, grid: int, budget: int, seed: int) -> Values:
    """Shapley values by forwards only."""
    features = gralis.features.grid(tuple(x.shape), SIDE // grid)
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


def models(x: Tensor, y: Tensor) -> dict[str, nn.Module]:
    """The model, the same after a few more epochs, and one trained anew."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        first, second = tiny(2), tiny(2)
    trained = fit(first, x, y, 6, 0.01, seed=0)
    tuned = fit(copy.deepcopy(trained).requires_grad_(True), x, y, 4, 0.01, seed=1)
    return {"as trained": trained, "fine-tuned": tuned, "trained anew": fit(second, x, y, 6, 0.01, seed=2)}


def compare(
    out: Path, *, n_patients: int, epochs: int, n_test: int, budgets: tuple[int, ...], grid: int
) -> dict[str, Any]:
    """A line for every way and every model."""
    x, y = load(out / "generated", n_patients, 5)
    x_train, x_test = x[:-n_test], x[-n_test:]
    lines: list[dict[str, Any]] = []
    moved: dict[str, float] = {}
    kept, first_truth, first_seconds = None, None, 0.0
    for name, network in models(x_train, y[:-n_test]).items():
        truth = [shapley(network, one, grid, 2 ** min(grid * grid, 15), seed=99) for one in x_test]
        value = partial(_value, network)
        (own, n_forwards), seconds = timed(partial(train, value, x_train, grid, epochs=epochs))
        if kept is None or first_truth is None:
            kept, first_truth, first_seconds = own, truth, seconds
            ways = [("explainer, trained for it", own, n_forwards, seconds)]
        else:
            moved[name] = error(first_truth, truth)
            ways = [
                ("explainer of the first model", kept, 0, 0.0),
                ("explainer, trained again", own, n_forwards, seconds),
            ]
        for way, explainer, forwards, cost in ways:
            found, spent = timed(partial(_all, partial(explain, explainer, value), x_test))
            paid = {"training_forwards": forwards, "training": cost, "forwards": 2}
            lines.append(
                {"model": name, "method": way, **paid, "inference": spent / n_test, "error": error(found, truth)}
            )
        for budget in budgets:
            found, spent = timed(partial(_all, partial(_shapley, network, grid, budget), x_test))
            paid = {"training_forwards": 0, "training": 0.0, "forwards": budget}
            way = f"gralis, {budget} forwards"
            lines.append(
                {"model": name, "method": way, **paid, "inference": spent / n_test, "error": error(found, truth)}
            )
    per_image = [line["inference"] for line in lines if line["model"] == "as trained" and line["forwards"] > 2]
    return {
        "lines": lines,
        "moved": moved,
        "images": len(x_train),
        "pays_after": [first_seconds / s for s in per_image],
    }


def _all(way: Callable[[Tensor], Values], images: Tensor) -> list[Values]:
    return [way(one) for one in images]


def _value(network: nn.Module, points: Tensor) -> Tensor:
    return _odds(network(points))


def _shapley(network: nn.Module, grid: int, budget: int, x: Tensor) -> Values:
    return shapley(network, x, grid, budget, seed=1)


def markdown(found: dict[str, Any]) -> str:
    head = (
        "model",
        "method",
        "training, forwards",
        "training, s",
        "forwards per image",
        "s per image",
        "relative error",
    )
    table = [head, ("---",) * len(head)]
    for line in found["lines"]:
        cost = (f"{line['training_forwards']:,}", f"{line['training']:.1f}", str(line["forwards"]))
        table.append((line["model"], line["method"], *cost, f"{line['inference']:.4f}", f"{line['error']:.3f}"))
    shown = "\n".join("| " + " | ".join(line) + " |" for line in table)
    pays = ", ".join(f"{n:,.0f}" for n in found["pays_after"])
    moved = " and ".join(f"{value:.3f} ({name})" for name, value in found["moved"].items())
    return (
        "# A trained explainer\n\n    make amortised\n\n"
        f"Trained on {found['images']} images. Error: root mean square against Shapley values of a far larger budget, "
        f"relative to them. The updates move the true values by {moved} on the same scale. In seconds, training is "
        f"worth {pays} explanations by gralis at these budgets (its own time per image left out).\n\n{shown}\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("amortised-output"))
    parser.add_argument("--small", action="store_true")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    size = {"n_patients": 16, "epochs": 20, "n_test": 6, "budgets": (32, 128), "grid": 3}
    large = {"n_patients": 160, "epochs": 60, "n_test": 40, "budgets": (64, 256, 1024), "grid": 4}
    found = compare(given.out, **(size if given.small else large))  # type: ignore[arg-type]
    for name, text in (("amortised.json", json.dumps(found, indent=1)), ("amortised.md", markdown(found))):
        (given.out / f".{name}").write_text(text)
        os.replace(given.out / f".{name}", given.out / name)
    print(markdown(found))


if __name__ == "__main__":
    main()
