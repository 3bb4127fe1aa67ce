"""The table shows phi and the Shapley value with their intervals, and says where the two have opposite signs."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch

import gralis
from gralis import Explanation, Uniform
from gralis.notebook import MOST_ROWS
from gralis.results import both_answers


def hump(z: torch.Tensor) -> torch.Tensor:
    """12 x0 x1 (1 - x1) - 0.2 x0: with x = 1, x0 raises the output half-way, and lowers it at both ends.

    On the ray of {0} dF/dx0 is -0.2; on the ray of {0, 1} it is 12 a (1 - a) - 0.2, whose integral is 1.8. So with the
    uniform kernel phi_0 = (-0.2 + 1.8) / 2 = 0.8, and phi_1 = (0 - 2) / 2 = -1. Shapley values: -0.2 and 0.
    """
    return 12 * z[:, 0] * z[:, 1] * (1 - z[:, 1]) - 0.2 * z[:, 0] + 0.5 * z[:, 2:].sum(1)


def explained(n_features: int = 4, **options: object) -> Explanation:
    x = torch.ones(n_features, dtype=torch.float64)
    return gralis.explain(hump, x, kernel=Uniform(), **{"budget": 600, **options})


def test_a_feature_with_opposite_signs_is_found_marked_and_said() -> None:
    e = explained()
    (conflict,) = e.sign_conflicts
    assert (conflict.feature, conflict.name) == (0, "x[0]")
    assert np.isclose(conflict.phi, 0.8)
    assert np.isclose(conflict.shapley, -0.2)
    text = repr(e)
    row = next(line for line in text.splitlines() if line.startswith("x[0] "))
    assert re.match(r"x\[0\] +0\.8 +exact +-0\.2 +exact +opposite signs$", row)
    assert "x[0] (phi 0.8 +- exact" not in text  # an exact number has no half-width
    assert "raises the output on the way from x' to x" in text
    assert "lowers it on average" in text
    assert "opposite signs" in e._repr_html_()


def test_a_conflict_of_negligible_features_does_not_alarm() -> None:
    e = gralis.explain(lambda z: hump(z[:, :2]) + 1000 * z[:, 2], torch.ones(3, dtype=torch.float64), kernel=Uniform())
    assert [conflict.feature for conflict in e.sign_conflicts] == [0]
    assert "below 1% of the largest phi this matters little" in repr(e)
    assert "read both numbers" not in repr(e)


def test_a_value_of_zero_is_no_conflict() -> None:
    """The Shapley value of x1 is 0 (up to rounding) and its phi -1: no opposite signs."""
    assert [conflict.feature for conflict in explained().sign_conflicts] == [0]


def test_within_the_errors_no_sign_is_claimed() -> None:
    e = explained(12, budget=300)  # sampled
    assert not e.exact
    half, beside = e.half_widths(), e.shapley().half_widths()
    claimed = {conflict.feature for conflict in e.sign_conflicts}
    for i in range(12):
        sure = abs(e.values[i]) > half[i] and abs(e.shapley().values[i]) > beside[i]
        assert (i in claimed) == (sure and e.values[i] * e.shapley().values[i] < 0)


def test_shapley_values_stand_beside_phi_and_add_up() -> None:
    e = explained(12, budget=300)
    assert e.shapley_beside is not None
    assert np.isclose(e.shapley_beside.values.sum(), e.delta)
    text = repr(e)
    assert re.search(r"feature +phi +\+- +Shapley +\+-", text)
    assert not re.search(r"\bshare\b|%", text.replace("(95% intervals)", ""))
    i = int(np.argmax(np.abs(e.values)))
    row = next(line for line in text.splitlines() if line.startswith(f"{e.names[i]} "))
    assert f"{e.shapley().values[i]:.5g}" in row
    assert f"{e.shapley().half_widths()[i]:.2g}" in row
    assert f"of Shapley {e.delta:.6g}" in text


def test_a_table_of_shapley_values_has_no_second_column() -> None:
    e = explained(plan="values", budget=None)
    assert e.shapley_beside is None
    assert e.sign_conflicts == ()
    assert re.search(r"feature +Shapley +\+-$", repr(e), flags=re.MULTILINE)
    assert "phi" not in repr(e)


def test_a_ledger_without_values_or_too_large_shows_phi_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(both_answers, "MOST_NUMBERS", 10)
    e = explained(12, budget=300)
    assert e.shapley_beside is None
    assert e.sign_conflicts == ()
    assert re.search(r"feature +phi +\+-$", repr(e), flags=re.MULTILINE)


@pytest.mark.parametrize("n_features", [MOST_ROWS, MOST_ROWS + 1, MOST_ROWS + 2, MOST_ROWS + 3])
def test_a_table_never_leaves_out_exactly_one_row(n_features: int) -> None:
    e = explained(n_features, budget=400)
    printed = (
        e,
        e.shapley(),
        gralis.Explanations((e, e), ("a", "b")),
        e.ranks(),
        e.audit(e.shapley()),
        e.weight_mass(),
    )
    for result in printed:
        text = repr(result)
        left_out = sum(not re.search(rf"^{re.escape(name)} ", text, flags=re.MULTILINE) for name in e.names)
        assert left_out == (0 if n_features <= MOST_ROWS + 1 else n_features - MOST_ROWS)
        assert (f"({left_out} more" in text) == (left_out > 0)


def test_the_command_line_shows_both_answers(capsys: pytest.CaptureFixture[str]) -> None:
    from gralis.cli.printing import print_explanation

    print_explanation(explained(), "x", "output")
    printed = capsys.readouterr().out
    assert re.search(r"x\[0\] +0\.8 +exact +-0\.2 +exact +opposite signs", printed)
