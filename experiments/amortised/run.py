"""Compare a trained explainer with gralis on the same model and regions, before and after the model is updated.

python experiments/amortised/run.py --histology OUT_OF_HISTOLOGY [--data FOLDER] [--out OUT]
python experiments/amortised/run.py [--small] [--out OUT]                    (generated tissue, a small network)

The script writes amortised.json and amortised.md. The reference is Shapley values by plan="values" with a far larger
budget (all coalitions if there are fewer), with their stated error. On a small network gralis spends its time on
overhead, so only the numbers of forwards carry over to large networks.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from cases import Case, generated, odds, of_histology
from explainer import Explainer, Pieces, ask, explain, train
from numpy.typing import NDArray
from torch import Tensor, nn

import gralis
from gralis.bench.text import markdown_table
from gralis.storage import write_text

Values = NDArray[np.float64]


def shapley(network: nn.Module, pieces: Pieces, row: int, budget: int, seed: int) -> gralis.Explanation:
    """Shapley values from forwards only."""
    features = pieces.features[row]
    budget = min(budget, 2**features.n_features)
    options: dict[str, Any] = {"plan": "values", "budget": budget, "batch_size": 32, "seed": seed, "progress": False}
    return gralis.explain(network, pieces.x[row], target=odds, features=features, **options)


def value(network: nn.Module, points: Tensor) -> Tensor:
    with torch.no_grad():
        return torch.cat([odds(network(part)) for part in points.split(32)])


def timed(make: Callable[[], Any]) -> tuple[Any, float]:
    start = time.perf_counter()
    result = make()
    return result, time.perf_counter() - start


def error(estimates: list[Values], truth: list[Values]) -> float:
    """Root mean squared error over all images and regions, relative to the values."""
    a, b = np.concatenate(estimates), np.concatenate(truth)
    return float(np.sqrt(np.mean((a - b) ** 2) / np.mean(b**2)))


def compare(case: Case, *, epochs: int, n_masks: int, budgets: tuple[int, ...], reference: int) -> dict[str, Any]:
    """One line for every method and every model."""
    rows = range(len(case.test.x))
    lines: list[dict[str, Any]] = []
    moved: dict[str, float] = {}
    stated: list[float] = []
    kept: Explainer | None = None
    first_truth: list[Values] = []
    for name, network in case.models:
        long = [shapley(network, case.test, row, reference, seed=99) for row in rows]
        truth = [one.values for one in long]
        stated.append(error([one.values + one.stderr for one in long], truth))
        (own, n_forwards), seconds = timed(partial(_trained, case, network, n_masks, epochs))
        if kept is None:
            kept, first_truth = own, truth
            ways = [("explainer, trained for it", own, n_forwards, seconds)]
        else:
            moved[name] = error(first_truth, truth)
            ways = [("explainer of the first model", kept, 0, 0.0)]
            ways += [("explainer, trained again", own, n_forwards, seconds)]
        for way, explainer, forwards, cost in ways:
            of = partial(explain, explainer, partial(value, network), case.test)
            values, spent = timed(lambda of=of: [of(row) for row in rows])
            paid = {"training_forwards": forwards, "training": cost, "forwards": 2, "inference": spent / len(rows)}
            lines.append({"model": name, "method": way, **paid, "error": error(values, truth)})
        for budget in budgets:
            by = partial(shapley, network, case.test, budget=budget, seed=1)
            answers, spent = timed(lambda by=by: [by(row).values for row in rows])
            paid = {"training_forwards": 0, "training": 0.0, "forwards": budget, "inference": spent / len(rows)}
            lines.append(
                {"model": name, "method": f"gralis, {budget} forwards", **paid, "error": error(answers, truth)}
            )
        print("\n".join(f"{line['model']}: {line['method']}: {line['error']:.3f}" for line in lines), flush=True)
    first = lines[0]
    return {
        "case": case.name,
        "machine": f"{os.cpu_count()} cores, {platform.machine()}, torch {torch.__version__}",
        "lines": lines,
        "moved": moved,
        "images": len(case.train.x),
        "tested": len(rows),
        "reference": reference,
        "stated": max(stated),
        "pays_after": [
            first["training"] / line["inference"]
            for line in lines
            if line["model"] == first["model"] and line["forwards"] > 2
        ],
    }


def _trained(case: Case, network: nn.Module, n_masks: int, epochs: int) -> tuple[Explainer, int]:
    said = ask(partial(value, network), case.train, n_masks)
    return train(case.train, said, case.halvings, epochs=epochs), said.n_forwards


HEAD = ("model", "method", "training, forwards", "training, s", "forwards per image", "s per image", "relative error")


def markdown(comparison: dict[str, Any]) -> str:
    lines = []
    for line in comparison["lines"]:
        cost = (f"{line['training_forwards']:,}", f"{line['training']:.1f}", str(line["forwards"]))
        lines.append((line["model"], line["method"], *cost, f"{line['inference']:.4f}", f"{line['error']:.3f}"))
    pays = ", ".join(f"{n:,.0f}" for n in comparison["pays_after"])
    moved = " and ".join(f"{value:.3f} ({name})" for name, value in comparison["moved"].items())
    return (
        f"# A trained explainer\n\n    {comparison['command']}\n\n"
        f"This run uses {comparison['case']}. The explainer was trained on {comparison['images']} images and tested "
        f"on {comparison['tested']} others. The error is the root mean square difference from Shapley values, relative "
        f"to these values. The Shapley values come from {comparison['reference']:,} forwards per image, and their "
        f"stated error is {comparison['stated']:.3f}. On the same scale, the updates change the true values by "
        f"{moved}. Training takes as many seconds as {pays} explanations by gralis at these budgets, not counting the "
        f"time of the explainer itself per image. The machine has {comparison['machine']}. "
        f"{comparison['remark']}".rstrip()
        + f"\n\n{markdown_table(HEAD, lines)}\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("amortised-output"))
    parser.add_argument("--histology", default="", help="the folder of a run of `make histology`")
    parser.add_argument("--data", default="", help="the pictures of that run, if they were not unpacked in its folder")
    parser.add_argument(
        "--images", type=int, default=200, help="the number of histology images to train the explainer on"
    )
    parser.add_argument("--tested", type=int, default=6, help="the number of images of other patients to compare on")
    parser.add_argument(
        "--reference", type=int, default=1024, help="the number of forwards for the reference Shapley values"
    )
    parser.add_argument("--remark", default="", help="a remark on the circumstances of the run, printed with its times")
    parser.add_argument("--docs", type=Path, default=None, help="also write the text to this file")
    parser.add_argument("--small", action="store_true", help="use generated tissue; takes seconds")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    if given.histology:
        case = of_histology(given.histology, given.data, n_train=given.images, n_test=given.tested)
        comparison = compare(case, epochs=80, n_masks=40, budgets=(128, 256), reference=given.reference)
    elif given.small:
        case = generated(given.out, n_patients=16, n_test=6, grid=3)
        comparison = compare(case, epochs=60, n_masks=64, budgets=(32, 128), reference=2**9)
    else:
        case = generated(given.out, n_patients=160, n_test=40, grid=4)
        comparison = compare(case, epochs=60, n_masks=256, budgets=(64, 256, 1024), reference=2**15)
    sizes = f"--images {given.images} --tested {given.tested} --reference {given.reference}"
    comparison["command"] = f"make amortised HISTOLOGY=FOLDER ARGS='{sizes}'" if given.histology else "make amortised"
    comparison["remark"] = given.remark
    write_text(given.out / "amortised.json", json.dumps(comparison, indent=1) + "\n")
    for path in filter(None, (given.out / "amortised.md", given.docs)):
        write_text(path, markdown(comparison))
    print(markdown(comparison))


if __name__ == "__main__":
    main()
