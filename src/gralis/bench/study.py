"""What is done with every image: these methods, scored by these metrics. The record of one image is plain JSON."""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gralis import targets
from gralis.arrays import Array
from gralis.bench.metric_names import ANNOTATED, check_baseline, parsed, takes
from gralis.bench.repeats import Repeats
from gralis.checks import one_of, whole
from gralis.errors import GralisError, bad
from gralis.faithfulness import METRICS, infidelity
from gralis.faithfulness.fidelity import losses, misfit
from gralis.faithfulness.scored_input import ScoredInput
from gralis.kernels import Gaussian, Kernel, Uniform
from gralis.many.items import Item
from gralis.methods import FROM_LEDGER, METHODS
from gralis.methods.settings import MethodSettings, SharedKeywords
from gralis.problem import Problem
from gralis.results import Attribution
from gralis.targets import Target

__all__ = ["Study", "measure"]

_CURVES = ("deletion", "insertion", "road_morf", "road_lerf", "road_gap")
_NO_UNIT = ("gradcam", "gradcam_lin", "random")  # their sum means nothing: no completeness, infidelity up to a factor
_READOUTS = ("logit", "probability", "log_odds", "margin")
_LEAST = (("budget", 1), ("repeats_on", 0), ("n_repeats", 2), ("steps", 1), ("seed", 0), ("batch_size", 1))
_COUNTS = {"max_sensitivity": "n_perturbations", "stability": "n_runs", "model_randomisation": "stages"}


@dataclass(frozen=True)
class Study:
    """Methods, metrics, and the options that they have in common.

    Parameters
    ----------
    methods : tuple of str, default=all of `gralis.methods.METHODS`
        The methods.
    metrics : tuple of str, default=all of `gralis.faithfulness.METRICS` but road_gap and those of annotations
        The metrics. "deletion:blur" is deletion with the baseline "blur", and "deletion:0" with zeros; in
        "stability:blur" it is the method that starts from that baseline. Metrics of annotations are evaluated on
        images that have one.
    readout : {"logit", "probability", "log_odds", "margin"}, default="logit"
        Which function of the logits the methods explain.
    score_readout : {"logit", "probability", "log_odds", "margin"}, default="probability"
        Which function of the logits the curves follow. A probability has the same scale on every image.
    baseline : float or str, default=0.0
        The baseline of the methods, a number or a name of `gralis.baselines`.
    budget : int, default=1024
        The number of gradients of every ledger.
    sigma : float, default=0.75
        The width of the Gaussian kernel; inf gives the uniform kernel.
    layer : str or None, default=None
        The layer that GradCAM reads; None takes the last one that has maps.
    repeats_on : int, default=5
        On how many images, counted from the first, metrics that run methods again are evaluated.
    n_repeats : int, default=5
        How often those metrics run a method.
    steps : int, default=50
        The number of steps of deletion and insertion.
    seed : int, default=0
        The seed of the study. Every image has a seed that depends on it and on the name of the image.
    batch_size : int, default=8
        The batch size of the model. It is fixed, because sums in another order would change the last digits.

    Examples
    --------
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
    batch_size: int = 8

    def __post_init__(self) -> None:
        for field, allowed in (("methods", METHODS), ("metrics", METRICS)):
            chosen = getattr(self, field)
            for name in chosen if chosen else ("nothing",):
                if (parsed(name)[0] if field == "metrics" else name) not in allowed:
                    raise bad(field, "Study", f"made of {', '.join(allowed)}", repr(name))
            if len(set(chosen)) < len(chosen):
                raise bad(field, "Study", "different names", ", ".join(chosen))
        for metric in self.metrics:
            check_baseline(metric)
        for name in ("readout", "score_readout"):
            one_of(getattr(self, name), _READOUTS, name, "Study")
        for name, least in _LEAST:
            whole(getattr(self, name), name, least, "Study")

    @property
    def kernel(self) -> Kernel:
        """The kernel of the ledgers."""
        return Uniform() if self.sigma == math.inf else Gaussian(self.sigma)

    def settings(self) -> dict[str, Any]:
        """Everything that the numbers depend on, as JSON can hold it."""
        return {**asdict(self), "methods": list(self.methods), "metrics": list(self.metrics), "sigma": str(self.sigma)}

    def seed_of(self, name: str) -> int:
        """The seed of an image. It does not depend on the order of the images or the number of workers."""
        text = f"{self.seed}:{name}".encode("utf-8", "backslashreplace")
        return int.from_bytes(hashlib.sha256(text).digest()[:4], "big")


def measure(
    study: Study, model: object, item: Item, *, repeated: bool, ledger_path: Path | None = None
) -> dict[str, Any]:
    """Every method on one image, scored by every metric. What fails is recorded and does not stop the rest.

    Parameters
    ----------
    study : Study
        Methods, metrics and their options.
    model : torch.nn.Module
        The model.
    item : Item
        The image.
    repeated : bool
        Whether metrics that run methods again are evaluated.
    ledger_path : Path, default=None
        Where the explanation that the methods read is saved; None does not save it.

    Returns
    -------
    dict
        The record, as plain JSON: "image", "about", "target", "n_features", "seed", "attributions", "scores" and
        "timings".
    """
    start = time.perf_counter()
    scoring = _ImageScoring(study, model, item, study.seed_of(item.name))
    attributions, failed = scoring.attributions(ledger_path)
    scores = []
    for metric in study.metrics:
        name = parsed(metric)[0]
        if (takes(name, "method") and not repeated) or (takes(name, "annotation") and item.annotation is None):
            continue
        for method in study.methods:
            if name == "completeness" and method in _NO_UNIT:
                continue
            failure = {"error": failed.get(method)}
            score = failure if method in failed else scoring.score(metric, method, attributions[method])
            scores.append({"method": method, "metric": metric, **score})
    return {
        "image": item.name,
        "about": dict(item.about),
        "target": targets.describe(scoring.goal),
        "n_features": scoring.n_features,
        "seed": scoring.seed,
        "attributions": {name: attribution.values.tolist() for name, attribution in attributions.items()},
        "scores": scores,
        "timings": {**scoring.timings, "all": round(time.perf_counter() - start, 4)},
    }


class _ImageScoring:
    """The methods and metrics on one image."""

    def __init__(self, study: Study, model: object, item: Item, seed: int) -> None:
        self.study, self.model, self.item, self.seed = study, model, item, seed
        k = item.target if item.target is not None else Problem.build(model, item.x, target=0).predicted()
        self.goal, self.score_goal = (_readout(how, k) for how in (study.readout, study.score_readout))
        self.timings: dict[str, float] = {}
        self._losses: tuple[NDArray[np.bool_], Array] | None = None
        options = {"budget": study.budget, "kernel": study.kernel, "layer": study.layer}
        self.repeats = Repeats(study.methods, {**self._common(), **options})

    @property
    def n_features(self) -> int | None:
        """The number of features, if they are known beforehand."""
        return None if self.item.features is None else self.item.features.n_features

    def attributions(self, ledger_path: Path | None) -> tuple[dict[str, Attribution], dict[str, str]]:
        """The attributions by method, and the errors of the methods that failed. One ledger serves all that read it."""
        attributions: dict[str, Attribution] = {}
        failed: dict[str, str] = {}
        ledger = None
        if FROM_LEDGER & set(self.study.methods):
            try:
                with self._timed("ledger"):
                    settings = replace(MethodSettings(**self._common(), budget=self.study.budget), seed=self.seed)
                    ledger = settings.explain(self.model, self.item.x, self.study.kernel)
                    if ledger_path is not None:
                        ledger.save(ledger_path)
            except GralisError as error:
                failed = {name: str(error) for name in self.study.methods if name in FROM_LEDGER}
        for name in [name for name in self.study.methods if name not in failed]:
            try:
                with self._timed(name):
                    made = self.repeats.run([name], self.model, self.item.x, seed=self.seed, ledger=ledger)
                    attributions |= made
            except GralisError as error:
                failed[name] = str(error)
        return attributions, failed

    def score(self, metric: str, method: str, attribution: Attribution) -> dict[str, Any]:
        """The score of one attribution by one metric, or the error."""
        name, baseline = parsed(metric)
        curve = name in _CURVES
        options = {**self._common(), "target": self.score_goal if curve else self.goal, "seed": self.seed}
        if name.startswith("road") and baseline is None:
            del options["baseline"]  # ROAD imputes
        options |= self._extra(name, method, baseline)
        try:
            with self._timed(metric):
                if takes(name, "method") and baseline is not None:
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
        """What F loses without random sets is the same for every method, so it is evaluated once."""
        if self._losses is None:
            keywords: SharedKeywords = {**self._common(), "seed": self.seed}
            with ScoredInput.open(infidelity, self.model, self.item.x, attribution, keywords) as scored:
                self._losses = losses(scored)
        return misfit(*self._losses, attribution.values, normalise)

    @contextmanager
    def _timed(self, what: str) -> Iterator[None]:
        start = time.perf_counter()
        try:
            yield
        finally:
            self.timings[what] = round(self.timings.get(what, 0.0) + time.perf_counter() - start, 4)

    def _extra(self, name: str, method: str, baseline: float | str | None) -> dict[str, Any]:
        """The options that only some metrics take."""
        extra: dict[str, Any] = {} if baseline is None else {"baseline": baseline}
        if name in ("deletion", "insertion"):
            extra["steps"] = self.study.steps
        if name == "infidelity":
            extra["normalise"] = method in _NO_UNIT
        if takes(name, "annotation"):
            extra["annotation"] = self.item.annotation
        if takes(name, "method"):
            extra["method"] = self.repeats.method(method)
        if takes(name, "budget"):
            extra["budget"] = self.study.budget
        if name in _COUNTS:
            extra[_COUNTS[name]] = self.study.n_repeats
        return extra

    def _common(self) -> SharedKeywords:
        return {
            "target": self.goal,
            "baseline": self.study.baseline,
            "features": self.item.features,
            "batch_size": self.study.batch_size,
        }


def _readout(how: str, k: Target) -> Target:
    """This function of the logits of class k; a model with one output has no classes."""
    if not isinstance(k, int):
        return k
    readout: Callable[[int], Target] = getattr(targets, how)
    return readout(k)
