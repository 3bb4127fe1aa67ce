"""Questions are worked through a few at a time. Where they are cut changes no number."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

import gralis
from gralis.estimators import estimates, surrogates


@pytest.mark.parametrize("together", [1, 700, 1 << 30])
def test_the_size_of_a_portion_changes_no_number(monkeypatch: pytest.MonkeyPatch, together: int) -> None:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        net = torch.nn.Sequential(torch.nn.Linear(6, 9), torch.nn.Tanh(), torch.nn.Linear(9, 3)).eval()
        rows = torch.randn(5, 6)
    found = gralis.explain_batch(net, rows, target=[0, 1, 2, 0, 1], plan="shared", budget=90, progress=False)
    ledgers, designs = [e.ledger for e in found], [e.design for e in found]
    alone = [e.design.estimator.estimates([e.ledger], [e.design])[0].values for e in found]
    assert not np.allclose(found.values, alone, rtol=1e-9)  # the fits are shared: alone, a question has another trust
    monkeypatch.setattr(surrogates, "TOGETHER", together)
    again = estimates([replace(ledger) for ledger in ledgers], designs)
    for explanation, estimate in zip(found, again, strict=True):
        np.testing.assert_allclose(estimate.values, explanation.values, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(estimate.departures, explanation.estimate.departures, rtol=1e-7, atol=1e-10)
