"""Is the granularity right? One prediction at several numbers of regions: faithfulness, residual and error of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Unpack

import numpy as np

from gralis.api.explain import prepare
from gralis.checks import whole
from gralis.errors import bad
from gralis.faithfulness import Score, deletion, insertion
from gralis.features import slic
from gralis.options import Choices
from gralis.results.explanation import Explanation
from gralis.targets import Target


@dataclass(frozen=True, eq=False)
class Scale:
    """One number of regions: what came out there."""

    n_segments: int  # asked for; the segmentation makes about as many
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
        """The root mean square standard error over that of the values themselves."""
        e = self.explanation
        size = float(np.sqrt(np.mean(e.values**2)))
        return float(np.sqrt(np.mean(e.stderr**2))) / size if size else float("nan")


@dataclass(frozen=True, eq=False)
class Granularity:
    """Every scale, from coarse to fine; print it for a table."""

    scales: tuple[Scale, ...]

    @property
    def best(self) -> Scale:
        """The scale whose insertion gains most over its deletion: where the ranking of regions is most telling."""
        return max(self.scales, key=lambda scale: scale.insertion.value - scale.deletion.value)

    def __repr__(self) -> str:
        lines = [
            "by pixels, as shares of F(x) - F(x'): deletion (lower is better) and insertion (higher is better)",
            f"{'asked':>6}  {'regions':>7}  {'deletion':>9}  {'insertion':>9}  {'residual':>9}  {'error':>7}",
        ]
        for scale in self.scales:
            mark = "  <- largest gap" if scale is self.best else ""
            lines.append(
                f"{scale.n_segments:>6}  {scale.explanation.n_features:>7}  {scale.deletion.value:>9.3f}  "
                f"{scale.insertion.value:>9.3f}  {scale.residual:>9.1%}  {scale.error:>7.1%}{mark}"
            )
        return "\n".join(lines)


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

    Regions are ranked by phi per pixel, and pixels are deleted and inserted in that order, so that scales can be
    compared. `image`: what is segmented, x itself if not given. Other options go to `explain`, once per scale.

    >>> import torch
    >>> x = torch.zeros(1, 16, 16)
    >>> x[:, 4:8, 4:8] = 1.0
    >>> found = granularity(lambda z: z[:, 0, 4:8, 4:8].mean((1, 2)), x, (4, 16), budget=200)
    >>> found.best.n_segments
    16
    """
    sizes = list(n_segments) if isinstance(n_segments, Sequence) else []
    if not sizes:
        raise bad("n_segments", "granularity", "a list of numbers of regions", repr(n_segments))
    if "features" in options or "layer" in options:
        raise bad("features", "granularity", "left out: the segmentation is what is varied", "one")
    baseline = options.get("baseline", 0.0)
    scales = []
    for size in sorted(whole(one, "n_segments", 1) for one in sizes):
        features = slic(x if image is None else image, size, compactness, shape=getattr(x, "shape", None))
        found = prepare(model, x, {**options, "features": features, "target": target}, "granularity").result()
        density = found.values / features.sizes
        asked = {"target": target, "baseline": baseline, "level": "pixel", "normalise": True}
        spread = features.to_input(density)[0]
        scales.append(
            Scale(size, found, deletion(model, x, spread, **asked), insertion(model, x, spread, **asked))  # type: ignore[arg-type]
        )
    return Granularity(tuple(scales))
