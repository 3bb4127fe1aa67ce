"""`multiscale`, its weights and `granularity` against closed forms on images where every value is known."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import torch
from torch import Tensor

from gralis.api.explain import explain
from gralis.arrays import Array
from gralis.features import grid, groups
from gralis.paper.claim_row import ClaimRow, collect, equal, exceeds, near
from gralis.scales import between_levels, granularity, minimum_variance, multiscale

_SLOPES = np.random.default_rng(7).standard_normal((4, 4))
_IMAGE = np.random.default_rng(8).uniform(0.5, 2.0, (1, 4, 4))


def rows() -> list[ClaimRow]:
    return collect(_weights, _between, _affine, _sampled, _granularity)


def _weights() -> list[ClaimRow]:
    spread = (Fraction(1), Fraction(4), Fraction(1, 4))
    precision = [1 / s for s in spread]
    best = [p / sum(precision) for p in precision]
    # Two levels with the covariance matrix (a, c; c, b): the first has the weight (b - c) / (a + b - 2 c).
    a, b, c = Fraction(2), Fraction(3), Fraction(1, 2)
    pair, matrix = ((b - c) / (a + b - 2 * c), (a - c) / (a + b - 2 * c)), [[2.0, 0.5], [0.5, 3.0]]
    steep = [[1.0, 1.5], [1.5, 4.0]]  # the best free weights are 5/4 and -1/4
    source = "scales.minimum_variance"
    variances = [float(s) for s in spread]
    return [
        near(
            "independent levels of variance 1, 4, 1/4",
            best,
            lambda: minimum_variance(variances, "inverse-variance"),
            source,
        ),
        near(
            "inverse-variance looks at the diagonal only",
            (Fraction(3, 5), Fraction(2, 5)),
            lambda: minimum_variance(matrix, "inverse-variance"),
            source,
        ),
        near("two correlated levels", pair, lambda: minimum_variance(matrix, "covariance"), source),
        near(
            "a negative weight where that is best", (1.25, -0.25), lambda: minimum_variance(steep, "covariance"), source
        ),
        near("none of them below zero", (1.0, 0.0), lambda: minimum_variance(steep, "nonnegative"), source),
        near("uniform weights", (0.25,) * 4, lambda: minimum_variance(np.eye(4), "uniform"), source),
        near(
            "levels without variance share the weight",
            (0.5, 0.0, 0.5),
            lambda: minimum_variance([0.0, 1.0, 0.0], "inverse-variance"),
            source,
        ),
    ]


def _between() -> list[ClaimRow]:
    """tau^2 = max(0, (Q - E - 4 S) / (L - 1)), with Q, E and S from the matrices C and Sigma of the definition."""
    n_levels, n_replicates, n_features = 3, 5, 2
    rng = np.random.default_rng(3)
    values = rng.standard_normal((n_levels, n_features)) * 4
    departures = rng.standard_normal((n_levels, n_replicates, n_features)) / 2
    departures -= departures.mean(1, keepdims=True)
    numerical = rng.uniform(0.1, 0.4, (n_levels, n_features))
    centred = np.kron(np.eye(n_levels) - 1 / n_levels, np.eye(n_features))  # C, on levels by features
    rows = departures.transpose(1, 0, 2).reshape(n_replicates, -1)
    sigma = rows.T @ rows / (n_replicates * (n_replicates - 1))
    y = values.ravel()
    squares = y @ centred @ y / n_features
    expected = np.trace(centred @ (sigma + np.mean(numerical**2) * np.eye(n_levels * n_features))) / n_features
    spread = np.sqrt(2 * np.trace(centred @ sigma @ centred @ sigma)) / n_features
    source = "scales.between_levels"
    return [
        near(
            "variance between three levels",
            (squares - expected - 4 * spread) / (n_levels - 1),
            lambda: between_levels(values, departures, numerical),
            source,
        ),
        near("levels that agree", 0.0, lambda: between_levels(values * 0, departures), source),
        near(
            "an enumerated level does not take all the weight of levels that differ",
            (0.5, 0.5),
            _enumerated_beside_another,
            "scales.multiscale",
        ),
    ]


def _enumerated_beside_another() -> Array:
    """Two exact levels of one function whose values differ: only tau^2 is in the variance of both."""
    levels = [grid((1, 4, 4), (4, 2)), grid((1, 4, 4), (2, 4))]
    return multiscale(lambda z: z[:, 0, 0, 0] * z[:, 0, 3, 3], _IMAGE, levels, budget=600).weights


def _linear(z: Tensor) -> Tensor:
    return (z[:, 0] * torch.from_numpy(_SLOPES)).sum((1, 2))


def _affine() -> list[ClaimRow]:
    """For affine F every level has the values b_p x_p, added up over its regions and shared out by area."""
    fine = (_SLOPES * _IMAGE[0]).ravel()
    blocks = np.kron((_SLOPES * _IMAGE[0]).reshape(2, 2, 2, 2).mean((1, 3)), np.ones((2, 2))).ravel()
    levels = [grid((1, 4, 4), 1), grid((1, 4, 4), 2)]

    halves = groups(np.repeat([0, 1], 8).reshape(1, 4, 4))
    given = multiscale(_linear, _IMAGE, levels, weights=[0.3, 0.7], budget=150)
    known = [level.explanation for level in given.levels]
    uniform = multiscale(_linear, _IMAGE, known, weights="uniform")
    on_halves = multiscale(_linear, _IMAGE, known, weights=[0.3, 0.7], on=halves)
    mixed = 0.3 * fine + 0.7 * blocks
    source = "scales.multiscale"
    return [
        near("affine F, weights 0.3 and 0.7", mixed, lambda: given.values, source),
        near("affine F, uniform weights", (fine + blocks) / 2, lambda: uniform.values, source),
        near("the same on the two halves of the image", mixed.reshape(2, 8).sum(1), lambda: on_halves.values, source),
        near("the second level on the pixels", blocks, lambda: uniform.levels[1].estimate.values, source),
        near("its sum on the pixels is F(x) - F(x')", fine.sum(), lambda: uniform.values.sum(), source),
    ]


def _sampled() -> list[ClaimRow]:
    """The combination of sampled levels: weights that sum to one, and their variance if levels are independent."""
    source = "scales.multiscale"

    def curved(z: Tensor) -> Tensor:
        inner = (z[:, 0] * torch.from_numpy(_SLOPES)).flatten(1)
        return torch.tanh(inner).sum(1) + 0.3 * inner[:, ::2].sum(1) * inner[:, 1::2].sum(1)

    shapes = (1, (1, 2), (2, 1))
    levels = [explain(curved, _IMAGE, features=grid((1, 4, 4), shape), budget=100, replicates=6) for shape in shapes]
    claims = []
    for weights in ("inverse-variance", "covariance", "nonnegative"):
        found = multiscale(curved, _IMAGE, levels, weights=weights)
        combined = sum(w * level.estimate.values for w, level in zip(found.weights, found.levels, strict=True))
        claims += [
            near(f"{weights}: the weights sum to one", 1.0, found.weights.sum(), source),
            near(f"{weights}: values are the weighted mean of the levels", combined, lambda f=found: f.values, source),
        ]
    found = multiscale(curved, _IMAGE, levels)
    each = multiscale(curved, _IMAGE, levels, per_feature=True)
    variances = np.stack([level.estimate.sampling_error**2 for level in found.levels])
    apart = (found.weights[:, None] ** 2 * variances).sum(0)
    combined = sum(w * level.estimate.values for w, level in zip(each.weights, each.levels, strict=True))
    return [
        *claims,
        near(
            "variance if the levels are independent, over that by hand",
            np.ones(16),
            lambda: found.predicted_if_independent / apart,
            source,
        ),
        near("per feature: the weights sum to one", np.ones(16), lambda: each.weights.sum(0), source),
        near("per feature: the weighted mean of the levels", combined, lambda: each.values, source),
        equal("the measured variance is positive", True, lambda: bool((found.measured > 0).all()), source),
    ]


def _granularity() -> list[ClaimRow]:
    """F is the mean of a bright block. Four regions mix it with the dark rest, sixteen and more separate it."""
    x = np.zeros((1, 16, 16))
    x[:, 4:8, 4:8] = 1.0
    found = granularity(lambda z: z[:, 0, 4:8, 4:8].mean((1, 2)), x, (16, 4), budget=300)
    coarse, fine = found.scales
    source = "scales.granularity"

    def area(scale: object) -> Array:
        return np.array([scale.deletion.value, scale.insertion.value])  # type: ignore[attr-defined]

    return [
        equal(
            "scales from the coarsest to the finest",
            [4, 16],
            lambda: [scale.n_segments for scale in found.scales],
            source,
        ),
        near("affine F: residuals", (0.0, 0.0), lambda: [scale.residual for scale in found.scales], source),
        near("affine F: errors", (0.0, 0.0), lambda: [scale.error for scale in found.scales], source),
        equal("the scale with the largest gap", 16, lambda: found.best.n_segments, source),
        near("normalised areas: insertion is 1 - deletion for one block", 1.0, lambda: area(fine).sum(), source),
        exceeds("the finer scale deletes sooner", 0.05, lambda: area(coarse)[0] - area(fine)[0], source),
    ]
