"""Intervals, paired tests and Holm's correction, by hand and by scipy."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy import stats

from gralis.bench import ScoreRow, comparisons, holm, means, paired_p
from gralis.errors import GralisError


def table(values: dict[str, np.ndarray], group=None, metric: str = "deletion") -> list[ScoreRow]:
    return [
        ScoreRow(f"i{k}", f"i{k}" if group is None else group[k], method, metric, float(v), "lower")
        for method, column in values.items()
        for k, v in enumerate(column)
    ]


def test_intervals_are_student_s():
    x = np.random.default_rng(0).normal(size=9)
    (found,) = means(table({"m": x}), level=0.9)
    low, high = stats.t.interval(0.9, 8, loc=x.mean(), scale=stats.sem(x))
    assert (found.mean, found.low, found.high) == pytest.approx((x.mean(), low, high))
    assert (found.n_images, found.n_groups) == (9, 9)


def test_images_of_a_group_count_once():
    x = np.array([1.0, 3.0, 10.0, 20.0, 30.0])
    (found,) = means(table({"m": x}, group=["p", "p", "q", "r", "r"]))
    assert (found.mean, found.n_images, found.n_groups) == (np.mean([2, 10, 25]), 5, 3)


def test_wilcoxon_is_scipy_s_and_exact_by_enumeration():
    d = np.array([0.3, -0.1, 0.7, 1.1, -0.2, 0.9, 0.4])
    assert paired_p(d) == pytest.approx(stats.wilcoxon(d).pvalue)
    ranks = stats.rankdata(np.abs(d))
    sums = np.array([ranks[np.array(signs) > 0].sum() for signs in product((-1, 1), repeat=7)])
    mine = ranks[d > 0].sum()
    by_hand = min(1.0, 2 * min((sums >= mine).mean(), (sums <= mine).mean()))
    assert paired_p(d) == pytest.approx(by_hand)
    assert paired_p(np.append(d, 0.0)) == paired_p(d)  # zeros say nothing


def test_permutation_is_exact_for_few_and_close_to_the_t_test_for_many():
    d = np.array([2.0, 1.0, -0.5])
    assert paired_p(d, "permutation") == 4 / 8  # |2.5|: +++ and ---, |3.5| for ++- with its sign: by counting
    many = np.random.default_rng(1).normal(0.3, 1, 60)
    assert paired_p(many, "permutation") == pytest.approx(stats.ttest_1samp(many, 0).pvalue, abs=0.01)
    assert paired_p(many, "permutation") == paired_p(many, "permutation")
    assert paired_p(np.zeros(5), "permutation") == paired_p(np.zeros(5)) == 1.0
    with pytest.raises(GralisError, match="'test'"):
        paired_p(d, "sign")


def test_a_test_at_five_percent_is_wrong_in_about_five_percent():
    rng = np.random.default_rng(2)
    for test in ("wilcoxon", "permutation"):
        wrong = np.mean([paired_p(rng.normal(size=10), test) < 0.05 for _ in range(400)])
        assert 0.02 < wrong < 0.08


def test_holm_by_hand():
    p = [0.011, 0.02, 0.6, 0.013]
    assert holm(p) == pytest.approx([0.044, 0.044, 0.6, 0.044])  # 4 * .011, max(3 * .013, .044), max(2 * .02, .044), .6
    assert holm([0.9, 0.8]).tolist() == [1.0, 1.0]
    assert len(holm([])) == 0


def test_comparisons_pair_groups_and_name_the_better():
    rng = np.random.default_rng(3)
    base = rng.normal(size=12)
    rows = table({"good": base - 1 + 0.1 * rng.normal(size=12), "bad": base, "same": base + 0.1 * rng.normal(size=12)})
    rows = [row for row in rows if (row.image, row.method) != ("i0", "bad")]
    found = {(one.a, one.b): one for one in comparisons(rows)}
    assert set(found) == {("good", "bad"), ("good", "same"), ("bad", "same")}
    assert found["good", "bad"].n_groups == 11
    assert found["good", "same"].n_groups == 12
    assert found["good", "bad"].winner == found["good", "same"].winner == "good"  # lower is better
    assert found["bad", "same"].winner == ""
    raw = [one.p for one in found.values()]
    assert [one.p_holm for one in found.values()] == pytest.approx(stats_holm(raw))
    d = np.array(
        [a.value - b.value for a in rows for b in rows if (a.method, b.method, a.image) == ("good", "same", b.image)]
    )
    assert found["good", "same"].difference == pytest.approx(d.mean())


def stats_holm(p: list[float]) -> list[float]:
    """The definition: the largest (m - rank of q) q over all q at most p."""
    m = len(p)
    return [min(1.0, max((m - sum(r < q for r in p)) * q for q in p if q <= one)) for one in p]
