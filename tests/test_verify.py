"""`verify`: every claim holds; a wrong number, formula or library makes a row fail; its arithmetic by other means."""

from __future__ import annotations

import itertools
import json
import math
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gralis import GralisError, explain
from gralis.games import Multilinear
from gralis.paper import (
    SECTIONS,
    Row,
    Section,
    Verification,
    appendix_e,
    axioms,
    cases,
    complexity,
    corrections,
    kernels,
    networks,
    paths,
    sampling,
    settled,
    theorems,
    verify,
)
from gralis.paper import canonical as canonical_rows
from gralis.paper import exact as arithmetic
from gralis.paper.__main__ import main
from gralis.paper.exact import Polynomial
from gralis.paper.row import at_most, equal, exceeds, near, shown, vanishes
from reference import (
    conditioned_ig,
    exact_gralis,
    exact_value,
    gauss_panels,
    normaliser,
    shapley_by_orders,
    subsets,
    torch_polynomial,
    without,
)

# ---- everything holds


@pytest.fixture(scope="module")
def found() -> Verification:
    return verify()


def test_every_claim_holds_within_a_minute(found: Verification) -> None:
    assert not found.failed
    assert found.holds
    assert found.seconds < 60
    assert [section.name for section in found.sections] == list(SECTIONS)
    assert len(found.rows) > 150
    for section in found.sections:
        claims = [row.claim for row in section.rows]
        assert len(set(claims)) == len(claims) > 3
        assert all(row.claim and shown(row.predicted) and shown(row.computed) for row in section.rows)


@pytest.mark.parametrize(
    ("claim", "value"),
    [
        ("phi by path integration, uniform kernel", "11/4, 9/2, 5/4"),
        ("sum of phi", "17/2"),
        ("Shapley values", "7/2, 6, 3/2"),
        ("Moebius coefficients 1, 2, 3, 12, 13, 23, 123", "2, 3, 1, 4, -1, 2, 0"),
        ("interactions 12, 13, 23 by Grabisch and Roubens", "4, -1, 2"),
        ("E F", "17/4"),
        ("Var F", "209/48"),
        ("Sobol indices", "49/209, 144/209, 9/209"),
        ("weights for variances 1, 4, 1/4", "4/21, 1/21, 16/21"),
        ("their sum is not v(F) = 11", "17/2"),
        ("F = x1 x2, up to 2 and back: A", "2, -1"),
        ("GRALIS exact, pair by pair: n 2^(n-1) k, n = 3, 4, 5", "36, 96, 240"),
        ("GRALIS-MC, m = 6, n = 4, k = 3: m n k gradients", "72"),
    ],
)
def test_the_numbers_that_must_come_out(found: Verification, claim: str, value: str) -> None:
    (row,) = (row for row in found.rows if row.claim == claim)
    assert shown(row.computed) == value
    assert row.holds


def test_every_theorem_has_its_row(found: Verification) -> None:
    sources = " ".join(row.source for row in found.rows)
    for label in (
        "Thm. canonical",
        "Thm. completeness",
        "Thm. mc",
        "Thm. siv",
        "Thm. anova",
        "Thm. sobol",
        "Thm. ms",
        "Lemma A",
        "Lemma shapley-weight",
        "Cor. mobius-correction",
        "Cor. siv-gralis-relation",
        "Cor. ratio-bound",
        "Cor. aggregate-completeness",
        "Prop. incompatibility",
        "Rem. normalized-incompatibility",
        "Prop. mobius",
        "Prop. c1",
        "Prop. one-pass",
        "Prop. anova-general",
        "Rem. componentwise",
        "Tab. axioms",
        "Tab. complexity",
        "Sec. lundstrom-position",
        "Fig. hierarchy",
    ):
        assert label in sources, label


# ---- a wrong number, formula or library makes a row fail


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
    monkeypatch.setattr(canonical_rows, "explain", off)
    assert "GRALIS: triple against the method" in failing(canonical_rows)


@pytest.mark.parametrize("name", list(canonical_rows._TRIPLES))
def test_wrong_weights_break_theorem_1(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    right = canonical_rows._TRIPLES[name]

    def wrong(f: Any, x: Any) -> Any:
        triple = right(f, x)
        return replace(triple, weights=triple.weights * (1 + 1e-6))

    monkeypatch.setitem(canonical_rows._TRIPLES, name, wrong)
    assert f"{name}: triple against the method" in failing(canonical_rows)


def test_a_map_that_is_not_linear_breaks_theorem_1(monkeypatch: pytest.MonkeyPatch) -> None:
    right = canonical_rows._TRIPLES["IG"]

    def wrong(f: Any, x: Any) -> Any:
        triple = right(f, x)
        return replace(triple, marginals=np.abs(triple.marginals))

    monkeypatch.setitem(canonical_rows._TRIPLES, "IG", wrong)
    assert "IG: linear in F" in failing(canonical_rows)


def test_the_classical_weights_instead_of_the_squares_break_the_corollaries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        arithmetic, "gralis", lambda F, x, base, kernel=None: arithmetic.endpoint(F.game(x, base), len(x))
    )
    broken = failing(theorems)
    assert "sum of phi = v(F) - sum of m(T) (1 - 1/|T|)" in broken
    assert "phi_i = sum of m(T) / |T|^2, largest difference" in broken
    assert "curved F: sum of phi = sum of vbar_t / t" in failing(settled)


def test_rays_that_miss_their_value_break_lemma_a(monkeypatch: pytest.MonkeyPatch) -> None:
    right = Polynomial.ray

    def wrong(self: Polynomial, x: Any, base: Any, t: Any) -> Any:
        return [value * Fraction(99, 100) for value in right(self, x, base, t)]

    monkeypatch.setattr(Polynomial, "ray", wrong)
    assert "Lemma A: sum of a ray minus v, all 8 coalitions" in failing(appendix_e)
    assert "sum of a ray = v(T), curved F, largest difference" in failing(theorems)
    assert "order 1, 2, 3: contributions" in failing(corrections)


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
    monkeypatch.setattr(kernels, "shapley_weight", lambda n, size: Fraction(1, 2 ** (n - 1)))  # Banzhaf's
    assert "numerator: pi = 1 on proper subsets keeps it, any pi(F)" in failing(kernels)


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
    right = cases.Case.attribution

    def disguised(self: cases.Case, sigma: float | None = None) -> np.ndarray:
        return right(replace(self, method=impostor) if self.method == method else self, sigma)

    monkeypatch.setattr(cases.Case, "attribution", disguised)
    monkeypatch.setattr(axioms, "MODELS", 2)
    (row,) = (one.row() for one in axioms.AXIOMS if one.name == axiom)
    assert not row.holds
    assert f"(unexpected: {method})" in str(row.computed)


# ---- its own arithmetic, by other means

fractions = st.fractions(-3, 3, max_denominator=4)


@given(
    coefficients=st.lists(st.integers(-5, 5), min_size=7, max_size=7),
    x=st.lists(fractions, min_size=3, max_size=3),
    base=st.lists(fractions, min_size=3, max_size=3),
    third=st.integers(1, 6),
)
@settings(max_examples=25)
def test_definition_1_in_fractions(
    coefficients: list[int], x: list[Fraction], base: list[Fraction], third: int
) -> None:
    terms = [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)]
    ours = Polynomial.multilinear(3, dict(zip(terms, coefficients, strict=True)))
    theirs = {frozenset(t): Fraction(c) for t, c in zip(terms, coefficients, strict=True)}

    def kernel(s: frozenset[int]) -> Fraction:
        return Fraction(third, 3) ** len(s)

    assert arithmetic.gralis(ours, x, base, kernel) == exact_gralis(theirs, x, base, kernel)
    assert ours(x) == exact_value(theirs, x)
    game = Multilinear(dict(zip(terms, coefficients, strict=True)), 3, x=tuple(x), baseline=tuple(base))
    v = ours.game(x, base)
    assert arithmetic.endpoint(v, 3) == game.shapley().tolist()
    assert {t: m for t, m in arithmetic.moebius(v).items() if m and t} == {
        frozenset(t): m for t, m in game.moebius().items()
    }
    assert {(i, j): arithmetic.interaction(v, 3, i, j) for i, j in itertools.combinations(range(3), 2)} == (
        game.interactions(2)
    )


@pytest.mark.parametrize("seed", range(4))
def test_polynomials_with_powers_against_quadrature(seed: int) -> None:
    """Rays, means and products of curved polynomials: Gauss-Legendre integrates them exactly, up to rounding."""
    F = theorems.curved(seed, 3)
    x, base = theorems.X[:3], theorems.BASE[:3]
    as_floats = np.array(x, float), np.array(base, float)
    for t in subsets(range(3)):
        for i in t:
            expected = conditioned_ig(F.of_rows, *as_floats, t - {i}, i, gauss_panels(8))
            assert float(F.ray(x, base, t)[i]) == pytest.approx(expected, rel=1e-9, abs=1e-9)
    node, weight = gauss_panels(8)
    grid = np.array(list(itertools.product(node, repeat=3)))
    mass = np.array([math.prod(w) for w in itertools.product(weight, repeat=3)])
    values = F.of_rows(torch.from_numpy(grid)).numpy()
    assert float(F.mean()) == pytest.approx(mass @ values, rel=1e-9, abs=1e-9)
    assert float(F.times(F).mean()) == pytest.approx(mass @ values**2, rel=1e-9)
    parts = appendix_e.hoeffding(F)
    at = [Fraction(1, 3), Fraction(2, 5), Fraction(1)]
    assert sum(f(at) for f in parts.values()) == F(at)
    for t, f in parts.items():
        assert all(f.averaged([i])(at) == 0 for i in t)


def test_the_kernel_coefficients_are_those_of_the_sum() -> None:
    """On random games: sum over T of coefficient(T) v(T) is the sum over i of the endpoint form."""
    rng = np.random.default_rng(0)
    for n in (2, 3, 4):
        kernel = kernels.random_kernel(rng, n)
        v = {t: Fraction(int(rng.integers(-9, 9))) for t in subsets(range(n))}
        form = kernels.coefficients(n, kernel, normalised=True)
        assert sum(form[t] * v[t] for t in v) == sum(arithmetic.endpoint(v, n, kernel.__getitem__))


# ---- which normalised kernels keep the sum: the answer for every n

positive = st.fractions(Fraction(1, 6), 6, max_denominator=6)


@given(r=st.lists(positive, min_size=2, max_size=4))
@settings(max_examples=30)
def test_features_drawn_one_by_one_keep_the_sum(r: list[Fraction]) -> None:
    n = len(r)
    kernel = settled.drawn_one_by_one(tuple(r))
    assert kernels.efficient(n, kernel, normalised=True)
    chance: dict[frozenset[int], Fraction] = dict.fromkeys(subsets(range(n)), Fraction(0))
    for order in itertools.permutations(range(n)):
        drawn, left = Fraction(1), sum(r)
        for i in order:
            drawn, left = drawn * r[i] / left, left - r[i]
        for size in range(n + 1):
            chance[frozenset(order[:size])] += drawn
    for s in subsets(range(n))[:-1]:
        size, rest = len(s), sum(r[j] for j in range(n) if j not in s)
        weight = Fraction(math.factorial(size) * math.factorial(n - size - 1), math.factorial(n))
        assert kernel[s] == chance[s] / (weight * rest)


@given(data=st.data(), n=st.integers(2, 3))
@settings(max_examples=60)
def test_no_other_kernel_does(data: st.DataObject, n: int) -> None:
    """Kept if and only if the kernel is the one drawn with r_i = 1 / Z_i; few values, so that both cases occur."""
    values = st.sampled_from([Fraction(1), Fraction(2), Fraction(1, 2)])
    kernel = {s: data.draw(values) for s in subsets(range(n))}
    z = [
        sum(
            Fraction(math.factorial(len(s)) * math.factorial(n - len(s) - 1), math.factorial(n)) * kernel[s]
            for s in without(n, i)
        )
        for i in range(n)
    ]
    twin = settled.drawn_one_by_one(tuple(1 / one for one in z))
    same = all(twin[s] == kernel[s] for s in subsets(range(n))[:-1])
    assert kernels.efficient(n, kernel, normalised=True) == same


def test_two_features_are_the_special_case() -> None:
    kernel = settled.drawn_one_by_one((Fraction(3), Fraction(5)))
    empty, one, two, _ = subsets(range(2))
    assert kernel[empty] ** 2 == kernel[one] * kernel[two]


@pytest.mark.parametrize("n", [2, 3, 5, 7])
def test_a_kernel_largest_at_the_empty_set_cannot_keep_it(n: int) -> None:
    rng = np.random.default_rng(n)
    p = rng.uniform(0.2, 0.99, n)
    z = normaliser(n, lambda s: math.prod(p[j] for j in s))
    assert (1 / z).sum() > n


def test_relu_rays_against_fine_quadrature() -> None:
    rng = np.random.default_rng(1)
    first, shift, last = rng.standard_normal((6, 3)), rng.standard_normal(6), rng.standard_normal(6)
    x = rng.uniform(0.5, 2, 3)

    def model(z: torch.Tensor) -> torch.Tensor:
        return torch.relu(z @ torch.from_numpy(first).T + torch.from_numpy(shift)) @ torch.from_numpy(last)

    full = frozenset(range(3))
    expected = [conditioned_ig(model, x, np.zeros(3), full - {i}, i, gauss_panels(1, 4000)) for i in range(3)]
    assert settled._relu_ray(first, shift, last, x) == pytest.approx(expected, abs=5e-3)


def test_shapley_over_orders() -> None:
    f, x = networks.network(0, 4), networks.point(0, 4)
    v = canonical_rows._values(f, x)
    expected = shapley_by_orders(v.__getitem__, 4)
    assert canonical_rows._shapley(f, x) == pytest.approx(expected, abs=1e-12)


def test_definition_1_in_the_counts_is_definition_1() -> None:
    f, x = torch_polynomial({frozenset({0, 1}): Fraction(4), frozenset({2}): Fraction(1)}), np.array([1.0, 2.0, 3.0])
    assert complexity.definition_1(complexity.Counting(f), x, 5) == pytest.approx([2.0, 2.0, 3.0], abs=1e-12)


# ---- rows, the table, the command line


@pytest.mark.parametrize(
    ("row", "holds"),
    [
        (equal("", (1, Fraction(2)), [Fraction(1), 2]), True),
        (equal("", (1, 2), [1]), False),
        (equal("", Fraction(1, 3), 1 / 3), False),  # no tolerance
        (near("", 1.0, 1.0 + 1e-10), True),
        (near("", (1.0, 2.0), (1.0, 2.1)), False),
        (near("", (1.0, 1.0), 1.0), False),  # not as many numbers
        (near("", 1.0, float("nan")), False),
        (vanishes("", 1e-12), True),
        (vanishes("", 1e-6), False),
        (vanishes("", -1.0), False),
        (vanishes("", float("nan")), False),
        (at_most("", 1.0, 1.0), True),
        (at_most("", 1.0, float("nan")), False),
        (exceeds("", 0.0, 0.0), False),
        (exceeds("", 0.0, 1e-30), True),
        (exceeds("", 0.0, float("nan")), False),
    ],
)
def test_what_holds(row: Row, holds: bool) -> None:
    assert row.holds is holds
    assert str(row).startswith("holds" if holds else "FAILS")


def test_the_table_is_readable_and_names_what_fails() -> None:
    good, wrong = equal("two and two", 4, 2 + 2, "Thm. sums"), equal("two and three", 5, 6)
    table = repr(Verification((Section("sums", "Sums", (good, wrong)),), 1.25))
    lines = table.splitlines()
    assert lines[:2] == ["Sums", "===="]
    assert any(line.startswith("two and two [Thm. sums]") and line.endswith("holds") for line in lines)
    assert any(line.startswith("two and three") and line.endswith("FAILS") for line in lines)
    assert "2 rows, 1 of them fail (1.2 s)" in lines
    assert lines[-1] == "FAILS: two and three"
    assert max(map(len, repr(verify(["paths", "kernels"])).splitlines())) <= 120


def test_sections_by_name() -> None:
    found = verify(["paths", "kernels"])
    assert [section.name for section in found.sections] == ["paths", "kernels"]
    with pytest.raises(GralisError, match="'sections' parameter of verify must be made of 'appendix-e'"):
        verify(["path"])


def test_main_prints_the_table_or_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--only", "paths"]) == 0
    assert "all hold" in capsys.readouterr().out
    assert main(["--only", "paths", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["holds"] is True
    assert printed["sections"][0]["rows"][0]["computed"] == "2, -1"
    with pytest.raises(SystemExit) as stopped:
        main(["--only", "nothing"])
    assert stopped.value.code == 2


def test_main_exits_with_one_if_a_row_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(paths, "_BEYOND", paths._BEYOND[::-1])
    assert main(["--only", "paths"]) == 1
    assert "FAILS: F = x1 x2, up to 2 and back: A" in capsys.readouterr().out


def test_the_module_runs() -> None:
    command = [sys.executable, "-m", "gralis.verify", "--only", "paths"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "Paths that are not monotone" in done.stdout


def test_entries_that_differ_from_the_paper_are_named(found: Verification) -> None:
    (row,) = (row for row in found.rows if row.claim == "Dummy, in v")
    assert "(paper: IG yes, GRALIS yes)" in str(row.predicted)
