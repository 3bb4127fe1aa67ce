"""The bar: nobody is shown one before two seconds, and a fit is a phase of its own."""

from __future__ import annotations

import re
import sys
from types import SimpleNamespace

import pytest
import torch

import gralis
from artificial_clock import ArtificialClock, Timed
from gralis.evaluation.progress import SHOWN_AFTER, Bar
from gralis.run import run as run_module

X = torch.linspace(-1.0, 1.5, 10, dtype=torch.float64)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> ArtificialClock:
    return ArtificialClock(monkeypatch)


def on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)


def in_a_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    shell = SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))


@pytest.mark.parametrize("where", [on_a_terminal, in_a_notebook])
def test_a_bar_appears_after_two_seconds(where, clock, monkeypatch, capsys) -> None:
    with monkeypatch.context() as patched:
        where(patched)
        with Bar(None, 100) as bar:
            bar.phase("rays", 100)
            clock.seconds = SHOWN_AFTER - 0.1
            bar.add(10, 0)
            assert capsys.readouterr().err == ""
            clock.seconds = SHOWN_AFTER
            bar.add(10, 5)
            assert re.search(r"gralis: rays:\s+25%.*25/100", capsys.readouterr().err)


def test_without_a_terminal_or_if_it_is_not_wanted_no_bar_appears(clock, monkeypatch, capsys) -> None:
    with Bar(None, 100) as bar:
        clock.seconds = 100.0
        bar.add(10, 0)
    on_a_terminal(monkeypatch)
    with Bar(False, 100) as bar:
        clock.seconds = 200.0
        bar.add(10, 0)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("plan", ["shared", "values"])
def test_a_fit_is_a_phase_of_its_own(plan, clock, monkeypatch, capsys) -> None:
    """The bar does not stay at 100% while the values are computed."""
    shown: list[str] = []
    original = run_module.estimates

    def slowly(*arguments):
        clock.seconds += 10.0
        shown.append(capsys.readouterr().err.split("\r")[-1])
        return original(*arguments)

    monkeypatch.setattr(run_module, "estimates", slowly)
    gralis.explain(Timed(clock, 0.01), X, plan=plan, budget=300, progress=True)
    assert len(shown) == 1
    assert "gralis: fit" in shown[0]
    assert "100%" not in shown[0]
    assert "0/" not in shown[0]  # a fit has no points


def test_a_file_gets_few_lines(clock, capsys) -> None:
    with Bar(True, 1000) as bar:
        bar.phase("rays", 1000)
        for _ in range(1000):
            clock.seconds += 0.1
            bar.add(1)
    assert capsys.readouterr().err.count("gralis: rays") <= 3


def test_a_callback_counts_the_forwards_of_a_plan_without_gradients() -> None:
    told: list[tuple[int, int]] = []
    found = gralis.explain(
        gralis.models.blackbox(lambda z: z.sum(1) ** 2), X.numpy(), plan="values", budget=300,
        progress=lambda done, total: told.append((done, total)),
    )  # fmt: skip
    assert told[-1][0] == found.cost.n_forwards
    assert all(done <= total for done, total in told)
