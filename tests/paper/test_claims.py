"""`verify`: every claim of the paper holds, every theorem has a row, and the table shows them."""

from __future__ import annotations

import importlib
from fractions import Fraction

import pytest

from gralis import Explanation, GralisError
from gralis.paper import NOT_CHECKED, SECTIONS, ClaimRow, Section, Verification, verify
from gralis.paper.claim_row import arithmetic, at_most, between, collect, equal, exceeds, near, shown, vanishes
from mutants.public import public_functions


@pytest.fixture(scope="module")
def verification() -> Verification:
    return verify()


def test_every_row_holds(verification: Verification) -> None:
    assert not verification.failed
    assert verification.holds
    assert [section.name for section in verification.sections] == list(SECTIONS)
    assert len(verification.rows) > 550
    assert len(verification.arithmetic) < 85
    for section in verification.sections:
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
def test_the_numbers_that_must_come_out(verification: Verification, claim: str, value: str) -> None:
    (row,) = (row for row in verification.rows if row.claim == claim)
    assert shown(row.computed) == value
    assert row.holds


def test_every_theorem_has_its_row(verification: Verification) -> None:
    sources = " ".join(row.source for row in verification.rows)
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


def test_entries_that_differ_from_the_paper_are_named(verification: Verification) -> None:
    (row,) = (row for row in verification.rows if row.claim == "Dummy, in v")
    assert "(paper: IG yes, GRALIS yes)" in str(row.predicted)


def test_every_public_function_has_a_row(verification: Verification) -> None:
    """The source of a row of a section on the library names the public functions that it calls."""
    library = [section for section in verification.sections if section.title.startswith("The library")]
    named = {name for section in library for row in section.rows for name in row.source.split(", ")}
    assert public_functions() - named == set()
    for name in named - {"", "explain"}:
        first, *rest = name.split(".")
        owner: object = Explanation if first == "Explanation" else importlib.import_module(f"gralis.{first}")
        for part in rest:
            assert hasattr(owner, part), name


def test_what_is_not_checked_is_said(verification: Verification) -> None:
    said = " ".join(repr(verification).split())
    assert all(f"{what}: {where}" in said for what, where in NOT_CHECKED.items())
    assert verification.to_dict()["not_checked"] == dict(NOT_CHECKED)
    n_arithmetic = len(verification.arithmetic)
    assert f"{n_arithmetic} rows check statements of the paper by arithmetic alone" in said


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
        (between("", 0.0, 1.0, 0.5), True),
        (between("", 0.0, 1.0, 1.5), False),
        (between("", 0.0, 1.0, float("nan")), False),
        (near("", 1.0, lambda: 1.0), True),
        (near("", 1.0, lambda: [][0]), False),
        (equal("", 1, lambda: 1 // 0), False),
    ],
)
def test_what_holds(row: ClaimRow, holds: bool) -> None:
    assert row.holds is holds
    assert str(row).startswith("holds" if holds else "FAILS")


def test_a_row_that_raises_fails_with_the_sentence_of_the_error() -> None:
    def implementation() -> float:
        raise GralisError("The 'sigma' parameter of Gaussian must be a number > 0.")

    row = near("phi", 1.0, implementation)
    assert not row.holds
    assert row.computed == "GralisError: The 'sigma' parameter of Gaussian must be a number > 0."


def test_a_group_that_raises_is_one_failed_row_and_the_others_stay() -> None:
    def good() -> list[ClaimRow]:
        return [equal("two", 2, 1 + 1)]

    def broken() -> list[ClaimRow]:
        raise KeyError("gone")

    rows = collect(broken, good)
    assert [row.holds for row in rows] == [False, True]
    assert "broken" in rows[0].claim
    assert rows[0].computed == "KeyError: 'gone'"
    assert [row.library for row in collect(good, arithmetic(good))] == [False, False]


def test_the_table_is_readable_and_names_what_fails() -> None:
    good, wrong = equal("two and two", 4, 2 + 2, "Thm. sums"), equal("two and three", 5, 6)
    table = repr(Verification((Section("sums", "Sums", (good, wrong)),), 1.25))
    lines = table.splitlines()
    assert lines[:2] == ["Sums", "===="]
    assert any(line.startswith("two and two [Thm. sums]") and line.endswith("holds") for line in lines)
    assert any(line.startswith("two and three") and line.endswith("FAILS") for line in lines)
    assert "2 rows, 1 of them fail (1.2 s)" in lines
    assert "FAILS: two and three" in lines
    assert max(map(len, repr(verify(["paths", "kernels"])).splitlines())) <= 120


def test_sections_by_name() -> None:
    verification = verify(["paths", "kernels"])
    assert [section.name for section in verification.sections] == ["paths", "kernels"]
    with pytest.raises(GralisError, match="'sections' parameter of verify must be one of 'appendix-e'"):
        verify(["path"])
