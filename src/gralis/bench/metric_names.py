"""The names of metrics in a study: "gini", or "deletion:blur" with the baseline "blur"."""

from __future__ import annotations

import inspect
import math

from gralis.baselines.recipes import RECIPES
from gralis.errors import bad
from gralis.faithfulness import METRICS

__all__ = ["ANNOTATED", "check_baseline", "parsed", "takes"]


def parsed(metric: str) -> tuple[str, float | str | None]:
    """The name of a metric, and the baseline that follows its colon, if there is one.

    >>> parsed("gini"), parsed("deletion:blur"), parsed("deletion:0")
    (('gini', None), ('deletion', 'blur'), ('deletion', 0.0))
    """
    name, colon, text = metric.partition(":")
    try:
        return name, float(text) if colon else None
    except ValueError:
        return name, text


def takes(metric: str, keyword: str) -> bool:
    """Whether a metric has this keyword: "annotation" is the mask of an expert, "method" a method that is run again."""
    return keyword in inspect.signature(METRICS[parsed(metric)[0]]).parameters


def check_baseline(metric: str) -> None:
    """Refuse a metric whose baseline is neither a finite number nor a known name."""
    _, baseline = parsed(metric)
    allowed = (*RECIPES, *(() if takes(metric, "method") else ("noisy-linear",)))  # no method can start from the last
    if baseline is not None and (baseline not in allowed if isinstance(baseline, str) else not math.isfinite(baseline)):
        raise bad("metrics", "Study", f"names with a number or {', '.join(allowed)} after ':', if any", repr(metric))


#: The metrics that need an annotation.
ANNOTATED = tuple(name for name in METRICS if takes(name, "annotation"))
