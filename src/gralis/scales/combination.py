"""`multiscale` (MS-GRALIS): phi_i = sum over levels of lambda_l phi_i^(l), on common features, with least variance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Unpack

import numpy as np

from gralis.api.signature import options_of_explain
from gralis.arrays import Array
from gralis.errors import GralisError, bad
from gralis.estimators import Estimate
from gralis.features import Features, coordinates
from gralis.features.overlap import overlap
from gralis.options import Choices
from gralis.scales.levels import Level
from gralis.scales.result import LevelResult, MultiScale
from gralis.scales.weights import checked_weights, minimum_variance
from gralis.targets import Target

__all__ = ["multiscale"]

_REPLICATES = 12


@options_of_explain(without=("features", "layer"))
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
    """phi_i = sum over levels of lambda_l phi_i^(l): levels combined on common features with the least variance.

    The other options are those of `explain`, which runs once per level with the same seed and, unless `replicates` is
    given, with 12 replicates.

    Parameters
    ----------
    model : object
        Any model that `explain` takes.
    x : array or tensor
        The input that is explained.
    levels : sequence
        The levels. Each is a `Features` of the input, a number of superpixels, a layer (a module or its name, of which
        the spatial cells are the features), a pair (layer, `Features` of its output), or an `Explanation` of x.
    weights : str or sequence of float, default="inverse-variance"
        How the levels are weighted: "inverse-variance", "covariance", "nonnegative" or "uniform", as in
        `gralis.scales.minimum_variance`, or one number per level with the sum 1.
    on : Features, "finest" or "pixels", default="finest"
        The common features of the result: these features, those of the finest level on the input, or every coordinate.
    per_feature : bool, default=False
        Whether the weights are chosen for each feature separately. By default all features share the weights.
    target : int, tuple or callable, optional
        Which output of the model is explained, as in `explain`.

    Returns
    -------
    MultiScale
        The combined values with their errors, the weights, and the explanation of every level.

    Examples
    --------
    >>> import torch
    >>> model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(16, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
    >>> x = torch.rand(1, 4, 4)
    >>> from gralis.features import grid
    >>> result = multiscale(model.eval(), x, [grid(x.shape, 1), grid(x.shape, 2)], weights="uniform", budget=300)
    >>> result.weights.tolist(), result.to_input().shape
    ([0.5, 0.5], (1, 4, 4))
    """
    if isinstance(levels, str) or not isinstance(levels, Sequence) or not levels:
        raise bad("levels", "multiscale", "a list with at least one level", repr(levels))
    if "features" in options or "layer" in options:
        raise GralisError("multiscale takes features and layers from levels=[...]; leave features= and layer= out.")
    resolved = [Level.of(level, x) for level in levels]
    options.setdefault("replicates", _REPLICATES)
    explained = [level.explain(model, x, {**options, "target": target}) for level in resolved]
    common = _common(on, resolved)
    mapped = [level.estimate.combined(overlap(level.features, common)) for level in explained]
    results = map(LevelResult, [level.name for level in resolved], explained, mapped)
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
        next((level.form for level in explained if level.features.shapes == common.shapes), None),
    )


def _common(on: Features | str, levels: Sequence[Level]) -> Features:
    """The features on which the levels are combined."""
    if isinstance(on, Features):
        return on
    inputs = [level.features for level in levels if level.layer is None and level.features is not None]
    if on not in ("finest", "pixels") or not inputs:
        allowed = "Features of the input" + ("" if not inputs else ", 'finest' or 'pixels'")
        raise bad("on", "multiscale", allowed, repr(on), "Levels that are all layers need on=Features of the input.")
    finest = max(inputs, key=lambda features: features.n_features)
    return finest if on == "finest" else coordinates(finest.shapes[0])


def _departures(estimates: Sequence[Estimate]) -> Array:
    """The departures of all levels, (n_levels, n_replicates, n_features); those of an exact level are zero."""
    counts = {len(estimate.departures) for estimate in estimates if not estimate.exact}
    if len(counts) > 1:
        raise GralisError(
            f"The levels have {sorted(counts)} replicates, so their covariance cannot be estimated; explain "
            f"them with the same replicates=."
        )
    n_replicates = counts.pop() if counts else 2
    return np.stack([np.zeros((n_replicates, len(e.values))) if e.exact else e.departures for e in estimates])


def _degrees(departures: Array) -> int:
    n_replicates = int(departures.shape[1])
    return n_replicates * (n_replicates - 1)


def _weights(weights: str | Sequence[float], departures: Array, per_feature: bool) -> tuple[Array, str]:
    """The weights, (n_levels, n_features or 1), and the name of the method."""
    n_levels = len(departures)
    if not isinstance(weights, str):
        return checked_weights(weights, n_levels)[:, None], "given"
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
    """The jackknife variance of the combination: each replicate is left out in turn, and the weights are chosen again.

    It includes the error of the weights: they depend on the sample, and the levels do not estimate the same quantity.
    """
    n = departures.shape[1]
    values = np.stack([estimate.values for estimate in estimates])
    kept = []
    for left_out in range(n):
        others = np.delete(departures, left_out, axis=1)
        chosen, _ = _weights(weights, others - others.mean(1, keepdims=True), per_feature)
        kept.append((chosen * (values - departures[:, left_out] / (n - 1))).sum(0))
    return np.asarray((n - 1) ** 2 / n * np.var(kept, axis=0, ddof=1))
