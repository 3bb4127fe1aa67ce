"""A wrong number, a wrong formula or a wrong library makes a row of `verify` fail."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from gralis import explain
from gralis.paper import (
    appendix_e,
    axiom_cases,
    axioms,
    canonical_form,
    complexity,
    efficient_kernels,
    errata,
    open_questions,
    paths,
    rational,
    sampling,
    theorems,
    verify,
)
from gralis.paper.rational import Polynomial


def failing(module: ModuleType) -> list[str]:
    return [row.claim for row in module.rows() if not row.holds]


def test_a_wrong_coefficient_breaks_appendix_e(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = {(0,): 2, (1,): 3, (2,): 1, (0, 1): 4, (0, 2): -1, (1, 2): 3}
    monkeypatch.setattr(appendix_e, "TOY", Polynomial.multilinear(3, wrong))
    broken = verify(["appendix-e"])
    assert not broken.holds
    claims = {row.claim for row in broken.failed}
    assert {"sum of phi", "Shapley values", "Var F", "explain: phi", "E F"} <= claims
    assert "Lemma A: sum of a ray minus v, all 8 coalitions" not in claims  # true of every function


def test_a_wrong_prediction_breaks_its_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(appendix_e, "_PHI", (Fraction(11, 4), Fraction(9, 2), Fraction(5, 4) + Fraction(1, 10**9)))
    assert failing(appendix_e) == ["phi by path integration, uniform kernel", "explain: phi"]


def test_a_library_that_is_slightly_off_breaks_its_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    def off(*arguments: Any, **options: Any) -> Any:
        right = explain(*arguments, **options)
        return replace(right, estimate=replace(right.estimate, values=right.values + 1e-7))

    monkeypatch.setattr(appendix_e, "explain", off)
    assert "explain: phi" in failing(appendix_e)
    monkeypatch.setattr(canonical_form, "explain", off)
    assert "GRALIS: triple against the method" in failing(canonical_form)


@pytest.mark.parametrize("name", list(canonical_form._TRIPLES))
def test_wrong_weights_break_theorem_1(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    right = canonical_form._TRIPLES[name]

    def wrong(f: Any, x: Any) -> Any:
        triple = right(f, x)
        return replace(triple, weights=triple.weights * (1 + 1e-6))

    monkeypatch.setitem(canonical_form._TRIPLES, name, wrong)
    assert f"{name}: triple against the method" in failing(canonical_form)


def test_a_map_that_is_not_linear_breaks_theorem_1(monkeypatch: pytest.MonkeyPatch) -> None:
    right = canonical_form._TRIPLES["IG"]

    def wrong(f: Any, x: Any) -> Any:
        triple = right(f, x)
        return replace(triple, marginals=np.abs(triple.marginals))

    monkeypatch.setitem(canonical_form._TRIPLES, "IG", wrong)
    assert "IG: linear in F" in failing(canonical_form)


def test_the_classical_weights_instead_of_the_squares_break_the_corollaries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rational, "gralis", lambda F, x, base, kernel=None: rational.endpoint(F.game(x, base), len(x)))
    broken = failing(theorems)
    assert "sum of phi = v(F) - sum of m(T) (1 - 1/|T|)" in broken
    assert "phi_i = sum of m(T) / |T|^2, largest difference" in broken
    assert "curved F: sum of phi = sum of vbar_t / t" in failing(open_questions)


def test_rays_that_miss_their_value_break_lemma_a(monkeypatch: pytest.MonkeyPatch) -> None:
    right = Polynomial.ray

    def wrong(self: Polynomial, x: Any, base: Any, t: Any) -> Any:
        return [value * Fraction(99, 100) for value in right(self, x, base, t)]

    monkeypatch.setattr(Polynomial, "ray", wrong)
    assert "Lemma A: sum of a ray minus v, all 8 coalitions" in failing(appendix_e)
    assert "sum of a ray = v(T), curved F, largest difference" in failing(theorems)
    assert "order 1, 2, 3: contributions" in failing(errata)


def test_a_smaller_bound_breaks_theorem_3(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "numerator_bound", lambda b, e, m, delta: np.full(3, 1e-4))
    assert failing(sampling) == ["numerator outside its bound, share of 4000 runs"]
    monkeypatch.setattr(sampling, "_THIRD", 0.01)
    assert "midpoint error / its bound, largest over S, i, k" in failing(sampling)


def test_one_evaluation_too_many_breaks_the_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    right = complexity.Counting.value_and_gradient

    def wasteful(self: complexity.Counting, points: Any) -> Any:
        self.n_gradients += 1
        return right(self, points)

    monkeypatch.setattr(complexity.Counting, "value_and_gradient", wasteful)
    broken = failing(complexity)
    assert "GRALIS exact, pair by pair: n 2^(n-1) k, n = 3, 4, 5" in broken
    assert "GRALIS-MC, m = 6, n = 4, k = 3: m n k gradients" in broken
    assert "IG, k = 3: forwards, gradients" in broken


def test_a_monotone_path_breaks_its_row(monkeypatch: pytest.MonkeyPatch) -> None:
    corners = tuple((Fraction(a), Fraction(b)) for a, b in ((0, 0), (0, 1), (1, 1)))
    monkeypatch.setattr(paths, "_BEYOND", corners)
    assert failing(paths) == ["F = x1 x2, up to 2 and back: A"]


def test_weights_that_are_not_shapleys_break_the_kernel_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(efficient_kernels, "shapley_weight", lambda n, size: Fraction(1, 2 ** (n - 1)))  # Banzhaf's
    assert "numerator: pi = 1 on proper subsets keeps it, any pi(F)" in failing(efficient_kernels)


@pytest.mark.parametrize(
    ("method", "impostor", "axiom"),
    [
        ("SHAP", "LIME", "Efficiency"),
        ("SHAP", "IG", "Symmetry, of v"),
        ("IG", "GRALIS", "Efficiency"),
        ("GRALIS", "SHAP", "Dummy, in v"),
        ("GRALIS", "IG", "Locality: response to the width of a kernel"),
        ("LIME", "SHAP", "Dummy, in F"),
        ("IG", "SHAP", "Sensitivity (gradients): response to F between the corners"),
    ],
)
def test_another_method_under_its_name_breaks_the_axiom_table(
    monkeypatch: pytest.MonkeyPatch, method: str, impostor: str, axiom: str
) -> None:
    right = axiom_cases.AxiomCase.attribution

    def disguised(self: axiom_cases.AxiomCase, sigma: float | None = None) -> np.ndarray:
        return right(replace(self, method=impostor) if self.method == method else self, sigma)

    monkeypatch.setattr(axiom_cases.AxiomCase, "attribution", disguised)
    monkeypatch.setattr(axioms, "MODELS", 2)
    (row,) = (line.row() for line in axioms.AXIOMS if line.name == axiom)
    assert not row.holds
    assert f"(unexpected: {method})" in str(row.computed)
