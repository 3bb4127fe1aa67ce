"""Do two runs, or two methods, give the same attribution?"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Literal, Unpack

import numpy as np

from gralis.api.signature import keywords_of
from gralis.arrays import Array
from gralis.checks import one_of, several, whole
from gralis.errors import GralisError, bad
from gralis.faithfulness.rerun import method_of, values_again
from gralis.faithfulness.score import Score
from gralis.faithfulness.scored_input import ScoredInput, finite
from gralis.methods.method import Method
from gralis.methods.settings import BUDGET, SharedKeywords, SharedSettings

__all__ = ["agreement", "rank_agreement", "stability"]

Kind = Literal["spearman", "kendall", "top"]


@keywords_of(SharedSettings)
def stability(
    model: object,
    x: object,
    attribution: object,
    *,
    method: str | Method,
    n_runs: int = 5,
    budget: int = BUDGET,
    **keywords: Unpack[SharedKeywords],
) -> Score:
    """sqrt(mean squared distance between two runs / 2) / ||mean run||: the noise between runs; lower is better.

    The attribution counts as the first run. A value of 0 means that nothing is random.

    Parameters
    ----------
    model : object
        The model F, in any form that `gralis.explain` takes.
    x : object
        One input, without a batch axis.
    attribution : Attribution, Explanation or array
        What is scored: a result with `.values`, or an array with one number per feature or shaped like x.
    method : str or callable
        The method that made the attribution: a name in `gralis.methods.METHODS`, or a function with the signature of
        a method. It runs n_runs - 1 times, with the seeds that follow `seed`.
    n_runs : int, default=5
        The number of runs, the attribution included; at least 2.
    budget : int, default=1024
        The budget of each run, which should be the budget of the attribution.

    Returns
    -------
    Score
        The noise, with the mean rank correlation of two runs as its note.
    """
    whole(n_runs, "n_runs", 2, "stability", most=10**6)
    run = method_of(method, "stability")
    with ScoredInput.open(stability, model, x, attribution, keywords) as scored:
        seeds = range(scored.seed + 1, scored.seed + n_runs)
        more = [values_again(run, scored, model, x, seed=seed, budget=budget) for seed in seeds]
        runs = np.stack([scored.values, *more])
        size = float(np.linalg.norm(runs.mean(0)))
        if size == 0:
            raise GralisError("The attribution is zero, so noise relative to it has no meaning.")
        correlation = float(np.mean([agreement(a, b) for a, b in combinations(runs, 2)]))
        note = f"mean rank correlation of two runs {correlation:.3f}"
        moved = runs - runs[0]  # the mean of equal numbers may be rounded, and their differences are not
        return Score("stability", float(np.sqrt(moved.var(0, ddof=1).sum()) / size), "lower", note=note)


@keywords_of(SharedSettings)
def rank_agreement(
    model: object,
    x: object,
    attribution: object,
    *,
    others: Sequence[object],
    kind: Kind = "spearman",
    k: int = 5,
    **keywords: Unpack[SharedKeywords],
) -> Score:
    """How similarly attributions order the features, as the mean over `others`; higher is better.

    Parameters
    ----------
    model : object
        The model F. It is not called.
    x : object
        One input, without a batch axis.
    attribution : Attribution, Explanation or array
        What is scored: a result with `.values`, or an array with one number per feature or shaped like x.
    others : sequence of Attribution, Explanation or array
        The attributions that it is compared with, each with one number per feature.
    kind : {"spearman", "kendall", "top"}, default="spearman"
        The first two are rank correlations of the signed values. "top" is the share of the k largest values that two
        attributions have in common.
    k : int, default=5
        How many of the largest values "top" compares.

    Returns
    -------
    Score

    Examples
    --------
    >>> rank_agreement(lambda z: z.sum(1), np.ones(3), np.array([3.0, 2, 1]), others=[np.array([9.0, 5, 4])]).value
    1.0
    """
    one_of(kind, ("spearman", "kendall", "top"), "kind", "rank_agreement")
    with ScoredInput.open(rank_agreement, model, x, attribution, keywords) as scored:
        allowed = f"a list of attributions of shape {scored.values.shape}, all finite"
        given = several(others, "others", "rank_agreement", allowed)
        theirs = [finite(other, "others", "rank_agreement", allowed) for other in given]
        if any(values.shape != scored.values.shape for values in theirs):
            raise bad("others", "rank_agreement", allowed, f"shapes {[values.shape for values in theirs]}")
        top = whole(k, "k", 1, "rank_agreement")
        value = np.mean([agreement(scored.values, values, kind, top) for values in theirs])
        return Score(f"rank_agreement ({kind})", float(value), "higher")


def agreement(a: Array, b: Array, kind: Kind = "spearman", k: int = 5) -> float:
    """The agreement of two attributions; 0 if one of them gives all features the same value."""
    if kind == "top":
        k = min(k, len(a))
        mine, theirs = (set(np.argsort(-values, kind="stable")[:k].tolist()) for values in (a, b))
        return len(mine & theirs) / k
    if np.ptp(a) == 0 or np.ptp(b) == 0:
        return 0.0
    from scipy import stats  # takes long to import

    correlation = stats.spearmanr if kind == "spearman" else stats.kendalltau
    return float(correlation(a, b).statistic)
