"""A check that nothing of a model has changed: parameters, buffers, hooks, modes, flags, gradients."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn


@contextmanager
def untouched(model: nn.Module) -> Iterator[None]:
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    facts = _facts(model)
    randomness = torch.get_rng_state()
    yield
    after = model.state_dict()
    assert before.keys() == after.keys()
    assert all(torch.equal(tensor, after[name]) for name, tensor in before.items())
    assert _facts(model) == facts
    assert torch.equal(torch.get_rng_state(), randomness)


def _facts(model: nn.Module) -> list[object]:
    modules = [
        (name, part.training, len(part._forward_hooks), len(part._forward_pre_hooks), len(part._backward_hooks))
        for name, part in model.named_modules()
    ]
    parameters = [(name, p.requires_grad, p.grad is None) for name, p in model.named_parameters()]
    return [modules, parameters]
