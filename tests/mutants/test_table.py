"""The table of mutants is sound: every place is found, every check exists, and no public function is left out.

`make mutants` runs the mutants themselves.
"""

from __future__ import annotations

import importlib
import json
import re
from pathlib import Path

import pytest

from mutants import run
from mutants.mutant import ROOT, SOURCE, Mutant
from mutants.public import public_functions
from mutants.table import MUTANTS


def test_there_are_enough_mutants_and_their_names_differ() -> None:
    assert len(MUTANTS) >= 80
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)
    assert len({(mutant.file, mutant.original, mutant.mutated) for mutant in MUTANTS}) == len(MUTANTS)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_the_place_of_a_mutant_is_there_and_its_checks_too(mutant: Mutant) -> None:
    mutant.applied()  # raises if the original is not found exactly once, or if the mutation changes nothing
    assert mutant.why
    assert mutant.checks
    for check in mutant.checks:
        if check.startswith("verify:"):
            module, _, group = check.removeprefix("verify:").partition(".")
            rows = importlib.import_module(f"gralis.paper.{module}")
            assert callable(getattr(rows, group or "rows"))
        else:
            path, _, test = check.partition("::")
            assert re.search(rf"^def {test or 'test_'}", (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE)


def test_every_public_function_has_a_mutant() -> None:
    assert public_functions() - {mutant.of for mutant in MUTANTS} == set()


def test_a_mutant_whose_place_is_gone_is_reported() -> None:
    gone = Mutant("gone", "kernels.Gaussian", "kernels/gaussian.py", "no such text", "text", "", ())
    twice = Mutant("twice", "kernels.Gaussian", "kernels/gaussian.py", "return", "yield", "", ())
    same = Mutant("same", "laws.Law", "laws/law.py", "TILT = 0.5", "TILT = 0.5  # ", "", ())
    assert "occurs 0 times" in run._lost(gone)
    assert "times in kernels/gaussian.py" in run._lost(twice)
    assert "does not change the program" in run._lost(same)
    assert run._summary([], {}, [run._lost(gone)]) == 1


def test_a_survivor_and_a_caught_mutant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    """One mutant that no row of its check can see, and one that a row sees, through processes of their own."""
    monkeypatch.setattr(run, "_STATE", tmp_path / "build" / "mutants.json")
    (tmp_path / "build").mkdir()
    check = ("verify:library_laws._masks",)
    seen = next(mutant for mutant in MUTANTS if mutant.name == "all-masks-shift")
    unseen = next(mutant for mutant in MUTANTS if mutant.name == "gaussian-without-two")
    before = {path: path.read_bytes() for path in SOURCE.rglob("*.py")}
    workshop = run.Workshop(tmp_path, 2, {})
    work = [("control", None, check), ("seen", seen, check), ("unseen", unseen, check)]
    results = workshop.run(work, verbose=False)
    assert {name: result["verdict"] for name, result in results.items()} == {
        "control": "survived",
        "seen": "caught",
        "unseen": "survived",
    }
    assert {path: path.read_bytes() for path in SOURCE.rglob("*.py")} == before  # only copies were changed
    again = run.Workshop(tmp_path / "again", 1, json.loads((tmp_path / "build" / "mutants.json").read_text()))
    capsys.readouterr()
    assert again.run(work, verbose=False) == results
    assert capsys.readouterr().out == ""  # nothing ran a second time


@pytest.mark.parametrize(
    ("statement", "wait", "verdict", "says"),
    [
        ("while True: pass", 300.0, "caught", "of computing"),
        ("import time; time.sleep(1e4)", 1.0, "trouble", "no verdict"),
    ],
)
def test_a_mutant_that_computes_forever_is_caught_and_one_that_waits_is_not_judged(
    statement, wait, verdict, says, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A busy machine slows the clock of a mutant down, but not the time that it computes."""
    monkeypatch.setattr(run, "_LEAST_SECONDS", 3.0)
    monkeypatch.setattr(run, "_WAIT", wait)
    endless = Mutant("endless", "version", "version.py", "from __future__", f"{statement}\nfrom __future__", "", ())
    monkeypatch.setattr(Mutant, "applied", lambda mutant: f"{statement}\n")
    result = run.Workshop(tmp_path, 1, {})._judged(endless, ("verify:library_laws._masks",))
    assert (result["verdict"], says in result["says"]) == (verdict, True)
