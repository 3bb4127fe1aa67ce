"""Memory: batches halve when it runs out, and keep within a limit."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import numpy as np
import pytest
import torch

import gralis
from explained import smooth, spread
from gralis import ModelError


class Hungry:
    """Runs out of memory on more than `most` rows."""

    def __init__(self, error: Callable[[], BaseException], most: int = 5) -> None:
        self.error, self.most, self.tried = error, most, 0

    def __call__(self, z: torch.Tensor) -> torch.Tensor:
        self.tried = max(self.tried, len(z))
        if len(z) > self.most:
            raise self.error()
        return smooth(z)


@pytest.mark.parametrize("batch_size", ["auto", 64])
@pytest.mark.parametrize(
    "error",
    [
        lambda: torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"),
        lambda: RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate ..."),
        lambda: RuntimeError("MPS backend out of memory"),
        MemoryError,
    ],
    ids=["torch", "cpu", "mps", "numpy"],
)
def test_out_of_memory_halves_the_batch_and_nothing_is_lost(error, batch_size):
    model = Hungry(error)
    found = gralis.explain(model, spread(6), budget=300, batch_size=batch_size)
    calm = gralis.explain(smooth, spread(6), budget=300, batch_size=batch_size)
    assert model.tried > 5
    np.testing.assert_allclose(found.values, calm.values, rtol=1e-10)
    assert (found.cost.n_gradients, found.cost.n_forwards) == (calm.cost.n_gradients, calm.cost.n_forwards)
    assert found.cost.batch_size <= 5


def test_out_of_memory_on_a_single_point_is_a_sentence():
    model = Hungry(lambda: torch.OutOfMemoryError("out of memory"), most=0)
    with pytest.raises(ModelError, match="out of memory on a single point"):
        gralis.explain(model, spread(6))


@pytest.mark.fresh_process
@pytest.mark.parametrize("plan", ["shared", "values", "permutation"])
def test_a_memory_limit_makes_small_batches_and_changes_no_number(plan):
    rows: list[int] = []

    def watched(z: torch.Tensor) -> torch.Tensor:
        rows.append(len(z))
        held = torch.zeros(len(z), 500_000, dtype=torch.float64)  # 4 MB for each row
        return smooth(z) + 0.0 * held[:, 0].to(z.dtype)

    options = {"budget": 300, "plan": plan}
    found = gralis.explain(watched, spread(9), max_memory=45_000_000, **options)
    assert rows[0] == 1
    assert 4 <= max(rows) <= 11
    np.testing.assert_allclose(found.values, gralis.explain(smooth, spread(9), **options).values, rtol=1e-10)


@pytest.mark.fresh_process
def test_the_memory_is_told_beforehand():
    def heavy(z: torch.Tensor) -> torch.Tensor:
        return smooth(z) + 0.0 * torch.zeros(len(z), 500_000, dtype=torch.float64)[:, 0].to(z.dtype)

    told = gralis.cost(heavy, spread(9), budget=300, batch_size=16)
    assert 60_000_000 < told.bytes < 110_000_000  # 16 rows of 4 MB, and the ledger


@pytest.mark.fresh_process
def test_other_threads_are_not_part_of_what_is_told_and_refuse_no_limit():
    """They hold up to 160 MB, which comes and goes; a point takes 4 MB."""

    def heavy(z: torch.Tensor) -> torch.Tensor:
        return smooth(z) + 0.0 * torch.zeros(len(z), 500_000, dtype=torch.float64)[:, 0].to(z.dtype)

    def busy() -> None:
        draws = np.random.default_rng(0)
        while not over.wait(0.002):
            [np.ones(draws.integers(1, 5_000_000)) for _ in range(4)]

    over = threading.Event()
    other = threading.Thread(target=busy)
    other.start()
    try:
        told = gralis.cost(heavy, spread(9), budget=300, batch_size=16)
        gralis.explain(heavy, spread(9), budget=60, plan="values", max_memory=20_000_000)
    finally:
        over.set()
        other.join()
    assert 60_000_000 < told.bytes < 110_000_000


@pytest.mark.fresh_process
def test_a_slow_model_is_told_with_the_batches_that_a_run_begins_with():
    """The measurement has time for two rows at once; the run begins with eight, and then tries sixteen."""

    def slow(z: torch.Tensor) -> torch.Tensor:
        time.sleep(0.4 * len(z))
        return smooth(z) + 0.0 * torch.zeros(len(z), 5_000_000, dtype=torch.float64)[:, 0].to(z.dtype)

    told = gralis.cost(slow, spread(9), budget=300)
    # Sixteen rows of 40 MB. What the heap of the process takes anew for the row that is weighed is little beside one.
    assert 600_000_000 < told.bytes < 750_000_000
