"""The results of a study as tidy tables: CSV always, Parquet where pyarrow is installed."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from gralis.bench.scores import ScoreRow, rows
from gralis.bench.statistics import Mean, PairedTest, comparisons, means
from gralis.checks import printable
from gralis.storage.container import write_text, write_whole

__all__ = ["write_tables"]

_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def write_tables(records: Sequence[Mapping[str, Any]], out: Path, group: str = "patient") -> list[Path]:
    """Write scores, means, paired tests, curves, attributions and timings.

    Parameters
    ----------
    records : sequence of mapping
        The records that `run` returns.
    out : Path
        The folder to write to.
    group : str, default="patient"
        The column of the labels that says which images belong together.

    Returns
    -------
    list of Path
        The files: scores.csv, means.csv, tests.csv, curves.csv, attributions.csv and timings.csv, and scores.parquet
        where pyarrow is installed.
    """
    table = rows(records, group)
    tables: dict[str, tuple[list[str], list[dict[str, Any]]]] = {
        "scores": (_names(ScoreRow), [asdict(row) for row in table]),
        "means": (_names(Mean), [asdict(mean) for mean in means(table)]),
        "tests": (_names(PairedTest), [asdict(test) for test in comparisons(table)]),
        "curves": (["image", "method", "metric", "at", "value"], list(_curves(records))),
        "attributions": (["image", "method", "feature", "value"], list(_attributions(records))),
        "timings": (["image", "what", "seconds"], list(_timings(records))),
    }
    paths = [_write_csv(out / f"{name}.csv", columns, content) for name, (columns, content) in tables.items()]
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        return paths
    columns, content = tables["scores"]
    types = [pyarrow.float64() if name == "value" else pyarrow.string() for name in columns]
    schema = pyarrow.schema(list(zip(columns, types, strict=True)))
    content = [{k: printable(v) if isinstance(v, str) else v for k, v in row.items()} for row in content]
    scores = pyarrow.Table.from_pylist(content, schema=schema)
    return [*paths, write_whole(out / "scores.parquet", lambda path: pyarrow.parquet.write_table(scores, path))]


def _write_csv(path: Path, columns: Sequence[str], content: Iterable[Mapping[str, Any]]) -> Path:
    stream = io.StringIO()
    table = csv.DictWriter(stream, columns, lineterminator="\n")
    table.writeheader()
    table.writerows({name: _cell(value) for name, value in row.items()} for row in content)
    return write_text(path, stream.getvalue())


def _cell(value: Any) -> Any:
    """The value; a text that a spreadsheet would run as a formula gets an apostrophe in front."""
    return f"'{value}" if isinstance(value, str) and value[:1] in _FORMULA else value


def _names(kind: type[Any]) -> list[str]:
    return [field.name for field in fields(kind)]


def _curves(records: Iterable[Mapping[str, Any]]) -> Iterable[dict[str, Any]]:
    for record in records:
        for score in record.get("scores", ()):
            if "curve" in score:
                named = {"image": record["image"], "method": score["method"], "metric": score["metric"]}
                for at, value in zip(score["curve"]["at"], score["curve"]["values"], strict=True):
                    yield {**named, "at": at, "value": value}


def _attributions(records: Iterable[Mapping[str, Any]]) -> Iterable[dict[str, Any]]:
    for record in records:
        for method, values in record.get("attributions", {}).items():
            for feature, value in enumerate(values):
                yield {"image": record["image"], "method": method, "feature": feature, "value": value}


def _timings(records: Iterable[Mapping[str, Any]]) -> Iterable[dict[str, Any]]:
    for record in records:
        for what, seconds in record.get("timings", {}).items():
            yield {"image": record["image"], "what": what, "seconds": seconds}
