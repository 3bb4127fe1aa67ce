"""Explaining one row after the other for hours: memory stays where it was."""

import gc
from pathlib import Path

import pytest
import torch
from torch import nn

import gralis

STATUS = Path("/proc/self/statm")
pytestmark = pytest.mark.skipif(not STATUS.exists(), reason="tells of memory by /proc")


def resident():
    """Bytes of this process that are in memory."""
    gc.collect()
    return int(STATUS.read_text().split()[1]) * 4096


def growth(n, width, budget):
    """By how much memory grows over n explanations, after as many as it takes to have everything loaded."""
    net = nn.Sequential(nn.Linear(width, 8), nn.Tanh(), nn.Linear(8, 2)).eval()
    x = torch.randn(n + 60, width, generator=torch.Generator().manual_seed(0))
    for k, row in enumerate(x):
        if k % 20 == 0:
            gc.collect()  # what only waits to be collected is no leak
        if k == 60:
            before = resident()
        found = gralis.explain(net, row, target=k % 2, budget=budget, batch_size=256, seed=k, progress=False)
        size = sum(array.nbytes for array in found.ledger.arrays().values())
    del found
    return resident() - before, size * n


@pytest.mark.fresh_process
def test_hundreds_of_explanations_leave_nothing_behind():
    """If the ledgers stayed, it would be twice the bound."""
    grown, all_ledgers = growth(200, 24, 256)
    assert all_ledgers > 12 * 2**20
    assert grown < all_ledgers / 2


@pytest.mark.slow
@pytest.mark.fresh_process
def test_ten_thousand_explanations_leave_nothing_behind():
    """2 kB for each is more than the noise of the allocator, and less than any explanation has."""
    grown, all_ledgers = growth(10_000, 6, 120)
    assert all_ledgers > 40 * 2**20
    assert grown < 20 * 2**20
