"""MS-GRALIS: phi_i = sum over levels of lambda_l phi_i^(l), levels brought to common features, least variance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Unpack

import numpy as np

from gralis.arrays import Array
from gralis.errors import GralisError, bad
from gralis.estimators import Estimate
from gralis.features import Features, coordinates
from gralis.features.overlap import overlap
from gralis.options import Choices
from gralis.scales.levels import Level
from gralis.scales.result import LevelResult, MultiScale
from gralis.scales.weights import given, minimum_variance
from gralis.targets import Target

__all__ = ["MultiScale", "minimum_variance", "multiscale"]

_REPLICATES = 12


def multiscale(
    model: object,
    x: object,
    levels: Sequence[object],
    *,
    weights: str | Sequence[float] = "inverse-variance",
    on: Features | Literal["finest", "pixels"] = "finest",
    per_feature: bool = False,
    target: Target = None,
    **options: Unpack[Choices],
) -> MultiScale:
    """Explanations at several levels, combined on common features with the weights of least variance.

    A level is Features of the input, a number of superpixels, a layer (its spatial cells), a pair (layer, Features of
    its output), or an Explanation that is already there. `on`: the common features, the finest input level if not
    given, or "pixels". Weights: "inverse-variance" (the minimum if levels are independent), "covariance",
    "nonnegative" (a quadratic program), "uniform", or one number per level; chosen for all features together, or
    `per_feature`. Other options go to `explain`, which runs once per level with the same seed.

    >>> import torch
    >>> model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(16, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
    >>> x = torch.rand(1, 4, 4)
    >>> from gralis.features import grid
    >>> found = multiscale(model.eval(), x, [grid(x.shape, 1), grid(x.shape, 2)], weights="uniform", budget=300)
    >>> found.weights.tolist(), found.to_input().shape
    ([0.5, 0.5], (1, 4, 4))
    """
    if isinstance(levels, str) or not isinstance(levels, Sequence) or not levels:
        raise bad("levels", "multiscale", "a list with at least one level", repr(levels))
    if "features" in options or "layer" in options:
        raise GralisError("multiscale takes features and layers from levels=[...]; leave features= and layer= out.")
    asked = [Level.of(level, x) for level in levels]
    options.setdefault("replicates", _REPLICATES)
    explained = [level.explain(model, x, {**options, "target": target}) for level in asked]
    common = _common(on, asked)
    mapped = [found.estimate.combined(overlap(found.features, common)) for found in explained]
    results = [
        LevelResult(level.name, found, estimate)
        for level, found, estimate in zip(asked, explained, mapped, strict=True)
    ]
    departures = _departures(mapped)
    chosen, method = _weights(weights, departures, per_feature)
    variances = (departures**2).sum(1) / _degrees(departures)  # (n_levels, n_features)
    return MultiScale(
        _combination(mapped, departures, chosen, method),
        common,
        tuple(results),
        chosen if per_feature else chosen[:, 0],
        method,
        (chosen**2 * variances).sum(0),
        _measured(weights, mapped, departures, per_feature),
    )


def _common(on: Features | str, levels: Sequence[Level]) -> Features:
    """The features that all levels are brought to."""
    if isinstance(on, Features):
        return on
    inputs = [level.features for level in levels if level.layer is None and level.features is not None]
    if on not in ("finest", "pixels") or not inputs:
        allowed = "Features of the input" + ("" if not inputs else ", 'finest' or 'pixels'")
        raise bad("on", "multiscale", allowed, repr(on), "Levels that are all layers need on=Features of the input.")
    finest = max(inputs, key=lambda features: features.n_features)
    return finest if on == "finest" else coordinates(finest.shapes[0])


def _departures(estimates: Sequence[Estimate]) -> Array:
    """(n_levels, n_replicates, n_features); a level that is exact departs nowhere."""
    counts = {len(estimate.departures) for estimate in estimates if not estimate.exact}
    if len(counts) > 1:
        raise GralisError(
            f"The levels have {sorted(counts)} replicates, so their covariance cannot be told; explain them with the "
            f"same replicates=."
        )
    n_replicates = counts.pop() if counts else 2
    still = [np.zeros((n_replicates, len(e.values))) if e.exact else e.departures for e in estimates]
    return np.stack(still)


def _degrees(departures: Array) -> int:
    n_replicates = int(departures.shape[1])
    return n_replicates * (n_replicates - 1)


def _weights(weights: str | Sequence[float], departures: Array, per_feature: bool) -> tuple[Array, str]:
    """(n_levels, n_features or 1), and the method's name."""
    n_levels = len(departures)
    if not isinstance(weights, str):
        return given(weights, n_levels)[:, None], "given"
    if weights == "uniform" or not per_feature:
        pooled = np.einsum("arf,brf->ab", departures, departures)
        return minimum_variance(pooled, weights)[:, None], weights
    if n_levels >= departures.shape[1]:
        raise GralisError(
            f"Weights per feature for {n_levels} levels need more replicates than the {departures.shape[1]} there are; "
            f"raise replicates=, or leave per_feature=False."
        )
    each = np.einsum("arf,brf->fab", departures, departures)
    return np.stack([minimum_variance(sigma, weights) for sigma in each], axis=1), weights


def _combination(estimates: Sequence[Estimate], departures: Array, weights: Array, method: str) -> Estimate:
    values = sum(
        (w * e.values for w, e in zip(weights, estimates, strict=True)), start=np.zeros_like(estimates[0].values)
    )
    counted = [e.carriers for e in estimates if e.carriers is not None]
    return Estimate(
        np.asarray(values),
        (weights[:, None] * departures).sum(0),
        f"{len(estimates)} levels, {method} weights",
        all(e.exact for e in estimates),
        np.min(counted, axis=0) if counted else None,
    )


def _measured(
    weights: str | Sequence[float], estimates: Sequence[Estimate], departures: Array, per_feature: bool
) -> Array:
    """Jackknife: the variance of the combination when each replicate in turn is left out and the weights chosen anew.

    Levels answer different questions, so weights that depend on the sample move the result between the answers.
    """
    n = departures.shape[1]
    values = np.stack([estimate.values for estimate in estimates])
    kept = []
    for left_out in range(n):
        others = np.delete(departures, left_out, axis=1)
        chosen, _ = _weights(weights, others - others.mean(1, keepdims=True), per_feature)
        kept.append((chosen * (values - departures[:, left_out] / (n - 1))).sum(0))
    return np.asarray((n - 1) ** 2 / n * np.var(kept, axis=0, ddof=1))
