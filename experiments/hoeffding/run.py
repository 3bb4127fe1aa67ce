"""|phi_i - f_i| as sigma grows: GRALIS averaged over baselines, compared with the Hoeffding terms of the same model.

python experiments/hoeffding/run.py [--out docs/images/hoeffding.png] [--table experiments/hoeffding/table.json]

Theorem 5 says phi_i = f_i for affine F and x' = E[X]. The paper leaves the gap for other models to a study. For single
features the script computes phi_i of every sigma from one ledger. For pairs it computes the Moebius coefficient of the
averaged game, which *is* the Hoeffding term for every square-integrable F under independent inputs. The remaining
difference is the error of the sample.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

import gralis

N_FEATURES, N_BASELINES = 5, 400
SIGMAS = (0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 2.0, 5.0, np.inf)


def models() -> dict[str, Callable[[Tensor], Tensor]]:
    rng = np.random.default_rng(3)
    slopes = torch.from_numpy(rng.normal(size=N_FEATURES))
    first = torch.from_numpy(rng.normal(size=(N_FEATURES, 16)) * 1.2)
    last = torch.from_numpy(rng.normal(size=16) / 4)
    pairs = torch.from_numpy(np.triu(rng.normal(size=(N_FEATURES, N_FEATURES)), 1))
    return {
        "affine": lambda z: z @ slopes + 1,
        "bilinear": lambda z: z @ slopes + ((z @ pairs) * z).sum(1),
        "tanh network": lambda z: torch.tanh(z @ first) @ last,
    }


def study(model: Callable[[Tensor], Tensor]) -> dict[str, Any]:
    """The gaps, relative to the root mean square of the first-order Hoeffding terms."""
    rng = np.random.default_rng(0)
    x = torch.from_numpy(rng.uniform(-1, 1, N_FEATURES))
    half = rng.uniform(-1, 1, (N_BASELINES // 2, N_FEATURES))
    background = np.concatenate([half, -half])  # antithetic, so that the mean is E[X]
    truth = gralis.hoeffding(model, x.numpy(), [(-1.0, 1.0)] * N_FEATURES, max_order=2)
    single = np.array([truth.terms[(i,)] for i in range(N_FEATURES)])
    explanation = gralis.explain(
        model, x, baseline=gralis.baselines.sample(background), plan="exhaustive", kernel=gralis.Uniform(), budget=None
    )
    moebius = explanation.moebius(2)
    chosen = [key for key in moebius if len(key) == 2]
    pairs = np.array([truth.terms[key] for key in chosen])
    gap_pairs = np.array([moebius[key] for key in chosen]) - pairs
    gaps = explanation.sweep(SIGMAS).values - single
    scale = float(np.sqrt((single**2).mean()))
    return {
        "singles": [float(np.sqrt((gap**2).mean()) / scale) for gap in gaps],
        "moebius_singles": float(np.sqrt(np.mean([(moebius[i] - single[i]) ** 2 for i in range(N_FEATURES)])) / scale),
        "pairs": float(np.sqrt((gap_pairs**2).mean()) / scale),
        "rms_pairs": float(np.sqrt((pairs**2).mean()) / scale),
    }


def draw(table: dict[str, Any], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4), layout="constrained")
    places = np.arange(len(SIGMAS))
    for (name, gaps), colour in zip(table["models"].items(), ("#0072B2", "#E69F00", "#009E73"), strict=True):
        axes.plot(places, gaps["singles"], "o-", color=colour, label=name)
        axes.axhline(gaps["moebius_singles"], color=colour, linestyle=":", linewidth=1)
    axes.set_xticks(places, [f"{s:g}" if np.isfinite(s) else "uniform" for s in SIGMAS])
    axes.set_xlabel("sigma (relative)")
    axes.set_ylabel("rms of phi_i - f_i, over rms of f_i")
    axes.legend(title="dotted: Moebius coefficient\nof the averaged game")
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("docs/images/hoeffding.png"))
    parser.add_argument("--table", type=Path, default=Path("experiments/hoeffding/table.json"))
    arguments = parser.parse_args()
    sigmas = [float(s) if np.isfinite(s) else "uniform" for s in SIGMAS]
    table = {"sigmas": sigmas, "models": {name: study(model) for name, model in models().items()}}
    arguments.table.write_text(json.dumps(table, indent=1) + "\n")
    draw(table, arguments.out)
    for name, gaps in table["models"].items():
        print(name, *(f"{gap:.3g}" for gap in gaps["singles"]), f"| Moebius {gaps['moebius_singles']:.3g}")


if __name__ == "__main__":
    main()
