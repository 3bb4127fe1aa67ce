"""The records as tidy tables: one line per image, method and metric. CSV always, Parquet where pyarrow is installed."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from gralis.faithfulness.score import Better
from gralis.storage.container import write_text, write_whole


@dataclass(frozen=True)
class Row:
    """One score, or why there is none."""

    image: str
    group: str  # what is independent: the patient, or the image itself
    method: str
    metric: str
    value: float | None
    better: Better
    label: str = ""
    target: str = ""
    error: str = ""


def rows(records: Iterable[Mapping[str, Any]], group: str = "patient") -> list[Row]:
    """Every score of every record. `group`: the column of the labels that says which images belong together."""
    found = []
    for record in records:
        about = record.get("about", {})
        common = {
            "image": record["image"],
            "group": about.get(group) or record["image"],
            "label": about.get("label", ""),
            "target": record.get("target", ""),
        }
        if "error" in record:
            found.append(Row(**common, method="", metric="", value=None, better="higher", error=record["error"]))
        for score in record.get("scores", ()):
            own = {"method": score["method"], "metric": score["metric"], "value": score.get("value")}
            found.append(Row(**common, **own, better=score.get("better", "higher"), error=score.get("error", "")))
    return found


@dataclass(frozen=True)
class Failure:
    """A method, or a metric of a method, that failed on some of the images that it was tried on.

    >>> print(Failure("road_morf of gradcam", 2, 3, "why"))
    road_morf of gradcam failed on 2 of 3 images: why
    """

    what: str
    n_failed: int
    n_images: int
    error: str  # of the first

    def __str__(self) -> str:
        return f"{self.what} failed on {self.n_failed} of {self.n_images} images: {self.error}"


def failures(records: Iterable[Mapping[str, Any]]) -> list[Failure]:
    """What failed where the image itself did not; a method that failed is named once, not for every metric."""
    outcomes: dict[str, dict[str, str]] = {}  # image by image, "" where all was well
    for record in records:
        for score in record.get("scores", ()):
            method, error = score["method"], score.get("error", "")
            made = method in record["attributions"]
            outcomes.setdefault(method, {})[record["image"]] = "" if made else error
            if made:
                outcomes.setdefault(f"{score['metric']} of {method}", {})[record["image"]] = error
    found = []
    for what, by_image in outcomes.items():
        errors = [error for error in by_image.values() if error]
        if errors:
            found.append(Failure(what, len(errors), len(by_image), errors[0]))
    return found


def complaints(records: Sequence[Mapping[str, Any]]) -> list[str]:
    """Everything that failed, a line each: whole images, then methods and metrics on some of them.

    >>> complaints([{"image": "a.png", "error": "not a picture"}])
    ['a.png: not a picture']
    """
    whole = [f"{record['image']}: {record['error']}" for record in records if "error" in record]
    return [*whole, *map(str, failures(records))]


def write_tables(records: Sequence[Mapping[str, Any]], out: Path, group: str = "patient") -> list[Path]:
    """scores, curves, attributions and timings of all images, the means and the paired tests."""
    from gralis.bench.statistics import Comparison, Mean, comparisons, means

    table = rows(records, group)
    lines: dict[str, tuple[list[str], list[dict[str, Any]]]] = {
        "scores": (_names(Row), [asdict(row) for row in table]),
        "means": (_names(Mean), [asdict(one) for one in means(table)]),
        "tests": (_names(Comparison), [asdict(one) for one in comparisons(table)]),
        "curves": (["image", "method", "metric", "at", "value"], list(_curves(records))),
        "attributions": (["image", "method", "feature", "value"], list(_attributions(records))),
        "timings": (["image", "what", "seconds"], list(_timings(records))),
    }
    written = [_write_csv(out / f"{name}.csv", columns, content) for name, (columns, content) in lines.items()]
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        return written
    columns, content = lines["scores"]
    types = [pyarrow.float64() if name == "value" else pyarrow.string() for name in columns]
    schema = pyarrow.schema(list(zip(columns, types, strict=True)))
    made = pyarrow.Table.from_pylist(content, schema=schema)
    written.append(write_whole(out / "scores.parquet", lambda path: pyarrow.parquet.write_table(made, path)))
    return written


def _write_csv(path: Path, columns: Sequence[str], content: Iterable[Mapping[str, Any]]) -> Path:
    stream = io.StringIO()
    table = csv.DictWriter(stream, columns, lineterminator="\n")
    table.writeheader()
    table.writerows(content)
    return write_text(path, stream.getvalue())


def _names(kind: type[Any]) -> list[str]:
    return [one.name for one in fields(kind)]


def _curves(records: Iterable[Mapping[str, Any]]) -> Iterable[dict[str, Any]]:
    for record in records:
        for score in record.get("scores", ()):
            if "curve" in score:
                own = {"image": record["image"], "method": score["method"], "metric": score["metric"]}
                for at, value in zip(score["curve"]["at"], score["curve"]["values"], strict=True):
                    yield {**own, "at": at, "value": value}


def _attributions(records: Iterable[Mapping[str, Any]]) -> Iterable[dict[str, Any]]:
    for record in records:
        for method, values in record.get("attributions", {}).items():
            for feature, value in enumerate(values):
                yield {"image": record["image"], "method": method, "feature": feature, "value": value}


def _timings(records: Iterable[Mapping[str, Any]]) -> Iterable[dict[str, Any]]:
    for record in records:
        for what, seconds in record.get("timings", {}).items():
            yield {"image": record["image"], "what": what, "seconds": seconds}
