"""Fits run on one thread of the linear algebra library, and the number of threads is then what it was."""

from __future__ import annotations

import pytest
import torch
from threadpoolctl import threadpool_info, threadpool_limits

import gralis
from gralis.estimators import adjusted, shapley


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
