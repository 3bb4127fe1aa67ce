"""The figures of the page: PNG files drawn from the tables; of a picture they show the mean colour of each region."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gralis.bench.statistics import Mean
from gralis.storage import write_whole
from gralis.views.colours import DIVERGING, GREY, INK, LINES
from gralis.views.plots import new_figure

SHOWN = ("deletion", "insertion", "road_morf", "road_lerf")


def save(path: Path, draw: Callable[..., None], *content: Any, size: tuple[float, float] = (9.0, 2.9)) -> Path:
    """Save a figure that `draw(figure, ...)` draws."""
    figure = new_figure(*size)
    draw(figure, *content)
    path.parent.mkdir(parents=True, exist_ok=True)
    return write_whole(path, lambda temporary: figure.savefig(temporary, format="png", dpi=110))


def methods(figure: Any, averages: Sequence[Mean]) -> None:
    """Means with 95% intervals, one panel for each metric."""
    shown = [metric for metric in SHOWN if any(one.metric == metric for one in averages)]
    axes = np.atleast_1d(figure.subplots(1, max(1, len(shown)), sharey=True))
    for ax, metric in zip(axes, shown, strict=False):
        of_metric = [one for one in averages if one.metric == metric][::-1]
        for place, one in enumerate(of_metric):
            ours = one.method.startswith("gralis")
            ax.plot([one.low, one.high], [place, place], color=LINES[5] if ours else INK, linewidth=1.4)
            ax.plot(one.mean, place, "o", color=LINES[5] if ours else INK, markersize=4)
        ax.set_yticks(range(len(of_metric)), [one.method for one in of_metric], fontsize="small")
        ax.set_title(f"{metric} ({of_metric[0].better} is better)", fontsize="small")
        _plain(ax)


def residual(figure: Any, studied: Sequence[dict[str, Any]]) -> None:
    """The residual of every image, as the sum of its parts."""
    parts = {name: np.array([one["parts"][name][0] for one in studied]) for name in studied[0]["parts"]}
    order = np.argsort(parts["observed"])
    ax = figure.subplots()
    up, down = np.zeros(len(order)), np.zeros(len(order))
    for name, colour in (("path", LINES[0]), ("kernel", LINES[1]), ("numerical", LINES[2])):
        sizes = parts[name][order]
        start = np.where(sizes >= 0, up, down)
        ax.bar(range(len(order)), sizes, bottom=start, color=colour, label=name, width=0.85)
        up, down = up + np.maximum(sizes, 0), down + np.minimum(sizes, 0)
    ax.plot(range(len(order)), parts["observed"][order], "o", color=INK, markersize=3, label="observed")
    ax.axhline(0, color=GREY, linewidth=0.8)
    ax.set_xlabel("image, by its residual")
    ax.set_ylabel("share of |F(x) - F(x')|")
    ax.legend(fontsize="small", frameon=False, ncols=4)
    _plain(ax)


def over_sigma(figure: Any, studied: Sequence[dict[str, Any]]) -> None:
    """Residual and error, agreement with both limits, deletion and insertion, over sigma."""
    names = [line["sigma"] for line in studied[0]["lines"]]
    panels = (("residual", "error"), ("with_single", "with_uniform"), ("deletion", "insertion"))
    for ax, kinds in zip(figure.subplots(1, 3), panels, strict=True):
        for kind, colour in zip(kinds, LINES, strict=False):
            table = np.array([[_or_nan(line[kind]) for line in one["lines"]] for one in studied])
            _band(
                ax,
                range(len(names)),
                table,
                colour,
                kind.replace("_single", " sigma -> 0").replace("_uniform", " sigma -> infinity"),
            )
        ax.set_xticks(range(len(names)), names, fontsize="x-small")
        ax.set_xlabel("sigma")
        ax.legend(fontsize="small", frameon=False)
        _plain(ax)


def over_regions(figure: Any, studied: Sequence[dict[str, Any]]) -> None:
    """Deletion and insertion, residual and error, over the number of regions."""
    at = np.mean([[line["regions"] for line in one["lines"]] for one in studied], axis=0)
    for ax, kinds in zip(figure.subplots(1, 2), (("deletion", "insertion"), ("residual", "error")), strict=True):
        for kind, colour in zip(kinds, LINES, strict=False):
            table = np.array([[_or_nan(line[kind]) for line in one["lines"]] for one in studied])
            _band(ax, at, table, colour, kind)
        ax.set_xscale("log")
        ax.set_xticks(at, [f"{n:.0f}" for n in at])
        ax.minorticks_off()
        ax.set_xlabel("regions")
        ax.legend(fontsize="small", frameon=False)
        _plain(ax)


def cases(figure: Any, shown: Sequence[Any], tissue: bool = False) -> None:
    """Cases side by side: above what the network saw, below what spoke for its answer (red) and against it (blue).

    With `tissue`, the pictures themselves are above.
    """
    axes = np.atleast_2d(figure.subplots(2, max(1, len(shown)), squeeze=False))
    for above, below, letter, one in zip(axes[0], axes[1], "abcdef", shown, strict=False):
        e = one.shapley
        regions = e.features.labels[0][0]
        picture = one.picture if tissue else _mosaic(one.picture, regions)
        largest = float(np.abs(e.values).max())
        interval = e.interval()
        sure = ((interval[:, 0] > 0) | (interval[:, 1] < 0))[regions]
        above.imshow(picture, interpolation="nearest")
        below.imshow(e.values[regions], cmap=DIVERGING, vmin=-largest, vmax=largest, interpolation="nearest")
        for ax in (above, below):
            ax.set_xticks([])
            ax.set_yticks([])
        _outline(below, np.where(sure, regions, -1))
        above.set_title(f"{letter}  {one.kind}\n{one.judged.says} {one.judged.probability:.0%}", fontsize="small")
        below.set_xlabel(f"truth: {one.judged.case.row['label']}", fontsize="small")


def _mosaic(picture: Any, regions: Any) -> Any:
    """Every region in its mean colour."""
    sizes = np.bincount(regions.ravel())
    means = [np.bincount(regions.ravel(), picture[..., c].ravel()) / np.maximum(sizes, 1) for c in range(3)]
    return np.stack(means, 1)[regions]


def _outline(ax: Any, regions: Any) -> None:
    """A black line around every region that is not -1."""
    for region in np.unique(regions[regions >= 0]):
        inside = np.pad((regions == region).astype(float), 1)
        rows, columns = (np.arange(-1, n - 1) for n in inside.shape)
        ax.contour(columns, rows, inside, [0.5], colors="k", linewidths=0.8)


def _band(ax: Any, at: Any, table: Any, colour: str, label: str) -> None:
    """The mean over images, and every image as a thin line."""
    for row in table:
        ax.plot(at, row, color=colour, linewidth=0.5, alpha=0.35)
    known = np.isfinite(table).any(0)
    mean = np.full(table.shape[1], np.nan)
    mean[known] = np.nanmean(table[:, known], axis=0)
    ax.plot(at, mean, "o-", color=colour, markersize=3, linewidth=1.6, label=label)


def _or_nan(value: float | None) -> float:
    return float("nan") if value is None else float(value)


def _plain(ax: Any) -> None:
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(labelsize="small")
