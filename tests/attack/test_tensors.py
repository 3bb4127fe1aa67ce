"""Tensors without numbers, parameters that were made under inference_mode, and parameters that are being trained."""

from __future__ import annotations

import threading

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


class Waiting(torch.nn.Linear):
    """Tells that it is being explained, and waits until another thread has done what it does meanwhile."""

    def __init__(self) -> None:
        super().__init__(3, 1)
        self.called, self.go_on = threading.Event(), threading.Event()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.called.set()
        assert self.go_on.wait(60)
        return super().forward(x)


def test_a_model_that_another_thread_trains_is_told_about() -> None:
    net, errors = Waiting().eval(), []
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

    def loss() -> torch.Tensor:
        return torch.nn.functional.linear(torch.ones(2, 3), net.weight, net.bias).sum()

    def train() -> None:
        assert net.called.wait(60)
        optimizer.step()  # with the gradients of a step that it had begun before
        try:
            loss().backward()
        except RuntimeError as error:
            errors.append(str(error))
        net.go_on.set()

    loss().backward()
    thread = threading.Thread(target=train)
    thread.start()
    with pytest.warns(UserWarning, match="Waiting were written while it was explained"):
        gralis.explain(net, torch.ones(3), budget=40, progress=False)
    thread.join()
    assert "does not require grad" in errors[0]  # torch's own sentence, in the thread that trains
    assert [p.requires_grad for p in net.parameters()] == [True, True]
    loss().backward()  # afterwards it can be trained as before
    gralis.explain(net, torch.ones(3), budget=40, progress=False)  # and nothing is said
