"""Do two runs, or two methods, say the same?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Literal, Unpack

import numpy as np

from gralis.arrays import Array
from gralis.checks import whole
from gralis.errors import GralisError, bad
from gralis.faithfulness.rerun import again, method_of
from gralis.faithfulness.score import Score
from gralis.faithfulness.scored_input import case, finite
from gralis.methods.method import BUDGET, Method, Words

Kind = Literal["spearman", "kendall", "top"]


def stability(
    model: object,
    x: object,
    attribution: object,
    *,
    method: str | Method,
    n_runs: int = 5,
    budget: int = BUDGET,
    **asked: Unpack[Words],
) -> Score:
    """sqrt(mean squared distance between two runs / 2) / ||mean run||: run-to-run noise; lower is better.

    The attribution is one run, `method` makes n_runs - 1 more with the seeds after this one. 0: nothing is random.
    """
    if whole(n_runs, "n_runs", 1, "stability") < 2:
        raise bad("n_runs", "stability", "a whole number >= 2", n_runs)
    run = method_of(method, "stability")
    with case(stability, model, x, attribution, asked) as found:
        more = [again(run, found, model, x, seed=found.seed + number, budget=budget) for number in range(1, n_runs)]
        runs = np.stack([found.values, *more])
        size = float(np.linalg.norm(runs.mean(0)))
        if size == 0:
            raise GralisError("The attribution is zero, so noise relative to it has no meaning.")
        note = f"mean rank correlation of two runs {_mean_correlation(runs):.3f}"
        return Score("stability", float(np.sqrt(runs.var(0, ddof=1).sum()) / size), "lower", note=note)


def rank_agreement(
    model: object,
    x: object,
    attribution: object,
    *,
    others: Sequence[object],
    kind: Kind = "spearman",
    k: int = 5,
    **asked: Unpack[Words],
) -> Score:
    """How alike attributions order the features, the mean over `others`; higher is better.

    "spearman" and "kendall" are correlations of the signed values, "top" the share of the k largest that they have
    in common.

    >>> rank_agreement(lambda z: z.sum(1), np.ones(3), np.array([3.0, 2, 1]), others=[np.array([9.0, 5, 4])]).value
    1.0
    """
    if kind not in ("spearman", "kendall", "top"):
        raise bad("kind", "rank_agreement", "'spearman', 'kendall' or 'top'", repr(kind))
    with case(rank_agreement, model, x, attribution, asked) as found:
        allowed = f"a list of attributions of shape {found.values.shape}, all finite"
        if not isinstance(others, Iterable):
            raise bad("others", "rank_agreement", allowed, repr(others))
        theirs = [finite(other, "others", "rank_agreement", allowed) for other in others]
        if not theirs or any(values.shape != found.values.shape for values in theirs):
            raise bad("others", "rank_agreement", allowed, f"shapes {[values.shape for values in theirs]}")
        top = whole(k, "k", 1, "rank_agreement")
        value = np.mean([agreement(found.values, values, kind, top) for values in theirs])
        return Score(f"rank_agreement ({kind})", float(value), "higher")


def agreement(a: Array, b: Array, kind: Kind = "spearman", k: int = 5) -> float:
    """Of two attributions; 0 where one of them does not order the features at all."""
    if kind == "top":
        k = min(k, len(a))
        mine, theirs = (set(np.argsort(-values, kind="stable")[:k].tolist()) for values in (a, b))
        return len(mine & theirs) / k
    if np.ptp(a) == 0 or np.ptp(b) == 0:
        return 0.0
    from scipy import stats  # takes long to import

    correlation = stats.spearmanr if kind == "spearman" else stats.kendalltau
    return float(correlation(a, b).statistic)


def _mean_correlation(runs: Array) -> float:
    return float(np.mean([agreement(a, b) for a, b in combinations(runs, 2)]))
