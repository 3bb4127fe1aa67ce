"""A study as one HTML file: means, intervals, tests and curves; no script, nothing fetched, every text escaped."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from gralis.arrays import Array
from gralis.bench.charts import Line, curves, intervals, legend
from gralis.bench.statistics import Comparison, Mean, comparisons, means
from gralis.bench.tables import rows
from gralis.storage.container import write_text

_STYLE = """
.chart { width: 100%; max-width: 460px; height: auto; font: 11px var(--sans); }
.chart text { fill: var(--soft); } .chart .rule { stroke: var(--line); }
.key { margin-right: 16px; white-space: nowrap; } .key svg { margin-right: 6px; }
td.best { font-weight: 600; }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(320px, 1fr)); gap: 24px; }
"""
_GRID = np.linspace(0, 1, 41)
_SAYS = {
    "deletion": "area under F as the largest values are removed first",
    "insertion": "area under F as the largest values are put back first",
    "road_morf": "ROAD, most relevant first: mean F over the imputed fractions",
    "road_lerf": "ROAD, least relevant first: mean F over the imputed fractions",
    "road_gap": "ROAD, least minus most relevant first",
    "infidelity": "mean squared difference between the values of a random set and what F loses without it",
    "completeness": "how far the values are from adding up to F(x) - F(x'), relative",
    "gini": "how few features carry the attribution",
    "entropy": "how evenly the attribution is spread",
    "locality": "how close together it lies",
    "max_sensitivity": "the largest relative change of the attribution under a small change of the image",
    "stability": "run-to-run noise, relative",
    "pointing_game": "how often the largest value lies in what the expert marked",
    "iou": "overlap of the largest values with what the expert marked",
    "mass_inside": "share of the positive values that lies in what the expert marked",
    "model_randomisation": "rank correlation, without its sign, with the attributions of randomised models",
}


def write_page(path: Path, records: Sequence[Mapping[str, Any]], **options: Any) -> Path:
    """`page` in a file that is there whole or not at all."""
    return write_text(path, page(records, **options))


def page(
    records: Sequence[Mapping[str, Any]],
    *,
    title: str = "Methods and metrics",
    about: Sequence[str] = (),
    facts: Mapping[str, str] | None = None,
    sections: Sequence[tuple[str, str]] = (),
    group: str = "patient",
) -> str:
    """The whole page. `about`: paragraphs at the top; `sections`: further (heading, HTML) pairs, made by the caller."""
    table = rows(records, group)
    found, tests = means(table), comparisons(table)
    names = list(dict.fromkeys(row.method for row in table if row.method))
    failed = [row for row in table if row.error]
    body = [
        f'<header class="top"><p class="overline">gralis bench</p><h1>{html.escape(title)}</h1>',
        '<div class="summary">' + "".join(f"<p>{html.escape(text)}</p>" for text in about) + "</div>",
        _figures(facts or {}),
        "</header><main>",
        f"<section><h2>Overview</h2>{_overview(found, names)}<p>{legend(names)}</p></section>" if found else "",
    ]
    body += [_metric(metric, found, tests, records, names) for metric in dict.fromkeys(one.metric for one in found)]
    body += [f"<section><h2>{html.escape(heading)}</h2>{content}</section>" for heading, content in sections]
    if failed:
        lines = [(row.image, row.method or "all", row.metric or "all", row.error) for row in failed]
        body.append(f"<section><h2>What failed</h2>{html_table(('image', 'method', 'metric', 'why'), lines)}</section>")
    body.append("</main>")
    return document(title, "".join(body))


def document(title: str, body: str) -> str:
    """The frame of a page: the style of the report, and a policy that lets nothing run or be fetched."""
    style = files("gralis.report").joinpath("page.css").read_text(encoding="utf-8").strip() + _STYLE
    policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{html.escape(title)}</title><style>{style}</style></head><body>{body}</body></html>\n"
    )


def html_table(head: Sequence[str], lines: Iterable[Sequence[object]]) -> str:
    """A table of texts and numbers; numbers are set to the right."""
    content = "".join(f"<tr>{''.join(_cell(value) for value in line)}</tr>" for line in lines)
    heads = "".join(f"<th>{html.escape(text)}</th>" for text in head)
    return f'<div class="scroll"><table><thead><tr>{heads}</tr></thead><tbody>{content}</tbody></table></div>'


def number(value: float | None, digits: int = 3) -> str:
    """
    >>> number(0.12345), number(float("nan")), number(1234567.0)
    ('0.123', '–', '1.23e+06')
    """
    return "–" if value is None or not np.isfinite(value) else f"{value:.{digits}g}"


def _cell(value: object) -> str:
    if isinstance(value, float | np.floating):
        return f'<td class="right">{number(float(value))}</td>'
    side = ' class="right"' if isinstance(value, int) else ""
    return f"<td{side}>{html.escape(str(value))}</td>"


def _figures(facts: Mapping[str, str]) -> str:
    cells = (f"<div><dt>{html.escape(k)}</dt><dd>{html.escape(v)}</dd></div>" for k, v in facts.items())
    return f'<dl class="figures">{"".join(cells)}</dl>' if facts else ""


def _overview(found: Sequence[Mean], names: Sequence[str]) -> str:
    """Methods by metrics; the best mean of each metric in bold."""
    metrics = list(dict.fromkeys(one.metric for one in found))
    known = {(one.metric, one.method): one for one in found}
    best = {metric: _best([one for one in found if one.metric == metric]).method for metric in metrics}
    arrow = {one.metric: "↑" if one.better == "higher" else "↓" for one in found}
    lines = []
    for name in names:
        cells = [f"<td>{html.escape(name)}</td>"]
        for metric in metrics:
            one = known.get((metric, name))
            mark = " best" if best[metric] == name else ""
            cells.append(f'<td class="right{mark}">{number(one.mean if one else None)}</td>')
        lines.append(f"<tr>{''.join(cells)}</tr>")
    heads = "".join(f'<th class="right">{html.escape(metric)} {arrow[metric]}</th>' for metric in metrics)
    return (
        f'<div class="scroll"><table><thead><tr><th>method</th>{heads}</tr></thead><tbody>{"".join(lines)}</tbody>'
        '</table></div><p class="small">Means; ↑ higher, ↓ lower is better; the best mean is bold, whether or not the '
        "difference is more than chance.</p>"
    )


def _metric(
    metric: str,
    found: Sequence[Mean],
    tests: Sequence[Comparison],
    records: Sequence[Mapping[str, Any]],
    names: Sequence[str],
) -> str:
    own = sorted((one for one in found if one.metric == metric), key=lambda one: one.mean)
    own = own if own[0].better == "lower" else own[::-1]
    head = ("method", "mean", "95% interval", "images", "groups", "better than (Holm p < 0.05)")
    lines = []
    for one in own:
        beaten = [t.b if t.a == one.method else t.a for t in tests if t.metric == metric and t.winner == one.method]
        spread = f"{number(one.low)} to {number(one.high)}"
        lines.append((one.method, one.mean, spread, one.n_images, one.n_groups, ", ".join(beaten) or "–"))
    base, _, replaced = metric.partition(":")
    becomes = f"; what is removed becomes {replaced}" if replaced else ""
    says = f"{_SAYS.get(base, base)}{becomes}; {own[0].better} is better"
    dots = intervals({one.method: (one.mean, one.low, one.high) for one in own}, names, metric)
    lined = curves(mean_curves(records, metric, names), names, "fraction", "F")
    return (
        f"<section><h2>{html.escape(metric)}</h2><p>{html.escape(says)}.</p>{html_table(head, lines)}"
        f'<div class="pair">{dots}{lined}</div></section>'
    )


def mean_curves(records: Iterable[Mapping[str, Any]], metric: str, names: Sequence[str]) -> list[Line]:
    """The mean curve of every method; curves with different places are read off on a common grid first."""
    given: dict[str, list[tuple[Array, Array]]] = {}
    for record in records:
        for score in record.get("scores", ()):
            if score["metric"] == metric and "curve" in score:
                pair = (np.asarray(score["curve"]["at"]), np.asarray(score["curve"]["values"]))
                given.setdefault(score["method"], []).append(pair)
    lines = []
    for name in names:
        pairs = given.get(name, [])
        if pairs:
            same = all(np.array_equal(at, pairs[0][0]) for at, _ in pairs)
            at = pairs[0][0] if same else _GRID
            lines.append(Line(name, at, np.mean([np.interp(at, *pair) for pair in pairs], axis=0)))
    return lines


def _best(found: Sequence[Mean]) -> Mean:
    return (max if found[0].better == "higher" else min)(found, key=lambda one: one.mean)
