"""Means with intervals, and paired tests between methods with Holm's correction.

What is independent is a group (a patient), not an image: images of one group are averaged first. Without groups, every
image is one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import Literal

import numpy as np
from scipy import stats

from gralis.arrays import Array
from gralis.bench.tables import Row
from gralis.errors import bad
from gralis.faithfulness.score import Better

Test = Literal["wilcoxon", "permutation"]
_EXACT = 12  # groups up to which all sign changes are tried
_DRAWS = 19_999


@dataclass(frozen=True)
class Mean:
    """The mean of a metric for one method, with Student's interval over groups."""

    metric: str
    method: str
    better: Better
    mean: float
    low: float
    high: float
    n_images: int
    n_groups: int


@dataclass(frozen=True)
class Comparison:
    """Two methods on the same groups: the mean difference a - b, its interval and its p-values."""

    metric: str
    a: str
    b: str
    difference: float
    low: float
    high: float
    p: float
    p_holm: float  # among all pairs of this metric
    n_groups: int
    winner: str  # the better of the two where p_holm < 1 - level, else ""


def means(rows: Iterable[Row], level: float = 0.95) -> list[Mean]:
    """One for every metric and method that has a value.

    >>> [round(one.high, 3) for one in means([Row("a.png", "a.png", "m", "gini", v, "higher") for v in (0.2, 0.4)])]
    [nan]
    >>> one, = means([Row(str(v), str(v), "m", "gini", v, "higher") for v in (0.2, 0.4, 0.6)])
    >>> round(one.mean, 3), round(one.high - one.mean, 3)  # 4.303 * 0.2 / sqrt(3)
    (0.4, 0.497)
    """
    found = []
    for (metric, method), own in _by_method(rows).items():
        groups = np.array(list(_grouped(own).values()))
        low, high = interval(groups, level)
        found.append(Mean(metric, method, own[0].better, float(groups.mean()), low, high, len(own), len(groups)))
    return found


def comparisons(rows: Iterable[Row], level: float = 0.95, test: Test = "wilcoxon") -> list[Comparison]:
    """Every pair of methods on every metric, over the groups that both have a value for."""
    tables: dict[str, dict[str, dict[str, float]]] = {}
    better: dict[str, Better] = {}
    for (metric, method), own in _by_method(rows).items():
        tables.setdefault(metric, {})[method] = _grouped(own)
        better[metric] = own[0].better
    found = []
    for metric, by_method in tables.items():
        pairs = []
        for a, b in combinations(by_method, 2):
            both = [group for group in by_method[a] if group in by_method[b]]
            if both:
                pairs.append((a, b, np.array([by_method[a][group] - by_method[b][group] for group in both])))
        raw = [paired_p(d, test) for _, _, d in pairs]
        for (a, b, d), p, p_holm in zip(pairs, raw, holm(raw), strict=True):
            ahead = (d.mean() > 0) == (better[metric] == "higher")
            winner = (a if ahead else b) if p_holm < 1 - level else ""
            low, high = interval(d, level)
            found.append(Comparison(metric, a, b, float(d.mean()), low, high, p, float(p_holm), len(d), winner))
    return found


def interval(values: Array, level: float = 0.95) -> tuple[float, float]:
    """Student's interval for a mean; NaN for a single value."""
    n = len(values)
    if n < 2:
        return float("nan"), float("nan")
    half = float(stats.t.ppf((1 + level) / 2, n - 1) * values.std(ddof=1) / np.sqrt(n))
    return float(values.mean()) - half, float(values.mean()) + half


def paired_p(differences: Array, test: Test = "wilcoxon") -> float:
    """Two-sided p-value of paired differences; 1 where there is none.

    "wilcoxon" is the signed-rank test (zeros left out), "permutation" changes signs: all ways for up to 12 differences,
    19 999 random ones, always the same, beyond.

    >>> paired_p(np.array([1.0, 2.0, 3.0, 4.0, 5.0])), paired_p(np.array([1.0, 2.0, 3.0, 4.0, 5.0]), "permutation")
    (0.0625, 0.0625)
    """
    if test not in ("wilcoxon", "permutation"):
        raise bad("test", "paired_p", "'wilcoxon' or 'permutation'", repr(test))
    given = np.asarray(differences, dtype=np.float64)
    given = given[given != 0]
    if not len(given):
        return 1.0
    if test == "wilcoxon":
        return float(stats.wilcoxon(given).pvalue)
    observed = abs(given.mean()) * (1 - 1e-12)
    if len(given) <= _EXACT:
        signs = np.array(list(product((-1, 1), repeat=len(given))))
        return float(np.mean(np.abs(signs @ given) / len(given) >= observed))
    signs = np.random.default_rng(0).choice((-1.0, 1.0), (_DRAWS, len(given)))
    return float((1 + np.sum(np.abs(signs @ given) / len(given) >= observed)) / (1 + _DRAWS))


def holm(p: Sequence[float]) -> Array:
    """Holm's step-down correction: the k-th smallest of m p-values times m - k + 1, made monotone, at most 1.

    >>> holm([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.06, 0.06]
    """
    values = np.asarray(p, dtype=np.float64)
    order = np.argsort(values, kind="stable")
    steps = np.maximum.accumulate(values[order] * (len(values) - np.arange(len(values))))
    corrected = np.empty(len(values))
    corrected[order] = np.minimum(steps, 1.0)
    return corrected


def _by_method(rows: Iterable[Row]) -> dict[tuple[str, str], list[Row]]:
    found: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        if row.value is not None and np.isfinite(row.value):
            found.setdefault((row.metric, row.method), []).append(row)
    return found


def _grouped(rows: Iterable[Row]) -> dict[str, float]:
    """The mean of every group."""
    groups: dict[str, list[float]] = {}
    for row in rows:
        assert row.value is not None
        groups.setdefault(row.group, []).append(row.value)
    return {name: float(np.mean(values)) for name, values in groups.items()}
