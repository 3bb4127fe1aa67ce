"""A study as one HTML file: means, intervals, tests and curves, without scripts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from gralis.arrays import Array
from gralis.bench.charts import MethodCurve, curves, intervals, legend
from gralis.bench.scores import rows
from gralis.bench.statistics import Mean, PairedTest, comparisons, means
from gralis.report.html_page import page_style
from gralis.storage.container import write_text
from gralis.views.html_parts import document, figures, html_table, number

__all__ = ["mean_curves", "page", "write_page"]

_STYLE = """
.chart { width: 100%; max-width: 460px; height: auto; font: 11px var(--sans); }
.chart text { fill: var(--soft); } .chart .rule { stroke: var(--line); }
.key { margin-right: 16px; white-space: nowrap; } .key svg { margin-right: 6px; }
td.best { font-weight: 600; }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(320px, 1fr)); gap: 24px; }
"""
_GRID = np.linspace(0, 1, 41)
_MEANINGS = {
    "deletion": "area under F as the largest values are removed first",
    "insertion": "area under F as the largest values are put back first",
    "road_morf": "ROAD, most relevant first: mean F over the imputed fractions",
    "road_lerf": "ROAD, least relevant first: mean F over the imputed fractions",
    "road_gap": "ROAD, least minus most relevant first",
    "infidelity": "mean squared difference between the values of a random set and what F loses without it",
    "completeness": "how far the values are from adding up to F(x) - F(x'), relative",
    "gini": "how few features carry the attribution",
    "entropy": "how evenly the attribution is spread",
    "locality": "how close together the attribution lies",
    "max_sensitivity": "the largest relative change of the attribution under a small change of the image",
    "stability": "the relative noise from run to run",
    "pointing_game": "how often the largest value lies in what the expert marked",
    "iou": "overlap of the largest values with what the expert marked",
    "mass_inside": "share of the positive values that lies in what the expert marked",
    "model_randomisation": "rank correlation, without its sign, with the attributions of randomised models",
}


def page(
    records: Sequence[Mapping[str, Any]],
    *,
    title: str = "Methods and metrics",
    about: Sequence[str] = (),
    facts: Mapping[str, str] | None = None,
    sections: Sequence[tuple[str, str]] = (),
    group: str = "patient",
) -> str:
    """A study as one HTML page.

    Parameters
    ----------
    records : sequence of mapping
        The records that `run` returns.
    title : str, default="Methods and metrics"
        The heading of the page.
    about : sequence of str, default=()
        Paragraphs at the top.
    facts : mapping of str to str, default=None
        Figures that are shown below the paragraphs.
    sections : sequence of (str, str), default=()
        Further sections, each a heading and its content as HTML. The content is not escaped.
    group : str, default="patient"
        The column of the labels that says which images belong together.

    Returns
    -------
    str
        The page.
    """
    table = rows(records, group)
    averages, tests = means(table), comparisons(table)
    names = list(dict.fromkeys(row.method for row in table if row.method))
    failed = [row for row in table if row.error]
    body = [
        f'<header class="top"><p class="overline">gralis bench</p><h1>{escape(title)}</h1>',
        '<div class="summary">' + "".join(f"<p>{escape(text)}</p>" for text in about) + "</div>",
        figures(facts or {}),
        "</header><main>",
        f"<section><h2>Overview</h2>{_overview(averages, names)}<p>{legend(names)}</p></section>" if averages else "",
    ]
    for metric in dict.fromkeys(mean.metric for mean in averages):
        of_metric = [mean for mean in averages if mean.metric == metric]
        wins = [test for test in tests if test.metric == metric and test.winner]
        body.append(_metric(of_metric, wins, mean_curves(records, metric, names), names))
    body += [f"<section><h2>{escape(heading)}</h2>{content}</section>" for heading, content in sections]
    if failed:
        lines = [(row.image, row.method or "all", row.metric or "all", row.error) for row in failed]
        body.append(f"<section><h2>What failed</h2>{html_table(('image', 'method', 'metric', 'why'), lines)}</section>")
    body.append("</main>")
    style = page_style() + _STYLE
    return document(title, style, "".join(body))


def write_page(
    path: Path,
    records: Sequence[Mapping[str, Any]],
    *,
    title: str = "Methods and metrics",
    about: Sequence[str] = (),
    facts: Mapping[str, str] | None = None,
    sections: Sequence[tuple[str, str]] = (),
    group: str = "patient",
) -> Path:
    """Write `page` to a file, whole or not at all.

    Parameters
    ----------
    path : Path
        The file to be written.
    records, title, about, facts, sections, group
        As in `page`.

    Returns
    -------
    Path
        The file.
    """
    text = page(records, title=title, about=about, facts=facts, sections=sections, group=group)
    return write_text(path, text)


def _overview(averages: Sequence[Mean], names: Sequence[str]) -> str:
    """Methods by metrics; the best mean of each metric in bold."""
    by_metric: dict[str, dict[str, Mean]] = {}
    for mean in averages:
        by_metric.setdefault(mean.metric, {})[mean.method] = mean
    best = {metric: _best(list(by_method.values())) for metric, by_method in by_metric.items()}
    lines = []
    for name in names:
        cells = [f"<td>{escape(name)}</td>"]
        for metric, by_method in by_metric.items():
            mark = " best" if best[metric].method == name else ""
            value = by_method[name].mean if name in by_method else None
            cells.append(f'<td class="right{mark}">{number(value)}</td>')
        lines.append(f"<tr>{''.join(cells)}</tr>")
    arrows = {metric: "↑" if mean.better == "higher" else "↓" for metric, mean in best.items()}
    heads = "".join(f'<th class="right">{escape(metric)} {arrow}</th>' for metric, arrow in arrows.items())
    return (
        f'<div class="scroll"><table><thead><tr><th>method</th>{heads}</tr></thead><tbody>{"".join(lines)}</tbody>'
        '</table></div><p class="small">Means; ↑ higher is better, ↓ lower is better. The best mean is bold, even if '
        "the difference may be chance.</p>"
    )


def _metric(
    averages: Sequence[Mean], wins: Sequence[PairedTest], lines: Sequence[MethodCurve], names: Sequence[str]
) -> str:
    """The section of one metric: its table, its intervals and its curves."""
    metric, better = averages[0].metric, averages[0].better
    ranked = sorted(averages, key=lambda mean: mean.mean)[:: 1 if better == "lower" else -1]
    head = ("method", "mean", "95% interval", "images", "groups", "better than (Holm p < 0.05)")
    cells = []
    for mean in ranked:
        beaten = [test.b if test.a == mean.method else test.a for test in wins if test.winner == mean.method]
        spread = f"{number(mean.low)} to {number(mean.high)}"
        cells.append((mean.method, mean.mean, spread, mean.n_images, mean.n_groups, ", ".join(beaten) or "–"))
    name, _, replacement = metric.partition(":")
    becomes = f"; what is removed becomes {replacement}" if replacement else ""
    meaning = f"{_MEANINGS.get(name, name)}{becomes}; {better} is better"
    dots = intervals({mean.method: (mean.mean, mean.low, mean.high) for mean in ranked}, names, metric)
    return (
        f"<section><h2>{escape(metric)}</h2><p>{escape(meaning)}.</p>{html_table(head, cells)}"
        f'<div class="pair">{dots}{curves(lines, names, "fraction", "F")}</div></section>'
    )


def mean_curves(records: Iterable[Mapping[str, Any]], metric: str, names: Sequence[str]) -> list[MethodCurve]:
    """The mean curve of every method. Curves with different places are interpolated on a common grid first."""
    by_method: dict[str, list[tuple[Array, Array]]] = {}
    for record in records:
        for score in record.get("scores", ()):
            if score["metric"] == metric and "curve" in score:
                pair = (np.asarray(score["curve"]["at"]), np.asarray(score["curve"]["values"]))
                by_method.setdefault(score["method"], []).append(pair)
    lines = []
    for name in names:
        pairs = by_method.get(name, [])
        if pairs:
            same = all(np.array_equal(at, pairs[0][0]) for at, _ in pairs)
            at = pairs[0][0] if same else _GRID
            lines.append(MethodCurve(name, at, np.mean([np.interp(at, *pair) for pair in pairs], axis=0)))
    return lines


def _best(averages: Sequence[Mean]) -> Mean:
    return (max if averages[0].better == "higher" else min)(averages, key=lambda mean: mean.mean)
