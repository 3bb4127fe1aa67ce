"""Models are loaded from files of the tests' own; none of them may be found by the next test."""

from __future__ import annotations

import sys

import pytest


@pytest.fixture(autouse=True)
def _own_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setitem(sys.modules, "net", sys)  # so that what stands there afterwards is taken away again
    del sys.modules["net"]
