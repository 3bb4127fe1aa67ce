"""Scores over images: means, errors, curves."""

import numpy as np
import pytest
from scipy import stats

from gralis import GralisError
from gralis.faithfulness import Curve, Score, over


def test_mean_with_error_bars() -> None:
    values = np.array([0.2, 0.5, 0.9, 0.4])
    summary = over(Score("deletion", value, "lower") for value in values)
    assert summary.mean == pytest.approx(0.5)
    assert summary.stderr == pytest.approx(stats.sem(values))
    assert summary.interval(0.9) == pytest.approx(stats.t.interval(0.9, 3, 0.5, stats.sem(values)))
    assert (summary.n, summary.better, summary.curve) == (4, "lower", None)


def test_curves_are_averaged_where_they_share_their_places() -> None:
    at = np.array([0.0, 0.5, 1.0])
    scores = [Score("d", 0.0, "lower", Curve(at, np.array(rows))) for rows in ([1.0, 2, 3], [3.0, 2, 1])]
    summary = over(scores)
    assert summary.curve.values.tolist() == [2.0, 2.0, 2.0]
    assert summary.curve_stderr == pytest.approx([1.0, 0.0, 1.0])
    other = Score("d", 0.0, "lower", Curve(at[:2], np.zeros(2)))
    assert over([*scores, other]).curve is None


def test_a_single_image_has_no_error_and_metrics_do_not_mix() -> None:
    assert np.isnan(over([Score("d", 1.0, "lower")]).stderr)
    with pytest.raises(GralisError, match="scores of one metric"):
        over([Score("d", 1.0, "lower"), Score("i", 1.0, "higher")])
