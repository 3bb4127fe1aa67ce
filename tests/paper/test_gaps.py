"""The rows for multi-scale, the gaps and the later errata: each fails if the method or the library is another one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gralis import canonical, explain
from gralis.paper import axiom_cases, axiom_conditions, axiom_gaps, axioms, errata
from gralis.scales import minimum_variance

MULTISCALE = "Multi-scale and Gap 6: response to an inner level while F stays the same"
GAP_1 = "Gap 1: the attribution does not move with the baseline"
GAP_2 = "Gap 2: response to F inside the box, off the corners and off the ray of all features"
GAP_3 = "Gap 3: response to the width of a kernel where the sum is F(x) - F(x')"
GAP_4 = "Gap 4: largest attribution of a unit of a dense layer"
GAP_5 = "Gap 5: least response to interactions, gradients and locality"


def line(name: str) -> axioms.Axiom:
    (found,) = (axiom for axiom in axioms.AXIOMS if axiom.name == name)
    return found


def failing(rows: list[Any]) -> list[str]:
    return [row.claim for row in rows if not row.holds]


def test_the_table_has_every_row_of_the_paper() -> None:
    """Eight properties and six gaps, with the paper's entries beside ours; multi-scale and gap 6 share a row."""
    printed = {
        MULTISCALE: ("part", "no", "no", "no", "part"),
        GAP_1: ("-", "part", "no", "cause", "part"),
        GAP_2: ("no", "cause", "no", "no", "yes"),
        GAP_3: ("no", "no", "cause", "no", "part"),
        GAP_4: ("cause", "no", "no", "no", "part"),
        GAP_5: ("no", "no", "no", "no", "part"),
    }
    assert {name: line(name).paper for name in printed} == printed
    assert "(paper: SHAP no, LIME no, IG no, GRALIS part)" in str(line(GAP_4).row().predicted)
    assert "paper" not in str(line(GAP_2).row().predicted)  # "cause" is "no"


@pytest.mark.parametrize(
    ("method", "impostor", "gap"),
    [
        ("GRALIS", "IG", GAP_2),
        ("GRALIS", "SHAP", GAP_2),
        ("SHAP", "GRALIS", GAP_2),
        ("IG", "GRALIS", GAP_2),
        ("LIME", "GRALIS", GAP_2),
    ],
)
def test_another_method_under_its_name_breaks_the_row(
    monkeypatch: pytest.MonkeyPatch, method: str, impostor: str, gap: str
) -> None:
    right = axiom_cases.AxiomCase.attribution

    def disguised(self: axiom_cases.AxiomCase, sigma: float | None = None) -> np.ndarray:
        return right(replace(self, method=impostor) if self.method == method else self, sigma)

    monkeypatch.setattr(axiom_cases.AxiomCase, "attribution", disguised)
    monkeypatch.setattr(axioms, "MODELS", 2)
    row = line(gap).row()
    assert not row.holds
    assert f"(unexpected: {method})" in str(row.computed)


def _patched(monkeypatch: pytest.MonkeyPatch, method: str, attribution: Any) -> None:
    """Let one method return something else, from its own right answer."""
    right = axiom_cases.AxiomCase.attribution

    def other(self: axiom_cases.AxiomCase, sigma: float | None = None) -> np.ndarray:
        mine = right(self, sigma)
        return attribution(self, mine) if self.method == method else mine

    monkeypatch.setattr(axiom_cases.AxiomCase, "attribution", other)
    monkeypatch.setattr(axioms, "MODELS", 2)


def test_values_that_are_scaled_to_the_sum_fill_gap_3(monkeypatch: pytest.MonkeyPatch) -> None:
    _patched(monkeypatch, "LIME", lambda case, phi: phi * case.delta / phi.sum())
    assert "(unexpected: LIME)" in str(line(GAP_3).row().computed)


def test_values_without_a_baseline_fill_gap_1(monkeypatch: pytest.MonkeyPatch) -> None:
    _patched(monkeypatch, "IG", lambda case, phi: np.ones(4))
    assert "(unexpected: IG)" in str(line(GAP_1).row().computed)


def test_values_that_see_a_product_fill_gap_5(monkeypatch: pytest.MonkeyPatch) -> None:
    _patched(monkeypatch, "GRALIS", lambda case, phi: phi**3)  # no longer linear, so no additive function matches
    assert "(unexpected: GRALIS)" in str(line(GAP_5).row().computed)


def test_a_gradcam_that_takes_dense_layers_fills_gap_4(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(axiom_gaps.canonical, "gradcam", lambda *arguments, **options: np.ones(4))
    monkeypatch.setattr(axioms, "MODELS", 1)
    assert "(unexpected: GradCAM)" in str(line(GAP_4).row().computed)


def test_one_level_alone_is_not_multi_scale(monkeypatch: pytest.MonkeyPatch) -> None:
    right = axiom_gaps._on_levels
    monkeypatch.setattr(axioms, "MODELS", 2)
    monkeypatch.setattr(
        axiom_gaps, "_on_levels", lambda method, *rest: right("IG" if method == "GRALIS" else method, *rest)
    )
    assert "(unexpected: GRALIS)" in str(line(MULTISCALE).row().computed)


def test_a_library_that_is_off_breaks_the_conditions(monkeypatch: pytest.MonkeyPatch) -> None:
    def off(*arguments: Any, **options: Any) -> Any:
        right = explain(*arguments, **options)
        return replace(right, estimate=replace(right.estimate, values=right.values + 1e-6))

    monkeypatch.setattr(axiom_conditions, "explain", off)
    assert axiom_conditions._averaged(0) > 1e-7
    monkeypatch.setattr(axiom_conditions, "explain", lambda f, x, **options: explain(f, 1.001 * x, **options))
    assert axiom_conditions._missing(0) > 1e-6


# ---- errata


def test_wrong_weights_of_levels_break_their_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(errata, "minimum_variance", lambda sigma, method: minimum_variance(sigma, "covariance"))
    broken = failing(errata._correlated_levels())
    assert "correlated levels: inverse-variance weights" in broken
    assert "their variance, where level 1 alone has 1" in broken


def test_a_gradcam_lin_that_is_the_taylor_term_breaks_its_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    class Taylor:
        def __init__(self, *arguments: Any, **options: Any) -> None:
            pass

        def attribution(self) -> np.ndarray:
            return np.zeros(2)

    monkeypatch.setattr(canonical, "gradcam_lin", Taylor)
    assert len(failing(errata._taylor())) == 3


def test_endpoints_in_place_of_rays_break_the_rows_of_c1(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(errata, "explain", lambda *a, **options: explain(*a, **{**options, "plan": "endpoint"}))
    assert failing(errata._affine_segments()) == ["F = (a-b)b^3: phi_1 by rays and by endpoints"]


def test_a_certificate_that_ignores_b_breaks_the_row_of_the_running_totals(monkeypatch: pytest.MonkeyPatch) -> None:
    from gralis.certificates import paper

    right = paper.ratio_bound
    monkeypatch.setattr(paper, "ratio_bound", lambda b_n, *rest: right(np.ones_like(b_n), *rest))
    assert failing(errata._running_totals()) == ["their certificates from the same running totals, ratio"]
