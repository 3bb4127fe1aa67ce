"""Memory: batches halve when it runs out, and keep within a limit."""

from __future__ import annotations

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


@pytest.mark.parametrize("n_points", [1, 5, 40])
def test_a_memory_limit_makes_small_batches(n_points):
    rows: list[tuple[bool, int]] = []

    def watched(z: torch.Tensor) -> torch.Tensor:
        rows.append((z.requires_grad, len(z)))
        return smooth(z)

    x = spread(6)
    per_point = gralis.explain(watched, x, budget=300).cost.bytes_per_point
    rows.clear()
    explanation = gralis.explain(watched, x, budget=300, max_memory=n_points * per_point)
    first = next(i for i, (gradient, _) in enumerate(rows) if gradient)  # weighed on this one
    assert max(n for _, n in rows[first + 1 :]) <= n_points
    assert explanation.cost.batch_size <= max(n_points, 8)
    np.testing.assert_allclose(explanation.values, gralis.explain(smooth, x, budget=300).values, rtol=1e-10)


def test_a_memory_limit_holds_for_forwards_too():
    rows: list[int] = []

    def box(z: np.ndarray) -> np.ndarray:
        rows.append(len(z))
        return z.sum((1, 2))

    x = np.ones((50, 20)) + np.arange(20)
    features = np.broadcast_to(np.arange(20), (50, 20))
    limit = 100 * x.nbytes
    gralis.explain(gralis.models.blackbox(box), x, features=features, plan="endpoint", budget=4000, max_memory=limit)
    assert max(rows) * x.nbytes < limit
