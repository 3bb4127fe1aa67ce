"""The word "exact" stands only where every coalition was evaluated; replicates that agree are not enough."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import gralis
from gralis import Explanation
from gralis.results.tables import SMALLEST, error_text

ONES = torch.ones(10, dtype=torch.float64)


def sampled(function, x: torch.Tensor = ONES, **options) -> Explanation:
    """An explanation from fewer coalitions than there are."""
    explanation = gralis.explain(function, x, baseline=0.0, budget=300, progress=False, **options)
    assert not explanation.exact
    return explanation


def product(z: torch.Tensor) -> torch.Tensor:
    return z.prod(1)


@pytest.mark.parametrize("plan", ["shared", "independent", "endpoint"])
def test_an_unused_feature_of_a_sampled_plan_is_not_exact(plan: str) -> None:
    explanation = sampled(lambda z: z[:, 0] * z[:, 1], plan=plan)
    assert (explanation.stderr[2:] == 0).all()  # no replicate saw it do anything
    assert (explanation.printed_half_widths > 0).all()
    assert "exact" not in str(explanation)
    sweep = explanation.sweep([0.5, 1.0])
    assert (sweep.printed_half_widths > 0).all()
    assert "exact" not in str(sweep)


def test_a_feature_at_its_baseline_is_exact() -> None:
    """phi is 0 by definition; nothing else in the table is."""
    x = ONES.clone()
    x[4] = 0.0
    explanation = sampled(lambda z: (z[:, 0] * z[:, 1]).exp(), x)
    assert (explanation.printed_half_widths == 0).tolist() == [i == 4 for i in range(10)]


def test_a_model_that_answers_zero_everywhere_has_errors_of_zero_but_is_not_exact() -> None:
    explanation = sampled(lambda z: torch.relu(z.sum(1) - 20))
    assert (explanation.printed_half_widths == SMALLEST).all()
    assert error_text(SMALLEST) == "0"
    assert "exact" not in str(explanation)


def test_an_enumerated_plan_is_exact() -> None:
    explanation = gralis.explain(lambda z: z[:, 0] * z[:, 1], ONES[:4], baseline=0.0, progress=False)
    assert (explanation.printed_half_widths == 0).all()
    assert (explanation.shapley().printed_half_widths == 0).all()


def test_errors_are_unknown_if_all_drawn_coalitions_have_the_value_zero() -> None:
    """A product of ten: v(T) = 0 for every T but one, and another T may be the one that was not drawn."""
    explanation = sampled(product)
    results = (
        explanation.shapley(),
        explanation.banzhaf(),
        explanation.kernel_shap(),
        explanation.interactions(2),
        explanation.interactions(2, index="FSII"),
    )
    for result in results:
        assert np.isnan(result.half_widths()).all()
        assert "v is 0 at all coalitions that were drawn" in str(result)
    moebius = explanation.moebius(2)
    small = moebius.estimate.values[:10]
    assert (small == 0).all()
    assert (moebius.stderr[:10] == 0).all()  # single features are known
    assert np.isnan(moebius.stderr).any()
    assert explanation.sign_conflicts == ()


def test_errors_are_known_if_the_drawn_coalitions_differ_or_none_is_missing() -> None:
    assert np.isfinite(sampled(lambda z: z[:, :3].prod(1)).shapley().half_widths()).all()
    assert (gralis.explain(product, ONES[:5], baseline=0.0, progress=False).kernel_shap().stderr == 0).all()


def test_interactions_of_order_one_list_the_single_features() -> None:
    explanation = gralis.explain(lambda z: z @ z.new_tensor([1.0, 3.0, 2.0]), ONES[:3], baseline=0.0, progress=False)
    lines = str(explanation.interactions(order=1)).splitlines()
    assert lines == ["SII up to order 1 (exact)", "x[1]  3", "x[2]  2", "x[0]  1"]
