"""Means with intervals, and paired tests between methods with Holm's correction.

Groups (such as patients) are independent of each other, images of one group are not: they are averaged first. Without
groups, every image is its own group.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import Literal

import numpy as np
from scipy.special import stdtrit

from gralis.arrays import Array
from gralis.bench.scores import ScoreRow
from gralis.checks import one_of
from gralis.faithfulness.score import Better

__all__ = ["Mean", "PairedTest", "comparisons", "holm", "interval", "means", "paired_p"]

Test = Literal["wilcoxon", "permutation"]
_EXACT = 12  # up to this number of groups, all sign changes are tried
_DRAWS = 19_999


@dataclass(frozen=True)
class Mean:
    """The mean of a metric for one method, with Student's interval over groups.

    Attributes
    ----------
    metric, method : str
        What was averaged.
    better : {"higher", "lower"}
        Which scores are good.
    mean, low, high : float
        The mean of the groups, and the ends of its interval (NaN for a single group).
    n_images, n_groups : int
        How many images and groups have a score.
    """

    metric: str
    method: str
    better: Better
    mean: float
    low: float
    high: float
    n_images: int
    n_groups: int


@dataclass(frozen=True)
class PairedTest:
    """Two methods on the same groups: the mean difference a - b, its interval and its p-values.

    Attributes
    ----------
    metric : str
        What was compared.
    a, b : str
        The two methods.
    difference, low, high : float
        The mean of a - b over the groups, and the ends of its interval.
    p, p_holm : float
        The p-value of this pair, and the same after Holm's correction for all pairs of this metric.
    n_groups : int
        The number of groups for which both methods have a score.
    winner : str
        The better method if p_holm < 1 - level, else empty.
    """

    metric: str
    a: str
    b: str
    difference: float
    low: float
    high: float
    p: float
    p_holm: float
    n_groups: int
    winner: str


def means(rows: Iterable[ScoreRow], level: float = 0.95) -> list[Mean]:
    """The mean of every metric for every method, with Student's interval over groups.

    Parameters
    ----------
    rows : iterable of ScoreRow
        The scores, from `rows`.
    level : float, default=0.95
        The level of the intervals.

    Returns
    -------
    list of Mean
        One for every metric and method that has a score.

    Examples
    --------
    >>> scores = [ScoreRow("a.png", "a.png", "m", "gini", v, "higher") for v in (0.2, 0.4)]
    >>> [round(mean.high, 3) for mean in means(scores)]
    [nan]
    >>> (mean,) = means([ScoreRow(str(v), str(v), "m", "gini", v, "higher") for v in (0.2, 0.4, 0.6)])
    >>> round(mean.mean, 3), round(mean.high - mean.mean, 3)  # 4.303 * 0.2 / sqrt(3)
    (0.4, 0.497)
    """
    averages = []
    for (metric, method), scores in _by_method(rows).items():
        groups = np.array(list(_grouped(scores).values()))
        ends, average = interval(groups, level), float(groups.mean())
        averages.append(Mean(metric, method, scores[0].better, average, *ends, len(scores), len(groups)))
    return averages


def comparisons(rows: Iterable[ScoreRow], level: float = 0.95, test: Test = "wilcoxon") -> list[PairedTest]:
    """Compare every pair of methods on every metric, over the groups for which both have a score.

    Parameters
    ----------
    rows : iterable of ScoreRow
        The scores, from `rows`.
    level : float, default=0.95
        The level of the intervals; 1 - level is the level of the tests.
    test : {"wilcoxon", "permutation"}, default="wilcoxon"
        The test, as in `paired_p`.

    Returns
    -------
    list of PairedTest
        One for every metric and pair of methods.
    """
    tables: dict[str, dict[str, dict[str, float]]] = {}
    better: dict[str, Better] = {}
    for (metric, method), scores in _by_method(rows).items():
        tables.setdefault(metric, {})[method] = _grouped(scores)
        better[metric] = scores[0].better
    tests = []
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
            tests.append(PairedTest(metric, a, b, float(d.mean()), low, high, p, float(p_holm), len(d), winner))
    return tests


def interval(values: Array, level: float = 0.95) -> tuple[float, float]:
    """Student's interval for a mean; NaN for a single value."""
    n = len(values)
    if n < 2:
        return float("nan"), float("nan")
    half = float(stdtrit(n - 1, (1 + level) / 2) * values.std(ddof=1) / np.sqrt(n))
    return float(values.mean()) - half, float(values.mean()) + half


def paired_p(differences: Array, test: Test = "wilcoxon") -> float:
    """The two-sided p-value of paired differences; 1 if all of them are zero.

    Parameters
    ----------
    differences : ndarray of shape (n,)
        The differences. Zeros are left out.
    test : {"wilcoxon", "permutation"}, default="wilcoxon"
        The signed-rank test, or the permutation test of the mean: all sign changes for up to 12 differences, else
        19 999 random ones, which are the same in every call.

    Returns
    -------
    float
        The p-value.

    Examples
    --------
    >>> paired_p(np.array([1.0, 2.0, 3.0, 4.0, 5.0])), paired_p(np.array([1.0, 2.0, 3.0, 4.0, 5.0]), "permutation")
    (0.0625, 0.0625)
    """
    one_of(test, ("wilcoxon", "permutation"), "test", "paired_p")
    d = np.asarray(differences, dtype=np.float64)
    d = d[d != 0]
    if not len(d):
        return 1.0
    if test == "wilcoxon":
        from scipy import stats  # here, because it takes a second to import

        return float(stats.wilcoxon(d).pvalue)
    observed = abs(d.mean()) * (1 - 1e-12)
    if len(d) <= _EXACT:
        signs = np.array(list(product((-1, 1), repeat=len(d))))
        return float(np.mean(np.abs(signs @ d) / len(d) >= observed))
    signs = np.random.default_rng(0).choice((-1.0, 1.0), (_DRAWS, len(d)))
    return float((1 + np.sum(np.abs(signs @ d) / len(d) >= observed)) / (1 + _DRAWS))


def holm(p: Sequence[float]) -> Array:
    """Holm's step-down correction: the k-th smallest of m p-values times m - k + 1, made monotone, at most 1.

    Parameters
    ----------
    p : sequence of float
        The p-values.

    Returns
    -------
    ndarray of shape (m,)
        The corrected p-values, in the order of `p`.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.06, 0.06]
    """
    values = np.asarray(p, dtype=np.float64)
    order = np.argsort(values, kind="stable")
    steps = np.maximum.accumulate(values[order] * (len(values) - np.arange(len(values))))
    corrected = np.empty(len(values))
    corrected[order] = np.minimum(steps, 1.0)
    return corrected


def _by_method(rows: Iterable[ScoreRow]) -> dict[tuple[str, str], list[ScoreRow]]:
    scores: dict[tuple[str, str], list[ScoreRow]] = {}
    for row in rows:
        if row.value is not None and np.isfinite(row.value):
            scores.setdefault((row.metric, row.method), []).append(row)
    return scores


def _grouped(rows: Iterable[ScoreRow]) -> dict[str, float]:
    """The mean of every group."""
    groups: dict[str, list[float]] = {}
    for row in rows:
        assert row.value is not None
        groups.setdefault(row.group, []).append(row.value)
    return {name: float(np.mean(values)) for name, values in groups.items()}
