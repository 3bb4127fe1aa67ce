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
from gralis.options import Choices
from gralis.results.explanation import Explanation
from gralis.scales.levels import Level
from gralis.scales.result import LevelResult, MultiScale
from gralis.scales.weighting import Weighting, covariances
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
    disagreement: bool = True,
    target: Target = None,
    **options: Unpack[Choices],
) -> MultiScale:
    """phi_i = sum over levels of lambda_l phi_i^(l): levels combined on common features with the least variance.

    The variance of a level that the weights see is its sampling variance, plus the square of its quadrature error, plus
    the variance between levels tau^2. Levels that answer different questions therefore get similar weights, even if one
    of them was enumerated. The intervals are about sum_l lambda_l phi_l, so they do not contain tau^2.

    The other options are those of `explain`, which runs once per level with the same seed and, unless `replicates` is
    given, with 12 replicates.

    Parameters
    ----------
    model : object
        Any model that `explain` takes.
    x : array or tensor
        The input that is explained.
    levels : sequence
        The levels. Each is a `Features` of the input, a number of superpixels, a layer (a module or its name; the
        features are its spatial cells or dense units), a pair (layer, `Features` of its output), or an `Explanation`
        of x. `gralis.features.patches` and `tokens` put tokens on their patches and positions. A pair, or an
        explanation, may be followed by a matrix of shares (n_common, n_features) in a longer tuple. Channels, heads,
        dense units and class tokens have no place in the input; each gets a separate row in the result.
    weights : str or sequence of float, default="inverse-variance"
        How the levels are weighted: "inverse-variance", "covariance", "nonnegative" or "uniform", as in
        `gralis.scales.minimum_variance`, or one number per level with the sum 1.
    on : Features, "finest" or "pixels", default="finest"
        The common features of the result: these features, those of the finest level on the input, or every coordinate.
    per_feature : bool, default=False
        Whether the weights are chosen for each feature separately. By default all features share the weights.
    disagreement : bool, default=True
        Whether the variance between the levels counts in the weights, as `gralis.scales.between_levels` estimates it.
        False leaves only the errors of the levels, as in Theorem 7 of the paper, which is right for levels that
        estimate the same quantity; a level without an error then takes all the weight.
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
    ways, own = _ways(resolved, explained, common)
    mapped = [level.estimate.combined(way) for level, way in zip(explained, ways, strict=True)]
    names = [level.name for level in resolved]
    numerical = np.stack([_numerical(level, way) for level, way in zip(explained, ways, strict=True)])
    weighting = Weighting(weights, per_feature, disagreement, numerical)
    paired = all(level.design.estimator.departs_by_replicate for level in explained)
    departures = _departures(mapped, paired)
    values = np.stack([estimate.values for estimate in mapped])
    chosen, method = weighting.weights(values, departures)
    variances = np.einsum("fll->lf", covariances(departures))
    return MultiScale(
        _combination(mapped, departures, chosen, method),
        common,
        tuple(map(LevelResult, names, explained, mapped)),
        chosen if per_feature else chosen[:, 0],
        method,
        (chosen**2 * variances).sum(0),
        weighting.jackknife(values, departures),
        own,
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


def _ways(
    levels: Sequence[Level], explained: Sequence[Explanation], common: Features
) -> tuple[list[Array], tuple[str, ...]]:
    """The matrix of every level to the rows of the result: the common features, then what has no place in them."""
    carried = [level.carried(explanation, common) for level, explanation in zip(levels, explained, strict=True)]
    if all(not rows[: common.n_features].any() for rows, _ in carried):
        raise GralisError(
            "None of the levels has a place in the common features, so there is nothing to combine; explain the levels "
            "one by one, or add a level of the input."
        )
    ways, first, n_own = [], 0, sum(len(own) for _, own in carried)
    for rows, own in carried:
        way = np.zeros((common.n_features + n_own, rows.shape[1]))
        way[: common.n_features] = rows[: common.n_features]
        way[common.n_features + first :][: len(own)] = rows[common.n_features :]
        ways.append(way)
        first += len(own)
    return ways, tuple(name for _, own in carried for name in own)


def _numerical(explanation: Explanation, way: Array) -> Array:
    """The quadrature error of every row of the result, as far as it is known."""
    if explanation.plan.get("quadrature") in (None, "random"):  # random nodes have no bias
        return np.zeros(len(way))
    return np.asarray(way @ np.nan_to_num(explanation.certificate().quadrature))


def _departures(estimates: Sequence[Estimate], paired: bool) -> Array:
    """The departures of all levels, (n_levels, n_replicates, n_features); zero for a level without sampling error.

    If the departures are not `paired` by their replicates, the errors of the levels are independent: each level keeps
    its variance and gets rows of its own.
    """
    sampled = [not estimate.exact and bool(estimate.departures.any()) for estimate in estimates]
    counts = [len(estimate.departures) if drawn else 0 for estimate, drawn in zip(estimates, sampled, strict=True)]
    shared = len({count for count in counts if count}) <= 1
    if paired and not shared:
        raise GralisError(
            f"The levels have {sorted(set(counts))} replicates, so their covariance cannot be estimated; explain "
            f"them with the same replicates=."
        )
    n_rows = max(*counts, 2) if shared else sum(counts)
    rows = np.zeros((len(estimates), n_rows, len(estimates[0].values)))
    first = 0
    for level, (estimate, count) in enumerate(zip(estimates, counts, strict=True)):
        if count:
            scale = 1.0 if shared else np.sqrt(n_rows * (n_rows - 1) / (count * (count - 1)))
            rows[level, first : first + count] = scale * estimate.departures
            first += 0 if shared else count
    return rows


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
        _weighted([e.margin for e in estimates], weights),
        _weighted([e.rounding for e in estimates], weights),
    )


def _weighted(parts: Sequence[Array | None], weights: Array) -> Array | None:
    """sum of |weight| * part over the levels that have one; None if none has."""
    known = [np.abs(w) * part for w, part in zip(weights, parts, strict=True) if part is not None]
    return np.sum(known, axis=0) if known else None
