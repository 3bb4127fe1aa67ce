"""Fits run on one thread of the linear algebra library, and the number of threads is then what it was."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import ClassVar

import pytest
import torch
from threadpoolctl import threadpool_info, threadpool_limits

import gralis
from gralis.estimators import adjusted, shapley
from gralis.estimators.one_thread import one_thread


def threads() -> set[int]:
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


@pytest.mark.parametrize(
    ("plan", "module", "name"), [("shared", adjusted, "_cross_fitted"), ("values", shapley, "learn")]
)
def test_a_fit_uses_one_thread(plan: str, module: object, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    original, seen = getattr(module, name), []

    def spy(*arguments: object) -> object:
        seen.append(threads())
        return original(*arguments)

    monkeypatch.setattr(module, name, spy)
    with threadpool_limits(limits=2, user_api="blas"):
        gralis.explain(lambda z: torch.tanh(z).sum(1) * z[:, 0], torch.ones(8), plan=plan, budget=60)
        assert threads() == {2}
    assert seen
    assert all(found == {1} for found in seen)


def test_libraries_are_looked_for_again_after_an_import_only(monkeypatch: pytest.MonkeyPatch) -> None:
    class Controller:
        lib_controllers: ClassVar[list[object]] = []

        def __init__(self) -> None:
            looks.append(self)

        def select(self, user_api: str) -> Controller:
            return self

    looks: list[Controller] = []
    monkeypatch.setattr("gralis.estimators.one_thread.ThreadpoolController", Controller)
    monkeypatch.setitem(sys.modules, "a_first_import", ModuleType("a_first_import"))
    for expected in (1, 1, 2, 2):
        if expected == 2:
            monkeypatch.setitem(sys.modules, "a_later_import", ModuleType("a_later_import"))
        with one_thread():
            pass
        assert len(looks) == expected
