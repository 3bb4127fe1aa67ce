"""Tensors without numbers, and parameters that were made under inference_mode."""

from __future__ import annotations

import pytest
import torch

import gralis
from gralis.errors import GralisError


def test_what_has_no_numbers_is_one_sentence() -> None:
    with torch.device("meta"):
        empty = torch.nn.Linear(3, 1)
    for model, x, options in (
        (empty, torch.ones(3), {}),
        (empty.forward, torch.ones(3), {}),
        (lambda z: z.sum(1), torch.ones(3, device="meta"), {}),
        (lambda z: z.sum(1), torch.ones(3), {"baseline": torch.ones(3, device="meta")}),
        (lambda z: z.sum(1), torch.ones(3), {"features": torch.ones(3, device="meta")}),
    ):
        with pytest.raises(GralisError, match="meta"):
            gralis.explain(model, x, budget=40, progress=False, **options)


def test_parameters_of_inference_mode_are_put_back() -> None:
    with torch.inference_mode():
        net = torch.nn.Linear(3, 1).eval()
    assert [p.requires_grad for p in net.parameters()] == [True, True]
    with pytest.raises(GralisError, match="Inference tensors cannot be saved for backward"):  # torch has no gradient
        gralis.explain(net, torch.ones(3), budget=40, progress=False)
    assert [p.requires_grad for p in net.parameters()] == [True, True]
    found = gralis.explain(net, torch.ones(3), plan="values", budget=40, progress=False)
    assert found.values == pytest.approx(net.weight[0].detach().numpy(), abs=1e-5)
    assert [p.requires_grad for p in net.parameters()] == [True, True]
