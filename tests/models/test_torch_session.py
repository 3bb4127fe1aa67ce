"""TorchModel leaves the module, the random numbers and the caller's grad mode exactly as they were."""

from __future__ import annotations

import copy
import gc
import sys
import threading
import warnings
import weakref
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import numpy as np
import pytest
import torch
from torch import nn

from explained import Counting
from gralis import explain, models
from gralis.errors import ModelError
from gralis.models import frozen as table


def draw(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def filled(module: nn.Module, seed: int = 1) -> nn.Module:
    """The module with parameters of our own, in float64 and eval mode, so that no test depends on a global RNG."""
    module = module.double().eval()
    with torch.no_grad():
        for i, parameter in enumerate(module.parameters()):
            parameter.copy_(draw(*parameter.shape, seed=seed + i) * 0.5)
    return module


def noisy() -> nn.Module:
    """Train mode matters: dropout draws, batch norm counts; one part is frozen and one in eval mode already."""
    net = filled(nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Dropout(0.5), nn.Linear(6, 1))).train()
    net[1].eval()
    net[0].weight.requires_grad_(False)
    return net


def state(module: nn.Module) -> tuple[object, ...]:
    """Everything a session could have changed."""
    return (
        [m.training for m in module.modules()],
        [p.requires_grad for p in module.parameters()],
        [None if p.grad is None else p.grad.tolist() for p in module.parameters()],
        [(name, tensor.tolist()) for name, tensor in module.state_dict().items()],
        [len(d) for m in module.modules() for name, d in vars(m).items() if name.endswith("_hooks")],
    )


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode, torch.enable_grad])
def test_any_grad_mode_around_the_call(mode):
    net = filled(nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 3)))
    expected = models.torch(net, 0).value_and_gradient(draw(3, 4))
    before = state(net)
    with mode():
        points = draw(3, 4)  # under inference_mode an inference tensor
        modes = torch.is_grad_enabled(), torch.is_inference_mode_enabled()
        values, gradients = models.torch(net, 0).value_and_gradient(points)
        only = models.torch(net, 0).value(points)
        assert (torch.is_grad_enabled(), torch.is_inference_mode_enabled()) == modes
    assert torch.equal(values, expected[0])
    assert torch.equal(gradients, expected[1])
    torch.testing.assert_close(only, values)
    assert not any(result.requires_grad or result.is_inference() for result in (values, gradients, only))
    assert state(net) == before


@pytest.mark.parametrize("call", ["value", "value_and_gradient"])
def test_no_global_random_number_is_drawn(call):
    net, python = noisy(), np.random.get_state()[1].tolist()  # noqa: NPY002 - the global state is the point
    before = torch.get_rng_state()
    with pytest.warns(UserWarning, match="train mode"):
        getattr(models.torch(net), call)(draw(3, 4))
    assert torch.equal(torch.get_rng_state(), before)
    assert np.random.get_state()[1].tolist() == python  # noqa: NPY002


@pytest.mark.parametrize("call", ["value", "value_and_gradient"])
def test_train_mode_is_left_with_a_warning_and_restored(call):
    net, points = noisy(), draw(3, 4)
    before = state(net)
    with pytest.warns(UserWarning, match="Sequential was in train mode") as caught:
        first = getattr(models.torch(net), call)(points)
    assert len(caught) == 1
    assert state(net) == before
    assert before[0] == [True, True, False, True, True]
    assert before[1][:2] == [False, True]
    with pytest.warns(UserWarning, match="train mode"):
        again = getattr(models.torch(net), call)(points)
    quiet = getattr(models.torch(copy.deepcopy(net).eval()), call)(points)  # no warning, or this test fails
    for one, two, three in zip(*(r if isinstance(r, tuple) else (r,) for r in (first, again, quiet)), strict=True):
        assert torch.equal(one, two)
        assert torch.equal(one, three)


def test_one_part_in_train_mode_is_enough_to_warn():
    net = noisy().eval()
    net[2].train()
    with pytest.warns(UserWarning, match="train mode"):
        models.torch(net).value(draw(2, 4))
    assert [part.training for part in net] == [False, False, True, False]


def test_batch_norm_statistics_do_not_move():
    net = filled(nn.BatchNorm1d(4)).train()
    with pytest.warns(UserWarning, match="train mode"):
        models.torch(net, 0).value_and_gradient(draw(8, 4) + 3)
    assert net.num_batches_tracked.item() == 0
    assert net.running_mean.tolist() == [0.0] * 4


def test_inside_a_session_parameters_are_frozen_and_nothing_is_left():
    net = noisy()
    net[3].weight.grad = torch.ones_like(net[3].weight)
    before, model = state(net), models.torch(net)
    session = model.session()
    with pytest.warns(UserWarning, match="train mode"):
        session.__enter__()
    with ExitStack() as stack:
        stack.push(session.__exit__)
        assert not any(part.training for part in net.modules())
        assert not any(p.requires_grad for p in net.parameters())
        with model.session():  # a second warning would be an error
            model.value_and_gradient(draw(3, 4))
        assert not any(p.requires_grad for p in net.parameters())
    assert state(net) == before
    assert net[3].weight.grad.tolist() == [[1.0] * 6]


def test_a_warning_turned_into_an_error_still_restores():
    net = noisy()
    before = state(net)
    with pytest.raises(UserWarning, match="train mode"):
        models.torch(net).value(draw(3, 4))
    assert state(net) == before


@pytest.mark.parametrize("error", [ValueError("no such mode"), KeyboardInterrupt(), MemoryError()])
def test_an_error_inside_the_model_restores(error):
    class Broken(nn.Sequential):
        def forward(self, x):
            super().forward(x)
            raise error

    net = Broken(*noisy()).double().train()
    before = state(net)
    wanted = ModelError if isinstance(error, ValueError) else type(error)
    for call in (models.torch(net).value, models.torch(net).value_and_gradient):
        with pytest.warns(UserWarning, match="train mode"), pytest.raises(wanted):
            call(draw(3, 4))
        assert state(net) == before


def test_overlapping_sessions_on_a_shared_part():
    net = noisy()
    before = state(net)
    whole, part = models.torch(net).session(), models.torch(net[2], lambda z: z[:, 0]).session()
    with pytest.warns(UserWarning, match="Sequential"):
        whole.__enter__()
    part.__enter__()
    whole.__exit__(None, None, None)
    assert net[3].training
    assert not net[2].training  # still in use
    part.__exit__(None, None, None)
    assert state(net) == before


def test_an_overridden_train_is_not_called():
    class Merging(nn.Linear):
        def train(self, mode=True):
            raise AssertionError("train() may change more than a flag")

    net = Merging(4, 1, dtype=torch.float64)
    with pytest.warns(UserWarning, match="train mode"):
        models.torch(net).value(draw(2, 4))
    assert net.training


def test_threads_share_the_module():
    net, points, barrier = noisy(), draw(3, 4), threading.Barrier(16)
    before = state(net)
    expected = models.torch(copy.deepcopy(net).eval()).value_and_gradient(points)

    def work(i):
        model, results = models.torch(net), []
        barrier.wait()
        for _ in range(20):
            if i % 2:
                with model.session():
                    results.append(model.value_and_gradient(points))
            else:
                results.append(model.value_and_gradient(points))
        return results

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with ThreadPoolExecutor(16) as pool:
            found = [result for results in pool.map(work, range(16)) for result in results]
    assert len(found) == 320
    assert all(torch.equal(value, expected[0]) and torch.equal(slope, expected[1]) for value, slope in found)
    assert state(net) == before
    assert table._flags == table._sessions == {}


def test_sessions_race_for_the_flags():
    net, barrier = nn.Sequential(*noisy(), *noisy()).train(), threading.Barrier(16)
    before, interval = state(net), sys.getswitchinterval()

    def work(_):
        barrier.wait()
        for _ in range(100):
            with models.torch(net).session():
                assert not any(part.training for part in net.modules())
                assert not any(p.requires_grad for p in net.parameters())

    sys.setswitchinterval(1e-6)  # threads change places nearly at every line
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with ThreadPoolExecutor(16) as pool:
                list(pool.map(work, range(16)))
    finally:
        sys.setswitchinterval(interval)
    assert state(net) == before
    assert not table._flags


def test_no_reference_to_the_module_is_kept():
    net = nn.Linear(4, 1).double().eval()
    models.torch(net).value_and_gradient(draw(2, 4))
    alive = weakref.ref(net)
    del net
    gc.collect()
    assert alive() is None


def test_a_bound_method_is_guarded_like_its_module():
    net = noisy()
    before = state(net)
    with pytest.warns(UserWarning, match="train mode"):
        values = models.torch(net.forward).value(draw(3, 4, dtype=torch.float32))  # cast to the parameters' float64
    assert torch.equal(values, models.torch(copy.deepcopy(net).eval()).value(draw(3, 4, dtype=torch.float32)))
    assert state(net) == before


def test_an_attribute_named_session_need_not_be_one():
    model = Counting(lambda z: z.sum(1))
    model.session = object()  # an inference session of another framework, say
    assert explain(model, torch.ones(3)).values == pytest.approx([1.0, 1.0, 1.0])
