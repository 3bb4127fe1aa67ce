"""What is asked of every image: these methods, scored by these metrics. The record of one image is plain JSON."""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gralis import faithfulness, targets
from gralis.arrays import Array
from gralis.baselines.recipes import RECIPES
from gralis.bench.repeats import Repeats
from gralis.bench.source import Item
from gralis.checks import whole
from gralis.errors import GralisError, bad
from gralis.explainers import Attribution
from gralis.faithfulness import Score
from gralis.faithfulness.fidelity import losses, misfit
from gralis.faithfulness.scored_input import case
from gralis.kernels import Gaussian, Kernel, Uniform
from gralis.methods.method import Task, Words
from gralis.methods.several import FROM_LEDGER, METHODS
from gralis.problem import Problem
from gralis.targets import Target

ANNOTATED = ("pointing_game", "iou", "mass_inside")  # for images with an annotation
#: The order of the paper; the repeated ones are for the first few images only.
METRICS: Mapping[str, Callable[..., Score]] = MappingProxyType(
    {
        name: getattr(faithfulness, name)
        for name in (
            *("deletion", "insertion", "road_morf", "road_lerf", "road_gap", "infidelity", "completeness"),
            *("gini", "entropy", "locality", "max_sensitivity", "stability", "model_randomisation"),
            *ANNOTATED,
        )
    }
)
REPEATED = ("max_sensitivity", "stability", "model_randomisation")
_CURVES = ("deletion", "insertion", "road_morf", "road_lerf", "road_gap")
_NO_UNIT = ("gradcam", "gradcam_lin", "random")  # their sum means nothing: no completeness, infidelity up to a factor
_READOUTS = ("logit", "probability", "log_odds", "margin")
_LEAST = (("budget", 1), ("repeats_on", 0), ("n_repeats", 2), ("steps", 1), ("seed", 0), ("batch_size", 1))
_COUNTS = {"max_sensitivity": "n_perturbations", "stability": "n_runs", "model_randomisation": "stages"}


@dataclass(frozen=True)
class Study:
    """Methods, metrics and what they have in common.

    `metrics`: names of `gralis.faithfulness`; "deletion:blur" is deletion with the baseline "blur", "deletion:0" with
    zeros; in "stability:blur" it is the method that has that baseline. `readout`: which function of the logits methods
    explain; `score_readout`: which one the curves follow (a probability has the same scale on every image). The
    repeated metrics run on the first `repeats_on` images, `n_repeats` times each; `pointing_game`, `iou` and
    `mass_inside` on those with an annotation.

    >>> Study(methods=("gralis", "random"), metrics=("deletion:blur",)).metrics
    ('deletion:blur',)
    """

    methods: tuple[str, ...] = tuple(METHODS)
    metrics: tuple[str, ...] = tuple(name for name in METRICS if name not in ("road_gap", *ANNOTATED))
    readout: str = "logit"
    score_readout: str = "probability"
    baseline: float | str = 0.0
    budget: int = 1024
    sigma: float = 0.75
    layer: str | None = None
    repeats_on: int = 5
    n_repeats: int = 5
    steps: int = 50
    seed: int = 0
    batch_size: int = 8  # fixed: sums in another order would change the last digits of the table

    def __post_init__(self) -> None:
        for field, allowed in (("methods", METHODS), ("metrics", METRICS)):
            chosen = getattr(self, field)
            for name in chosen if chosen else ("nothing",):
                if (parsed(name)[0] if field == "metrics" else name) not in allowed:
                    raise bad(field, "Study", f"made of {', '.join(allowed)}", repr(name))
            if len(set(chosen)) < len(chosen):
                raise bad(field, "Study", "different names", ", ".join(chosen))
        for metric in self.metrics:
            _require_replacement(metric)
        for name in ("readout", "score_readout"):
            if getattr(self, name) not in _READOUTS:
                raise bad(name, "Study", f"one of {', '.join(_READOUTS)}", repr(getattr(self, name)))
        for name, least in _LEAST:
            whole(getattr(self, name), name, least, "Study")

    @property
    def kernel(self) -> Kernel:
        return Uniform() if self.sigma == math.inf else Gaussian(self.sigma)

    def settings(self) -> dict[str, Any]:
        """Everything that decides the numbers, as JSON keeps it."""
        return {**asdict(self), "methods": list(self.methods), "metrics": list(self.metrics), "sigma": str(self.sigma)}

    def seed_of(self, name: str) -> int:
        """A seed of the image's own, whatever the order or the number of workers."""
        return int.from_bytes(hashlib.sha256(f"{self.seed}:{name}".encode()).digest()[:4], "big")


def measure(
    study: Study, model: object, item: Item, *, repeated: bool, ledger_path: Path | None = None
) -> dict[str, Any]:
    """Every method on one image, scored by every metric; one that fails is recorded and does not stop the rest.

    `ledger_path`: where the explanation that the methods read is saved.
    """
    start = time.perf_counter()
    here = _Here(study, model, item, study.seed_of(item.name))
    found, failed = here.attributions(ledger_path)
    scores = []
    for metric in study.metrics:
        name = parsed(metric)[0]
        if (name in REPEATED and not repeated) or (name in ANNOTATED and item.annotation is None):
            continue
        for method in study.methods:
            if name == "completeness" and method in _NO_UNIT:
                continue
            if method in failed:
                scores.append({"method": method, "metric": metric, "error": failed[method]})
            else:
                scores.append({"method": method, "metric": metric, **here.score(metric, method, found[method])})
    return {
        "image": item.name,
        "about": dict(item.about),
        "target": targets.describe(here.goal),
        "n_features": here.n_features,
        "seed": here.seed,
        "attributions": {name: one.values.tolist() for name, one in found.items()},
        "scores": scores,
        "timings": {**here.timings, "all": round(time.perf_counter() - start, 4)},
    }


class _Here:
    """One image with its target, and the methods on it."""

    def __init__(self, study: Study, model: object, item: Item, seed: int) -> None:
        self.study, self.model, self.item, self.seed = study, model, item, seed
        k = item.target if item.target is not None else Problem.build(model, item.x, target=0).predicted()
        self.goal, self.score_goal = (_readout(how, k) for how in (study.readout, study.score_readout))
        self.timings: dict[str, float] = {}
        self._losses: tuple[NDArray[np.bool_], Array] | None = None
        own = {"budget": study.budget, "kernel": study.kernel, "layer": study.layer}
        self.repeats = Repeats(study.methods, {**self._common(), **own})

    @property
    def n_features(self) -> int | None:
        return None if self.item.features is None else self.item.features.n_features

    def attributions(self, ledger_path: Path | None) -> tuple[dict[str, Attribution], dict[str, str]]:
        """What the methods found, and what went wrong with the others; one ledger for all that read it."""
        found: dict[str, Attribution] = {}
        failed: dict[str, str] = {}
        ledger = None
        if FROM_LEDGER & set(self.study.methods):
            try:
                with self._timed("ledger"):
                    task = replace(Task(**self._common(), budget=self.study.budget), seed=self.seed)
                    ledger = task.explain(self.model, self.item.x, self.study.kernel)
                    if ledger_path is not None:
                        ledger.save(ledger_path)
            except GralisError as error:
                failed = {name: str(error) for name in self.study.methods if name in FROM_LEDGER}
        for name in [name for name in self.study.methods if name not in failed]:
            try:
                with self._timed(name):
                    found |= self.repeats.run([name], self.model, self.item.x, seed=self.seed, ledger=ledger)
            except GralisError as error:
                failed[name] = str(error)
        return found, failed

    def score(self, metric: str, method: str, attribution: Attribution) -> dict[str, Any]:
        name, baseline = parsed(metric)
        curve = name in _CURVES
        options = {**self._common(), "target": self.score_goal if curve else self.goal, "seed": self.seed}
        if name.startswith("road") and baseline is None:
            del options["baseline"]  # its own imputation
        for key, value in self._own(name, method, baseline):
            options[key] = value
        try:
            with self._timed(metric):
                if name in REPEATED and baseline is not None:
                    again = self.repeats.method(method)
                    attribution = again(self.model, self.item.x, seed=self.seed, baseline=baseline)
                if name == "infidelity" and baseline is None:
                    return {"value": self._infidelity(attribution, method in _NO_UNIT), "better": "lower"}
                score = METRICS[name](self.model, self.item.x, attribution, **options)
        except GralisError as error:
            return {"error": str(error)}
        shown: dict[str, Any] = {"value": score.value, "better": score.better}
        if score.curve is not None and curve:
            shown["curve"] = {"at": score.curve.at.tolist(), "values": score.curve.values.tolist()}
        return shown

    def _infidelity(self, attribution: Attribution, normalise: bool) -> float:
        """What F loses without random sets is the same for every method: it is evaluated once."""
        if self._losses is None:
            asked: Words = {**self._common(), "seed": self.seed}
            with case(faithfulness.infidelity, self.model, self.item.x, attribution, asked) as found:
                self._losses = losses(found)
        return misfit(*self._losses, attribution.values, normalise)

    @contextmanager
    def _timed(self, what: str) -> Iterator[None]:
        start = time.perf_counter()
        try:
            yield
        finally:
            self.timings[what] = round(self.timings.get(what, 0.0) + time.perf_counter() - start, 4)

    def _own(self, name: str, method: str, baseline: float | str | None) -> Iterator[tuple[str, Any]]:
        """What only some metrics take."""
        if baseline is not None:
            yield "baseline", baseline
        if name in ("deletion", "insertion"):
            yield "steps", self.study.steps
        if name == "infidelity":
            yield "normalise", method in _NO_UNIT
        if name in ANNOTATED:
            yield "annotation", self.item.annotation
        if name in REPEATED:
            yield "method", self.repeats.method(method)
            yield "budget", self.study.budget
            yield _COUNTS[name], self.study.n_repeats

    def _common(self) -> Words:
        return {
            "target": self.goal,
            "baseline": self.study.baseline,
            "features": self.item.features,
            "batch_size": self.study.batch_size,
        }


def parsed(metric: str) -> tuple[str, float | str | None]:
    """The name of a metric, and by what it replaces if that is said.

    >>> parsed("gini"), parsed("deletion:blur"), parsed("deletion:0")
    (('gini', None), ('deletion', 'blur'), ('deletion', 0.0))
    """
    name, colon, text = metric.partition(":")
    try:
        return name, float(text) if colon else None
    except ValueError:
        return name, text


def _require_replacement(metric: str) -> None:
    name, by = parsed(metric)
    allowed = (*RECIPES, *(() if name in REPEATED else ("noisy-linear",)))  # which no method can start from
    if by is not None and (by not in allowed if isinstance(by, str) else not math.isfinite(by)):
        raise bad("metrics", "Study", f"names with a number or {', '.join(allowed)} after ':', if any", repr(metric))


def _readout(how: str, k: Target) -> Target:
    """This function of the logits, of class k; a model with one number has no classes."""
    if not isinstance(k, int):
        return k
    made: Callable[[int], Target] = getattr(targets, how)
    return made(k)
