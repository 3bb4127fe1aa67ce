"""The records of a study as one row per image, method and metric, and what failed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gralis.faithfulness.score import Better

__all__ = ["FailureCount", "ScoreRow", "complaints", "failures", "rows"]


@dataclass(frozen=True)
class ScoreRow:
    """One score, or why there is none.

    Attributes
    ----------
    image : str
        The name of the image.
    group : str
        What is independent of other groups: the patient, or the image itself.
    method, metric : str
        What was scored, and how. Both are empty if the image itself failed.
    value : float or None
        The score; None if there is none.
    better : {"higher", "lower"}
        Which scores are good.
    label, target : str
        The label of the image, and what was explained.
    error : str
        Why there is no score; empty if there is one.
    """

    image: str
    group: str
    method: str
    metric: str
    value: float | None
    better: Better
    label: str = ""
    target: str = ""
    error: str = ""


def rows(records: Iterable[Mapping[str, Any]], group: str = "patient") -> list[ScoreRow]:
    """Every score of every record.

    Parameters
    ----------
    records : iterable of mapping
        The records that `run` returns.
    group : str, default="patient"
        The column of the labels that says which images belong together. Without it, every image is a group.

    Returns
    -------
    list of ScoreRow
        The scores, in the order of the records.
    """
    table = []
    for record in records:
        about = record.get("about", {})
        common = {
            "image": record["image"],
            "group": about.get(group) or record["image"],
            "label": about.get("label", ""),
            "target": record.get("target", ""),
        }
        for score in ({"error": record["error"]},) if "error" in record else record.get("scores", ()):
            named = {name: score.get(name, "") for name in ("method", "metric", "error")}
            table.append(ScoreRow(**common, **named, value=score.get("value"), better=score.get("better", "higher")))
    return table


@dataclass(frozen=True)
class FailureCount:
    """On how many images a method, or a metric of a method, failed.

    Attributes
    ----------
    what : str
        The method, or "metric of method".
    n_failed, n_images : int
        On how many images it failed, and on how many it was tried.
    error : str
        The error of the first image.

    Examples
    --------
    >>> print(FailureCount("road_morf of gradcam", 2, 3, "why"))
    road_morf of gradcam failed on 2 of 3 images: why
    """

    what: str
    n_failed: int
    n_images: int
    error: str

    def __str__(self) -> str:
        return f"{self.what} failed on {self.n_failed} of {self.n_images} images: {self.error}"


def failures(records: Iterable[Mapping[str, Any]]) -> list[FailureCount]:
    """What failed on images that could be loaded. A method that failed is named once, not for every metric.

    Parameters
    ----------
    records : iterable of mapping
        The records that `run` returns.

    Returns
    -------
    list of FailureCount
        Methods and metrics that failed on at least one image.
    """
    errors_of: dict[str, dict[str, str]] = {}  # by image; "" where there was no error
    for record in records:
        for score in record.get("scores", ()):
            method, error = score["method"], score.get("error", "")
            worked = method in record["attributions"]
            errors_of.setdefault(method, {})[record["image"]] = "" if worked else error
            if worked:
                errors_of.setdefault(f"{score['metric']} of {method}", {})[record["image"]] = error
    counts = []
    for what, by_image in errors_of.items():
        errors = [error for error in by_image.values() if error]
        if errors:
            counts.append(FailureCount(what, len(errors), len(by_image), errors[0]))
    return counts


def complaints(records: Sequence[Mapping[str, Any]]) -> list[str]:
    """Everything that failed, one line each: first whole images, then methods and metrics.

    Parameters
    ----------
    records : sequence of mapping
        The records that `run` returns.

    Returns
    -------
    list of str
        The lines; empty if nothing failed.

    Examples
    --------
    >>> complaints([{"image": "a.png", "error": "not a picture"}])
    ['a.png: not a picture']
    """
    images = [f"{record['image']}: {record['error']}" for record in records if "error" in record]
    return [*images, *map(str, failures(records))]
