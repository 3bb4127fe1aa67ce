"""JAX functions through the adapter: torch's numbers on the same weights, and few compilations."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import gralis
from gralis import GralisError, ModelError, targets

jax = pytest.importorskip("jax")
jnp = jax.numpy


def seeded(module: nn.Module, seed: int = 0) -> nn.Module:
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.4)
    return module.eval()


def mlp() -> tuple[nn.Module, Any, Tensor]:
    net = seeded(nn.Sequential(nn.Linear(6, 12), nn.Tanh(), nn.Linear(12, 4)))
    w1, b1, w2, b2 = (jnp.asarray(p.detach().numpy()) for p in net.parameters())
    return net, lambda z: jnp.tanh(z @ w1.T + b1) @ w2.T + b2, torch.linspace(-1, 1, 6)


def convnet() -> tuple[nn.Module, Any, Tensor]:
    net = seeded(
        nn.Sequential(nn.Conv2d(2, 3, 3, stride=2, padding=1), nn.Softplus(), nn.Flatten(), nn.Linear(48, 3)), 1
    )
    w1, b1, w2, b2 = (jnp.asarray(p.detach().numpy()) for p in net.parameters())

    def fn(z: Any) -> Any:
        kernel = w1.astype(z.dtype)  # JAX's convolution does not promote
        z = jax.lax.conv_general_dilated(z, kernel, (2, 2), ((1, 1), (1, 1))) + b1[:, None, None]
        return jax.nn.softplus(z).reshape(len(z), -1) @ w2.T + b2

    return net, fn, torch.rand(2, 8, 8, generator=torch.Generator().manual_seed(2))


@pytest.mark.parametrize("make", [mlp, convnet])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_torch_s_numbers_on_the_same_weights(make: Any, dtype: torch.dtype) -> None:
    net, fn, x = make()
    features = None if x.ndim == 1 else gralis.features.grid(x.shape, 4)
    options: dict[str, Any] = {"features": features, "budget": 300, "batch_size": 64}
    theirs = gralis.explain(net.to(dtype), x.to(dtype), target=1, **options)
    ours = gralis.explain(gralis.models.jax(fn, target=1, dtype=dtype), x.to(dtype), **options)
    tight = 1e-6 if dtype == torch.float32 else 1e-12
    np.testing.assert_allclose(ours.values, theirs.values, rtol=0, atol=tight)
    assert ours.f_x == pytest.approx(theirs.f_x, abs=tight)
    assert ours.shapley().values == pytest.approx(theirs.shapley().values, abs=tight)
    assert not jax.config.jax_enable_x64


READ = {
    "int": (2, lambda z: z[:, 2]),
    "tuple": ((1,), lambda z: z[:, 1]),
    "margin": (targets.margin(0), lambda z: z[:, 0] - z[:, 1:].amax(1)),
    "probability": (targets.probability(3), lambda z: z.softmax(1)[:, 3]),
    "own": (lambda z: jax.nn.log_softmax(z)[:, 1], lambda z: z.log_softmax(1)[:, 1]),
}


@pytest.mark.parametrize("name", READ)
def test_targets(name: str) -> None:
    target, formula = READ[name]
    net, fn, x = mlp()
    points = torch.stack([x * k for k in (0.5, 1.0, -2.0)]).double().requires_grad_()
    expected = formula(net.double()(points))
    (slope,) = torch.autograd.grad(expected.sum(), points)
    value, gradient = gralis.models.jax(fn, target, dtype=torch.float64).value_and_gradient(points.detach())
    torch.testing.assert_close(value, expected.detach(), rtol=1e-6, atol=1e-6)  # the weights are float32
    torch.testing.assert_close(gradient, slope, rtol=1e-6, atol=1e-6)
    assert value.dtype == gradient.dtype == torch.float64


def test_few_compilations() -> None:
    traced: list[int] = []

    def fn(z: Any) -> Any:
        traced.append(len(z))
        return (z**3).sum(1)

    model = gralis.models.jax(fn)
    for rows in (1, 5, 8, 9, 13, 16, 3, 11, 16):
        points = torch.arange(rows * 2.0).reshape(rows, 2)
        torch.testing.assert_close(model.value_and_gradient(points)[1], 3 * points**2)
        torch.testing.assert_close(model.value(points), (points**3).sum(1))
    assert sorted(traced) == [8, 8, 16, 16]  # two sizes, each with and without gradient
    assert model.function.n_compilations == 6  # forward, forward with pull-back, pull-back
    before = len(traced)
    for target in (None, lambda z: 2 * z):
        gralis.explain(gralis.models.adapt(model, target), torch.ones(2), batch_size=16)
    assert len(traced) == before  # an exchanged target compiles nothing


def test_several_targets_and_inputs() -> None:
    net, fn, x = mlp()
    model = gralis.models.jax(fn)
    theirs = gralis.explain(net, x, target="all").values
    np.testing.assert_allclose(gralis.explain(model, x, target="all").values, theirs, atol=1e-6)
    two = gralis.explain(net, x, target=[3, 0]).values
    np.testing.assert_allclose(gralis.explain(model, x, target=[3, 0]).values, two, atol=1e-6)
    xs = torch.stack([x, x.flip(0)])
    several = gralis.explain_batch(model, xs, target=[1, targets.margin(2)]).values
    expected = gralis.explain_batch(net, xs, target=[1, targets.margin(2)]).values
    np.testing.assert_allclose(several, expected, atol=1e-6)


def test_several_leaves_in_any_order() -> None:
    points = {"b": torch.tensor([[2.0, 3.0]]), "a": torch.tensor([[5.0]])}
    model = gralis.models.jax(lambda b, a: b[:, 0] * b[:, 1] * a[:, 0])
    value, gradient = model.value_and_gradient(points)
    assert value.tolist() == [30.0]
    assert {key: part.tolist() for key, part in gradient.items()} == {"b": [[15.0, 10.0]], "a": [[6.0]]}
    pair = gralis.models.jax(lambda b, a: b[:, 0] * a[:, 0]).value_and_gradient((points["b"], points["a"]))[1]
    assert [part.tolist() for part in pair] == [[[5.0, 0.0]], [[2.0]]]


def test_outputs_with_integers_beside_scores() -> None:
    def detector(z: Any) -> Any:
        return {"label": jnp.argmax(z, 1), "score": z**2, "loss": (z**2).sum()}

    points = torch.tensor([[1.0, 3.0]])
    value, gradient = gralis.models.jax(detector, lambda found: found["score"][:, 1]).value_and_gradient(points)
    assert (value.tolist(), gradient.tolist()) == ([9.0], [[0.0, 6.0]])
    assert gralis.models.jax(detector).outputs(points)["label"].tolist() == [1]
    with pytest.raises(GralisError, match=r"int32 values, which have no gradient.*plan=\"values\""):
        gralis.models.jax(detector, lambda found: found["label"]).value_and_gradient(points)


def test_x64_of_the_user_is_respected() -> None:
    model = gralis.models.jax(lambda z: z.sum(1))
    wide = torch.ones(1, 2, dtype=torch.float64)
    assert model.value(wide).dtype == torch.float32
    jax.config.update("jax_enable_x64", True)
    try:
        assert model.value(wide).dtype == torch.float64
        assert model.value(wide.float()).dtype == torch.float32
    finally:
        jax.config.update("jax_enable_x64", False)


def test_without_jax_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(GralisError, match=r'needs JAX: pip install "gralis\[jax\]"'):
        gralis.models.jax(lambda z: z)


def test_the_other_frameworks_are_not_imported_with_gralis() -> None:
    code = "import sys, gralis; print([m for m in ('jax', 'keras', 'tensorflow', 'transformers') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_sentences() -> None:
    x = torch.ones(2)
    with pytest.raises(GralisError, match=r"'fn' parameter of models.jax must be a function of JAX arrays. Got a int"):
        gralis.models.jax(3)  # type: ignore[arg-type]
    with pytest.raises(GralisError, match=r"'dtype' parameter of models.jax .*float64.*float16"):
        gralis.models.jax(lambda z: z, dtype=torch.float16)
    with pytest.raises(ModelError, match=r"raised TracerArrayConversionError on points of shape \(.*jax.numpy"):
        gralis.explain(gralis.models.jax(lambda z: np.sin(z).sum(1)), x)
    with pytest.raises(ModelError, match=r"The target .* must return one value for each of 2 rows. Got shape \(2, 2\)"):
        gralis.explain(gralis.models.jax(lambda z: z), x, target=lambda z: z)
    with pytest.raises(GralisError, match="returns 2 outputs per row; choose one"):
        gralis.explain(gralis.models.jax(lambda z: z), x)
    with pytest.raises(GralisError, match="target=1 has no effect"):
        gralis.explain(gralis.models.jax(lambda z: z, target=0), x, target=1)
