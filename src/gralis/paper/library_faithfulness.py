"""Metrics that call the model, on models so small that their values are computed by hand."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gralis import faithfulness as metrics
from gralis.arrays import Array
from gralis.paper.claim_row import ClaimRow, collect, equal, near

WEIGHTS = np.array([4.0, 2.0, 0.0, -1.0])
ONES = np.ones(4)


def rows() -> list[ClaimRow]:
    return collect(_curves, _road, _fidelity)


def linear(z: Tensor) -> Tensor:
    return z.flatten(1) @ torch.from_numpy(WEIGHTS).to(z.dtype)


def _trapezoids(values: list[float]) -> float:
    """The area under values at equal steps from 0 to 1."""
    return (sum(values) - (values[0] + values[-1]) / 2) / (len(values) - 1)


def _curves() -> list[ClaimRow]:
    """F = 4a + 2b - d at 1, removed or added in the order a, b, c, d."""
    gone, back = [5.0, 1.0, -1.0, -1.0, 0.0], [0.0, 4.0, 6.0, 6.0, 5.0]
    half_gone = [5.0, 3.0, 2.0, 2.0, 2.5]  # against the baseline 1/2
    return [
        near(
            "deletion",
            _trapezoids(gone),
            lambda: metrics.deletion(linear, ONES, WEIGHTS).value,
            "faithfulness.deletion",
        ),
        near(
            "deletion: its curve",
            gone,
            lambda: _curve(metrics.deletion(linear, ONES, WEIGHTS)).values,
            "faithfulness.Curve",
        ),
        near(
            "insertion",
            _trapezoids(back),
            lambda: metrics.insertion(linear, ONES, WEIGHTS).value,
            "faithfulness.insertion",
        ),
        near(
            "deletion, normalised",
            _trapezoids([(v - 2.5) / 2.5 for v in half_gone]),
            lambda: metrics.deletion(linear, ONES, WEIGHTS, normalise=True, baseline=0.5).value,
            "faithfulness.deletion",
        ),
        near(
            "insertion, normalised",
            _trapezoids([v / 5.0 for v in back]),
            lambda: metrics.insertion(linear, ONES, WEIGHTS, normalise=True).value,
            "faithfulness.insertion",
        ),
        near(
            "deletion in two steps",
            _trapezoids([5.0, -1.0, 0.0]),
            lambda: metrics.deletion(linear, ONES, WEIGHTS, steps=2).value,
            "faithfulness.deletion",
        ),
        near(
            "deletion against the baseline 1/2",
            _trapezoids(half_gone),
            lambda: metrics.deletion(linear, ONES, WEIGHTS, baseline=0.5).value,
            "faithfulness.deletion",
        ),
        equal(
            "forwards of a deletion",
            5,
            lambda: metrics.deletion(linear, ONES, WEIGHTS).n_forwards,
            "faithfulness.Score",
        ),
        near(
            "the area under a curve",
            1.25,
            lambda: metrics.Curve(np.array([0.0, 0.5, 1.0]), np.array([2.0, 1.0, 1.0])).area(),
            "faithfulness.Curve",
        ),
    ]


def _curve(score: metrics.Score) -> metrics.Curve:
    assert score.curve is not None
    return score.curve


def picture_sum(z: Tensor) -> Tensor:
    return (z * torch.arange(1.0, 17.0, dtype=z.dtype).reshape(4, 4)).sum((1, 2))


def _road() -> list[ClaimRow]:
    """On a 4 x 4 image, removed pixels set to zero, and imputed by the equations of the paper of ROAD."""
    x = np.ones((4, 4))
    weights = np.arange(1.0, 17.0)
    fractions = (0.25, 0.5)
    most = [weights[:12].sum(), weights[:8].sum()]
    least = [weights[4:].sum(), weights[8:].sum()]
    options: dict[str, Any] = {"fractions": fractions, "baseline": 0.0}
    attribution = weights.reshape(4, 4)
    kept = np.ones((4, 4), dtype=bool)
    kept[[0, 1, 1, 2], [0, 1, 2, 3]] = False
    image = np.random.default_rng(0).random((4, 4))

    def filled() -> Array:
        return metrics.NoisyLinear(noise=0.0)(image, kept, np.random.default_rng(0))

    def noise() -> float:
        blank = np.zeros((100, 100))
        some = np.zeros((100, 100), dtype=bool)
        some[0] = True
        return float(metrics.NoisyLinear(noise=0.2)(blank, some, np.random.default_rng(0))[~some].std())

    return [
        near(
            "ROAD, most relevant first",
            np.mean(most),
            lambda: metrics.road_morf(picture_sum, x, attribution, **options).value,
            "faithfulness.road_morf",
        ),
        near(
            "ROAD, least relevant first",
            np.mean(least),
            lambda: metrics.road_lerf(picture_sum, x, attribution, **options).value,
            "faithfulness.road_lerf",
        ),
        near(
            "ROAD, the gap",
            np.mean(least) - np.mean(most),
            lambda: metrics.road_gap(picture_sum, x, attribution, **options).value,
            "faithfulness.road_gap",
        ),
        near("imputed pixels solve their equations", _imputed(image, kept), filled, "faithfulness.NoisyLinear"),
        near("kept pixels stay", image[kept], lambda: filled()[kept], "faithfulness.NoisyLinear"),
        near("the noise of the imputation", 0.2, noise, "faithfulness.NoisyLinear", within=0.01),
    ]


def _imputed(image: Array, kept: Array) -> Array:
    """A dense system: each removed pixel is the weighted mean of its neighbours, 1/6 direct and 1/12 diagonal."""
    height, width = image.shape
    system, right = np.eye(image.size), image.ravel().copy()
    for r, c in product(range(height), range(width)):
        if kept[r, c]:
            continue
        row = r * width + c
        near_by = [(dr, dc) for dr in (-1, 0, 1) for dc in (-1, 0, 1) if (dr, dc) != (0, 0)]
        inside = [(dr, dc) for dr, dc in near_by if 0 <= r + dr < height and 0 <= c + dc < width]
        weight = {step: 1 / 6 if 0 in step else 1 / 12 for step in inside}
        for (dr, dc), w in weight.items():
            system[row, (r + dr) * width + c + dc] -= w / sum(weight.values())
        right[row] = 0.0
    return np.asarray(np.linalg.solve(system, right).reshape(image.shape))


def _product(z: Tensor) -> Tensor:
    return 3 * z[:, 0] * z[:, 1] + 2 * z[:, 2]


def _fidelity() -> list[ClaimRow]:
    """F = 3ab + 2c at 1: all eight sets removed, one after the other."""
    x, phi = np.ones(3), np.array([1.0, 1.5, 2.0])
    sets = np.array(list(product((0, 1), repeat=3)))
    lost = np.array([5 - (3 * (1 - a) * (1 - b) + 2 * (1 - c)) for a, b, c in sets], dtype=float)
    claimed = sets @ phi
    scaled = claimed * (claimed @ lost) / (claimed @ claimed)
    drawn = _random_sets()
    return [
        near(
            "infidelity over all sets",
            ((claimed - lost) ** 2).mean(),
            lambda: metrics.infidelity(_product, x, phi, removed=sets).value,
            "faithfulness.infidelity",
        ),
        near(
            "infidelity, scaled to fit best",
            ((scaled - lost) ** 2).mean(),
            lambda: metrics.infidelity(_product, x, phi, removed=sets, normalise=True).value,
            "faithfulness.infidelity",
        ),
        near("infidelity over 4000 random sets", ((claimed - lost) ** 2).mean(), drawn, "faithfulness.infidelity", 0.1),
        near(
            "infidelity of an additive function",
            0.0,
            lambda: metrics.infidelity(linear, ONES, WEIGHTS).value,
            "faithfulness.infidelity",
        ),
        near(
            "completeness",
            abs(4.5 - 3.25) / 3.25,
            lambda: metrics.completeness(_product, x, phi, baseline=0.5).value,
            "faithfulness.completeness",
        ),
    ]


def _random_sets() -> float:
    phi = np.array([1.0, 1.5, 2.0])
    return metrics.infidelity(_product, np.ones(3), phi, n_perturbations=4000).value
