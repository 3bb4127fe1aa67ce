"""Metrics that look at attributions only, or run a method again, on numbers so few that they are computed by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import nn

from gralis import faithfulness as metrics
from gralis.paper.claim_row import ClaimRow, collect, equal, near
from gralis.paper.library_faithfulness import ONES, WEIGHTS, linear, picture_sum


def rows() -> list[ClaimRow]:
    return collect(_sparsity, _overlap, _repeats, _summaries)


def _sparsity() -> list[ClaimRow]:
    phi = np.array([1.0, -2.0, 3.0, 0.0])
    share = np.array([1.0, 2.0, 3.0]) / 6
    pairs = sum(abs(abs(a) - abs(b)) for a in phi for b in phi) / (2 * 4 * 6)
    picture = np.zeros((3, 3))
    picture[0, 0], picture[0, 2] = 1.0, -1.0  # one pixel from their centre, in one direction
    flat = np.sqrt(2 * np.mean([1.0, 0.0, 1.0]))
    return [
        near(
            "gini: mean difference / twice the mean",
            pairs,
            lambda: metrics.gini(linear, ONES, phi).value,
            "faithfulness.gini",
        ),
        near(
            "entropy",
            -(share * np.log(share)).sum() / np.log(4),
            lambda: metrics.entropy(linear, ONES, phi).value,
            "faithfulness.entropy",
        ),
        near(
            "locality",
            1 - 1 / flat,
            lambda: metrics.locality(picture_sum, np.ones((3, 3)), picture).value,
            "faithfulness.locality",
        ),
        near(
            "locality of one pixel, of a flat picture",
            (1.0, 0.0),
            lambda: [
                metrics.locality(picture_sum, np.ones((3, 3)), p).value
                for p in (np.eye(1, 9).reshape(3, 3), np.ones((3, 3)))
            ],
            "faithfulness.locality",
        ),
    ]


def _overlap() -> list[ClaimRow]:
    values = np.array([[3.0, 2.0, -9.0], [1.0, 0.5, 3.0], [0.0, -1.0, 0.0]])
    marked = np.array([[1, 1, 0], [0, 0, 0], [1, 0, 0]])
    x = np.ones((3, 3))
    return [
        near(
            "pointing game: half of the two largest pixels",
            0.5,
            lambda: metrics.pointing_game(picture_sum, x, values, annotation=marked).value,
            "faithfulness.pointing_game",
        ),
        near(
            "intersection over union of three pixels",
            2 / 4,
            lambda: metrics.iou(picture_sum, x, values, annotation=marked).value,
            "faithfulness.iou",
        ),
        near(
            "share of the positive values inside",
            5 / 9.5,
            lambda: metrics.mass_inside(picture_sum, x, values, annotation=marked).value,
            "faithfulness.mass_inside",
        ),
    ]


def _shifted(model: object, x: object, **options: Any) -> Any:
    """A method whose values depend on the seed and on x in a known way."""
    point = np.asarray(x, dtype=np.float64)
    return SimpleNamespace(values=WEIGHTS * point + 0.1 * options["seed"] * np.array([1.0, -1.0, 0.0, 0.0]))


def _weights_of(model: Any, x: object, **options: Any) -> Any:
    """A method whose values are the weights of the last layer."""
    return SimpleNamespace(values=np.asarray(list(model.parameters())[-1].detach().double().numpy()).ravel())


def _repeats() -> list[ClaimRow]:
    from scipy.stats import kendalltau, spearmanr  # takes long to import

    a, b = np.array([3.0, 1.0, 2.0, -1.0]), np.array([1.0, 2.0, 3.0, -4.0])
    runs = np.stack([WEIGHTS + 0.1 * seed * np.array([1.0, -1.0, 0.0, 0.0]) for seed in range(3)])
    noise = np.sqrt(sum(((u - v) ** 2).sum() for u in runs for v in runs) / (3 * 2) / 2) / np.linalg.norm(runs.mean(0))
    steps = np.stack([np.random.default_rng(0).uniform(-0.02, 0.02, (5, 4))])[0]
    moves = np.linalg.norm(WEIGHTS * steps, axis=1) / np.linalg.norm(WEIGHTS)
    both = {"spearman": spearmanr(a, b).statistic, "kendall": kendalltau(a, b).statistic, "top": 1.0}
    torch_model = nn.Sequential(nn.Linear(4, 1, bias=False).double()).requires_grad_(False).eval()
    next(torch_model.parameters()).copy_(torch.from_numpy(WEIGHTS)[None])
    drawn = torch.randn((1, 4), generator=torch.Generator().manual_seed(0), dtype=torch.float64).numpy().ravel()
    return [
        near(
            "stability: distance of two runs / norm of the mean",
            noise,
            lambda: metrics.stability(linear, ONES, WEIGHTS, method=_shifted, n_runs=3).value,
            "faithfulness.stability",
        ),
        near(
            "max-sensitivity of phi = w x",
            moves.max(),
            lambda: metrics.max_sensitivity(linear, ONES, WEIGHTS, method=_shifted, n_perturbations=5).value,
            "faithfulness.max_sensitivity",
        ),
        *(
            near(
                f"rank agreement: {kind}",
                value,
                lambda k=kind: metrics.rank_agreement(linear, ONES, a, others=[b], kind=k, k=3).value,
                "faithfulness.rank_agreement",
            )
            for kind, value in both.items()
        ),
        near(
            "model randomisation: |rank correlation| with random weights",
            abs(spearmanr(WEIGHTS, drawn).statistic),
            lambda: metrics.model_randomisation(torch_model, ONES, -WEIGHTS, method=_weights_of).value,
            "faithfulness.model_randomisation",
        ),
    ]


def _summaries() -> list[ClaimRow]:
    from scipy.stats import t as student  # takes long to import

    values = np.array([0.2, 0.4, 0.9])
    half = student.ppf(0.975, 2) * values.std(ddof=1) / np.sqrt(3)
    curves = [metrics.Curve(np.array([0.0, 1.0]), np.array([v, 1.0])) for v in values]
    scores = [metrics.Score("gini", float(v), "higher", curve) for v, curve in zip(values, curves, strict=True)]
    summary = metrics.over(scores)

    def mine(model: object, x: object, attribution: object, **keywords: Any) -> metrics.Score:
        return metrics.Score("mine", 0.25, "higher")

    def registered() -> float:
        metrics.register("verify-mine", mine)
        try:
            return metrics.METRICS["verify-mine"](linear, ONES, WEIGHTS).value
        finally:
            metrics.METRICS.pop("verify-mine", None)

    return [
        near(
            "mean over inputs, and its error",
            (0.5, values.std(ddof=1) / np.sqrt(3)),
            lambda: (summary.mean, summary.stderr),
            "faithfulness.over",
        ),
        near("Student's interval", (0.5 - half, 0.5 + half), lambda: summary.interval(), "faithfulness.Summary"),
        near(
            "the mean curve", (0.5, 1.0), lambda: summary.curve.values if summary.curve else None, "faithfulness.over"
        ),
        equal("a metric of one's own", 0.25, registered, "faithfulness.register"),
    ]
