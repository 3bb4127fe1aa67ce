"""TorchModel: the right numbers from any module, and what it says of itself."""

from __future__ import annotations

import copy
import functools
import pickle
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from gralis import GralisError, models


def draw(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def filled(module: nn.Module, seed: int = 1) -> nn.Module:
    """The module with parameters of our own, in float64 and eval mode, so that no test depends on a global RNG."""
    module = module.double().eval()
    with torch.no_grad():
        for i, parameter in enumerate(module.parameters()):
            parameter.copy_(draw(*parameter.shape, seed=seed + i) * 0.5)
    return module


def mlp() -> nn.Module:
    return filled(nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 3)))


def differences(model: models.Model, points: torch.Tensor, step: float = 1e-6) -> torch.Tensor:
    """The gradient by central differences, one coordinate at a time."""
    gradient = torch.zeros_like(points)
    for index in np.ndindex(*points.shape):
        moved = [points.clone(), points.clone()]
        moved[0][index] += step
        moved[1][index] -= step
        up, down = (model.value(m)[index[0]] for m in moved)
        gradient[index] = (up - down) / (2 * step)
    return gradient


class ReusedReLU(nn.Module):
    """One in-place ReLU called twice, the case that misleads hook-based methods."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.relu = nn.Linear(4, 5), nn.Linear(5, 1), nn.ReLU(inplace=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.b(self.relu(self.a(self.relu(x))))


NETS = {
    "mlp": (mlp, 1, (4,)),
    "in-place first": (lambda: filled(nn.Sequential(nn.ReLU(inplace=True), nn.Linear(4, 2))), 0, (4,)),
    "reused": (lambda: filled(ReusedReLU()), None, (4,)),
    "conv": (
        lambda: filled(nn.Sequential(nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), nn.GELU(), nn.Flatten(), nn.Linear(12, 2))),
        -1,
        (2, 4, 4),
    ),
    "map": (lambda: filled(nn.Conv2d(2, 3, 3)), (2, 1, 0), (2, 4, 4)),
    "map, callable": (lambda: filled(nn.Conv2d(2, 3, 3)), lambda z: z[:, 1].square().mean(dim=(1, 2)), (2, 4, 4)),
}


@pytest.mark.parametrize("name", NETS)
def test_gradient_agrees_with_finite_differences(name):
    make, target, shape = NETS[name]
    model, points = models.torch(make(), target), draw(3, *shape)
    before = points.clone()
    values, gradients = model.value_and_gradient(points)
    assert values.shape == (3,)
    torch.testing.assert_close(values, model.value(points))
    torch.testing.assert_close(gradients, differences(model, points), rtol=1e-5, atol=1e-7)
    assert torch.equal(points, before)
    assert not points.requires_grad
    assert points.grad is None


def test_gradient_agrees_with_the_jacobian():
    net, points = mlp(), draw(5, 4)
    _, gradients = models.torch(net, 2).value_and_gradient(points)
    jacobian = torch.autograd.functional.jacobian(lambda x: net(x)[:, 2], points)  # (rows, rows, 4)
    torch.testing.assert_close(gradients, jacobian[range(5), range(5)])
    assert jacobian.abs().sum() > 0


@pytest.mark.parametrize("outputs", [lambda x: x.prod(dim=1), lambda x: x.prod(dim=1, keepdim=True)])
def test_scalar_outputs_by_hand(outputs):
    values, gradients = models.torch(outputs).value_and_gradient(torch.tensor([[2.0, 3.0], [4.0, 5.0]]))
    assert values.tolist() == [6.0, 20.0]
    assert gradients.tolist() == [[3.0, 2.0], [5.0, 4.0]]


def test_one_forward_and_one_backward():
    calls = []

    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            calls.append("forward")
            ctx.save_for_backward(x)
            return x.square().sum(dim=1)

        @staticmethod
        def backward(ctx, upstream):
            calls.append("backward")
            return 2 * ctx.saved_tensors[0] * upstream[:, None]

    models.torch(Square.apply).value_and_gradient(draw(7, 3))
    assert calls == ["forward", "backward"]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32, torch.float64])
def test_precision_follows_the_parameters(dtype):
    net = mlp()
    expected, slopes = models.torch(net, 1).value_and_gradient(draw(3, 4))
    model = models.torch(copy.deepcopy(net).to(dtype), 1)
    values, gradients = model.value_and_gradient(draw(3, 4))  # float64 points, cast to the model's dtype
    assert model.dtype == values.dtype == gradients.dtype == model.value(draw(3, 4)).dtype == dtype
    tolerance = 20 * torch.finfo(dtype).eps
    torch.testing.assert_close(values.double(), expected, rtol=tolerance, atol=tolerance)
    torch.testing.assert_close(gradients.double(), slopes, rtol=tolerance, atol=tolerance)


def test_precision_of_a_function_is_that_of_the_points_or_the_one_asked_for():
    points = draw(2, 3, dtype=torch.float16)
    assert models.torch(lambda x: x.sum(dim=1)).dtype is None
    assert models.torch(lambda x: x.sum(dim=1)).value_and_gradient(points)[1].dtype == torch.float16
    assert models.torch(lambda x: x.sum(dim=1), dtype=torch.float64).value(points).dtype == torch.float64


def test_half_precision_sum_over_rows_does_not_overflow():
    points = torch.full((64, 1), 30000.0, dtype=torch.float16)  # the sum over rows is infinite in float16
    values, gradients = models.torch(lambda x: 2 * x[:, 0]).value_and_gradient(points)
    assert values.tolist() == [60000.0] * 64
    assert gradients.tolist() == [[2.0]] * 64


class Two(nn.Module):
    def forward(self, left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        return left.sum(dim=1) * right.square().sum(dim=1)


def test_tuple_and_dict_inputs():
    model, left, right = models.torch(Two().eval()), draw(3, 2), draw(3, 4, seed=5)
    values, gradients = model.value_and_gradient((left, right))
    assert isinstance(gradients, tuple)
    torch.testing.assert_close(gradients[0], right.square().sum(dim=1, keepdim=True).expand(3, 2))
    torch.testing.assert_close(gradients[1], 2 * right * left.sum(dim=1, keepdim=True))
    named_values, named = model.value_and_gradient({"right": right, "left": left})
    assert list(named) == ["right", "left"]
    assert torch.equal(named["left"], gradients[0])
    assert torch.equal(named["right"], gradients[1])
    assert torch.equal(values, named_values)
    assert torch.equal(values, model.value((left, right)))


def test_an_input_without_influence_has_gradient_zero():
    values, (used, unused) = models.torch(lambda a, b: a.sum(dim=1)).value_and_gradient((draw(2, 3), draw(2, 5)))
    assert used.tolist() == [[1.0] * 3] * 2
    assert unused.tolist() == [[0.0] * 5] * 2
    assert not unused.requires_grad
    assert not values.requires_grad


def test_channels_last_points():
    net, points = filled(nn.Sequential(nn.Conv2d(3, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8, 1))), draw(2, 3, 4, 4)
    strided = points.contiguous(memory_format=torch.channels_last)
    seen = []
    model = models.torch(lambda x: (seen.append(x.stride()), net(x))[1])
    (values, gradients), (other, others) = model.value_and_gradient(points), model.value_and_gradient(strided)
    torch.testing.assert_close(values, other)
    torch.testing.assert_close(gradients, others)
    assert seen == [points.stride(), strided.stride()]


def test_points_may_be_expanded_or_have_a_graph():
    net = filled(nn.Sequential(nn.ReLU(inplace=True), nn.Linear(4, 1)))
    row = draw(1, 4).requires_grad_()
    values, gradients = models.torch(net).value_and_gradient((row * 1).expand(3, 4))
    assert torch.equal(gradients[0], gradients[2])
    assert not values.requires_grad
    assert row.grad is None


def test_integer_values_become_floating():
    values = models.torch(lambda x: x.argmax(dim=1)).value(torch.tensor([[0.0, 1.0], [2.0, 1.0]]))
    assert values.tolist() == [1.0, 0.0]
    assert values.dtype == torch.float32


def test_an_output_object_with_logits():
    model = models.torch(lambda x: SimpleNamespace(logits=x, loss=None), target=1)
    assert model.value_and_gradient(torch.ones(1, 2))[1].tolist() == [[0.0, 1.0]]


def test_device_comes_from_the_parameters_or_buffers_or_is_cpu():
    for module in (nn.Linear(2, 1, device="meta"), nn.BatchNorm1d(2, affine=False, device="meta")):
        with pytest.raises(GralisError, match=r"'module' parameter of models\.torch must be loaded"):
            models.torch(module)  # it looks at parameters and buffers
    assert models.torch(torch.sin).device.type == "cpu"
    assert models.torch(torch.sin, device="meta").value(torch.zeros(2)).device.type == "meta"


def test_lazy_layers_that_were_never_called_are_one_sentence():
    module = nn.Sequential(nn.Flatten(), nn.LazyLinear(2)).eval()
    with pytest.raises(GralisError, match=r"must be initialized.*no shape yet.*Call it once with a batch"):
        models.torch(module)
    module(torch.ones(1, 3))
    assert models.torch(module, target=0).value(torch.ones(1, 3)).shape == (1,)


def test_fingerprint_tells_states_apart():
    net = mlp()
    fingerprint = models.torch(net, 0).fingerprint()
    assert len(fingerprint) == 64
    assert models.torch(copy.deepcopy(net), 1).fingerprint() == fingerprint
    changed = copy.deepcopy(net)
    with torch.no_grad():
        changed[2].bias[1] = torch.nextafter(changed[2].bias[1], torch.tensor(torch.inf, dtype=torch.float64))
    assert models.torch(changed, 0).fingerprint() != fingerprint
    assert models.torch(copy.deepcopy(net).float(), 0).fingerprint() != fingerprint
    assert models.torch(copy.deepcopy(net).bfloat16(), 0).fingerprint() != fingerprint
    layers = [nn.Linear(2, 2).to(dtype) for dtype in (torch.bfloat16, torch.float16)]
    for parameter in [*layers[0].parameters(), *layers[1].parameters()]:
        nn.init.zeros_(parameter)  # the same bytes in both precisions
    assert models.torch(layers[0], 0).fingerprint() != models.torch(layers[1], 0).fingerprint()
    renamed = nn.Sequential()
    for name, part in net.named_children():
        renamed.add_module(f"layer{name}", part)
    assert models.torch(renamed, 0).fingerprint() != fingerprint


def test_fingerprint_tells_structures_apart():
    linear = nn.Linear(2, 2)
    parts = [nn.ReLU(), nn.Tanh(), nn.LeakyReLU(0.1), nn.LeakyReLU(0.2), nn.Identity()]
    assert len({models.torch(nn.Sequential(linear, part), 0).fingerprint() for part in parts}) == len(parts)


def test_fingerprint_tells_functions_apart_and_knows_the_same_one():
    scale, weight = 2.0, torch.ones(3)

    def scaled(by: float, weight: torch.Tensor):
        return lambda z: by * (z * weight).sum(1)

    found = [scaled(scale, weight), scaled(3.0, weight), scaled(scale, 2 * weight), lambda z: z.sum(1)]
    found += [functools.partial(torch.add, other=by) for by in (1.0, 2.0)]
    prints = [models.torch(fn).fingerprint() for fn in found]
    assert len(set(prints)) == len(prints)
    assert models.torch(scaled(2.0, torch.ones(3))).fingerprint() == prints[0]
    calls, count = [], 0

    def counting(z):
        nonlocal count
        count += 1
        calls.append(len(z))
        return z.sum(1)

    before = models.torch(counting).fingerprint()
    counting(torch.ones(2, 3))
    assert models.torch(counting).fingerprint() == before  # what it counts is its own affair
    code = "from gralis.models.fingerprint import of_function; print(of_function(lambda z: z in {'b', 'a', 'c'}))"
    runs = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout for _ in range(3)]
    assert runs[0] == runs[1] == runs[2] != ""  # the order of a set differs from process to process


def test_names():
    assert models.torch(mlp(), 0).name == "Sequential"
    assert repr(models.torch(mlp(), (1, 2))) == "TorchModel(Sequential, target=output[1, 2])"
    assert models.torch(draw).name == f"{draw.__module__}.draw"


def test_a_model_can_be_pickled():
    model = models.torch(mlp(), 1)
    other = pickle.loads(pickle.dumps(model))
    assert torch.equal(other.value(draw(2, 4)), model.value(draw(2, 4)))
