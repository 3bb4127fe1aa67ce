"""Nine methods on one photograph at equal cost, their own uncertainty, and their scores.

GRALIS makes one ledger of `budget` gradients and one forward for each coalition. A forward counts as a third of a
gradient. Integrated Gradients then gets as many gradients, and KernelSHAP and LIME as many forwards, as that
ledger cost. The other methods need less than that and cannot use more.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import nn

import gralis
from gralis.bench import Item
from gralis.faithfulness import METRICS
from gralis.methods import METHODS as METHOD
from gralis.problem import Problem
from gralis.results import Attribution

FORWARD = 1 / 3  # of the cost of a gradient
METHODS = (
    *("gralis", "gralis_uniform", "singles"),  # singles is the limit of gralis for sigma -> 0
    *("integrated_gradients", "kernel_shap", "lime"),
    *("gradcam", "occlusion", "random"),
)
SCORES = ("deletion", "insertion", "gini", "completeness")
SAMPLED = ("gralis", "gralis_uniform", "kernel_shap", "lime")  # another seed gives other values
_NO_UNIT = ("gradcam", "random")  # their sum means nothing


@dataclass(frozen=True)
class Task:
    """One photograph, one network, one baseline."""

    network: nn.Module
    item: Item
    baseline: float | str
    budget: int
    steps: int = 10
    batch_size: int = 8

    def record(self, repeated: bool) -> dict[str, Any]:
        """What every method says, what it cost, how sure it is, and how it scores; as plain JSON."""
        k = Problem.build(self.network, self.item.x, target=0).predicted()
        assert isinstance(k, int)
        made, costs = self.attributions(k, seed=0)
        uncertainty = {name: {"stated": relative_error(one)} for name, one in made.items()}
        if repeated:
            again, _ = self.attributions(k, seed=1, names=SAMPLED)
            for name, other in again.items():
                uncertainty[name]["seen"] = spread(made[name], other)
        scores = [
            {"method": name, "metric": metric, **self.score(metric, one, k)}
            for metric in SCORES
            for name, one in made.items()
            if metric != "completeness" or name not in _NO_UNIT
        ]
        return {
            "image": self.item.name,
            "target": gralis.targets.describe(gralis.targets.logit(k)),
            "n_features": self.item.features.n_features if self.item.features else None,
            "attributions": {name: one.values.tolist() for name, one in made.items()},
            "costs": costs,
            "uncertainty": uncertainty,
            "scores": scores,
        }

    def attributions(
        self, k: int, seed: int, names: tuple[str, ...] = METHODS
    ) -> tuple[dict[str, Attribution], dict[str, dict[str, float]]]:
        """The attributions of these methods, and the gradients, forwards and seconds of each."""
        goal = gralis.targets.logit(k)
        common: dict[str, Any] = {"target": goal, "baseline": self.baseline, "features": self.item.features}
        common |= {"batch_size": self.batch_size, "seed": seed}
        model, x = self.network, self.item.x
        made: dict[str, Attribution] = {}
        costs: dict[str, dict[str, float]] = {}

        def keep(
            name: str, method: Callable[[], Attribution], gradients: float, forwards: float, before: float
        ) -> None:
            if name in names:
                start = time.process_time()
                made[name] = method()
                seconds = before + time.process_time() - start
                costs[name] = {"gradients": gradients, "forwards": forwards, "seconds": round(seconds, 3)}

        start = time.process_time()
        kernel = gralis.Gaussian(0.75)
        ledger = gralis.explain(model, x, kernel=kernel, budget=self.budget, progress=False, **common)
        took, cost, n = time.process_time() - start, ledger.cost, ledger.n_features
        whole = cost.n_gradients + FORWARD * cost.n_forwards
        for name in ("gralis", "gralis_uniform"):
            read = METHOD[name]
            keep(name, lambda r=read: r(model, x, ledger=ledger, **common), cost.n_gradients, cost.n_forwards, took)  # type: ignore[misc]
        keep("singles", ledger.singles, 0, n + 1, took * FORWARD * (n + 1) / whole)
        ig = METHOD["integrated_gradients"]
        nodes = round(whole)
        keep("integrated_gradients", lambda: ig(model, x, n_nodes=nodes, budget=nodes, **common), nodes, 0, 0.0)
        start = time.process_time()
        calls = round(whole / FORWARD)
        values = gralis.explain(model, x, plan="values", budget=calls, progress=False, **common)
        took = time.process_time() - start
        keep("kernel_shap", values.kernel_shap, 0, values.cost.n_forwards, took)
        keep("lime", values.lime, 0, values.cost.n_forwards, took)
        keep("gradcam", lambda: METHOD["gradcam"](model, x, **common), 1, 1, 0.0)
        keep("occlusion", lambda: METHOD["occlusion"](model, x, **common), 0, n + 1, 0.0)
        keep("random", lambda: METHOD["random"](model, x, **common), 0, 0, 0.0)
        return made, costs

    def score(self, metric: str, attribution: Attribution, k: int) -> dict[str, Any]:
        """The score of an attribution. The curves follow the probability of the class."""
        curve = metric in ("deletion", "insertion")
        target = gralis.targets.probability(k) if curve else gralis.targets.logit(k)
        options: dict[str, Any] = {"target": target, "baseline": self.baseline, "features": self.item.features}
        options |= {"seed": 0, "batch_size": self.batch_size, **({"steps": self.steps} if curve else {})}
        found = METRICS[metric](self.network, self.item.x, attribution, **options)
        shown: dict[str, Any] = {"value": found.value, "better": found.better}
        if curve and found.curve is not None:
            shown["curve"] = {"at": found.curve.at.tolist(), "values": found.curve.values.tolist()}
        return shown


def relative_error(attribution: Attribution) -> float | None:
    """The stated standard error of a typical value, relative to a typical value; None if the method states none."""
    if attribution.estimate.exact or not np.all(np.isfinite(attribution.stderr)):
        return None
    return float(np.sqrt(np.mean(attribution.stderr**2) / np.mean(attribution.values**2)))


def spread(one: Attribution, other: Attribution) -> float:
    """The standard error that two independent runs show: the root mean square of (a - b) / sqrt(2), relative."""
    typical = np.mean((one.values**2 + other.values**2) / 2)
    return float(np.sqrt(np.mean((one.values - other.values) ** 2) / 2 / typical))
