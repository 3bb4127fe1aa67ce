"""`granularity`: one prediction explained at several numbers of regions, with the faithfulness and error of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np

from gralis.api.explain import prepare
from gralis.api.signature import options_of_explain
from gralis.checks import whole
from gralis.errors import bad
from gralis.faithfulness import Score, deletion, insertion
from gralis.features import slic
from gralis.notebook import InNotebooks
from gralis.options import Choices
from gralis.results.explanation import Explanation
from gralis.targets import Target

__all__ = ["Granularity", "Scale", "granularity"]


@dataclass(frozen=True, eq=False)
class Scale:
    """The explanation with one number of regions, and its scores.

    Attributes
    ----------
    n_segments : int
        The number of regions that was requested; the segmentation makes about as many.
    explanation : Explanation
        The explanation of these regions.
    deletion : Score
        The deletion score on pixels; lower is better.
    insertion : Score
        The insertion score on pixels; higher is better.
    """

    n_segments: int
    explanation: Explanation
    deletion: Score
    insertion: Score

    @property
    def residual(self) -> float:
        """(F(x) - F(x') - sum of phi) / |F(x) - F(x')|."""
        e = self.explanation
        return float((e.delta - e.values.sum()) / abs(e.delta)) if e.delta else float("nan")

    @property
    def error(self) -> float:
        """The root mean square of the standard errors, divided by that of the values."""
        e = self.explanation
        size = float(np.sqrt(np.mean(e.values**2)))
        return float(np.sqrt(np.mean(e.stderr**2))) / size if size else float("nan")


@dataclass(frozen=True, eq=False)
class Granularity(InNotebooks):
    """The scales that `granularity` compared; printing it shows a table.

    Attributes
    ----------
    scales : tuple of Scale
        All scales, from the coarsest to the finest.
    """

    scales: tuple[Scale, ...]

    @property
    def best(self) -> Scale:
        """The scale with the largest difference between insertion and deletion: its ranking of regions says most."""
        return max(self.scales, key=lambda scale: scale.insertion.value - scale.deletion.value)

    def _frame_columns(self) -> Mapping[str, Any]:
        return {
            "n_segments": [scale.n_segments for scale in self.scales],
            "n_features": [scale.explanation.n_features for scale in self.scales],
            "deletion": [scale.deletion.value for scale in self.scales],
            "insertion": [scale.insertion.value for scale in self.scales],
        }

    def __repr__(self) -> str:
        lines = [
            "by pixels, as shares of F(x) - F(x'): deletion (lower is better) and insertion (higher is better)",
            f"{'n_segments':>10}  {'regions':>7}  {'deletion':>9}  {'insertion':>9}  {'residual':>9}  {'error':>7}",
        ]
        for scale in self.scales:
            mark = "  <- largest gap" if scale is self.best else ""
            lines.append(
                f"{scale.n_segments:>10}  {scale.explanation.n_features:>7}  {scale.deletion.value:>9.3f}  "
                f"{scale.insertion.value:>9.3f}  {scale.residual:>9.1%}  {scale.error:>7.1%}{mark}"
            )
        return "\n".join(lines)


@options_of_explain(without=("features", "layer"))
def granularity(
    model: object,
    x: object,
    n_segments: Sequence[int] = (10, 20, 30, 50, 100, 200),
    *,
    image: object = None,
    compactness: float = 50,
    target: Target = None,
    **options: Unpack[Choices],
) -> Granularity:
    """phi of SLIC superpixels at several numbers of regions, each scored on the same pixels.

    Regions are ranked by phi per pixel, and pixels are deleted and inserted in that order, so the scores of different
    scales can be compared. The other options are those of `explain`, which runs once per scale.

    Parameters
    ----------
    model : object
        Any model that `explain` takes.
    x : array or tensor
        The image that is explained.
    n_segments : sequence of int, default=(10, 20, 30, 50, 100, 200)
        The numbers of regions to compare.
    image : array or tensor, optional
        The image that is segmented, if it is not x itself; for example x before normalisation.
    compactness : float, default=50
        How compact the regions are, as in `gralis.features.slic`.
    target : int, tuple or callable, optional
        Which output of the model is explained, as in `explain`.

    Returns
    -------
    Granularity
        The explanation and the scores of every scale; printing it shows a table.

    Examples
    --------
    >>> import torch
    >>> x = torch.zeros(1, 16, 16)
    >>> x[:, 4:8, 4:8] = 1.0
    >>> result = granularity(lambda z: z[:, 0, 4:8, 4:8].mean((1, 2)), x, (4, 16), budget=200)
    >>> result.best.n_segments
    16
    """
    if not isinstance(n_segments, Sequence) or not len(n_segments):
        raise bad("n_segments", "granularity", "a list of numbers of regions", repr(n_segments))
    if "features" in options or "layer" in options:
        raise bad("features", "granularity", "left out: the segmentation is what is varied", "one")
    scales = []
    for size in sorted(whole(number, "n_segments", 1, "granularity") for number in n_segments):
        features = slic(x if image is None else image, size, compactness, shape=getattr(x, "shape", None))
        explanation = prepare(model, x, {**options, "features": features, "target": target}, "granularity").result()
        per_pixel = features.to_input(explanation.values / features.sizes)[0]
        baseline = options.get("baseline", 0.0)
        scores = (
            score(model, x, per_pixel, target=target, baseline=baseline, level="pixel", normalise=True)
            for score in (deletion, insertion)
        )
        scales.append(Scale(size, explanation, *scores))
    return Granularity(tuple(scales))
