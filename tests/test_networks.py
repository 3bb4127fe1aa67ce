"""Stock networks through explain: the numbers of a point-by-point reference, and the module as it was before."""

from __future__ import annotations

import copy
import gc
import itertools
import math
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

import gralis
from gralis import Gaussian, ModelError, Uniform

IMAGE = (2, 8, 8)
N_NODES = 4


def draw(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def filled(module: nn.Module, seed: int = 1) -> nn.Module:
    """The module in float64 and eval mode, with parameters and running statistics that no global RNG has touched."""
    module = module.double().eval()
    with torch.no_grad():
        for i, (name, tensor) in enumerate(sorted(module.state_dict().items())):
            if tensor.is_floating_point():
                noise = draw(*tensor.shape, seed=seed + i) * 0.4
                tensor.copy_(noise.abs() + 0.5 if "running_var" in name or "norm" in name else noise)
    return module


def state(module: nn.Module) -> dict[str, object]:
    """Everything an explanation could have changed."""
    hooks = {
        (name, attribute): [(key, id(hook)) for key, hook in value.items()]
        for name, part in module.named_modules()
        for attribute, value in vars(part).items()
        if attribute.endswith("_hooks") or attribute.endswith("_hooks_with_kwargs")
    }
    return {
        "training": {name: part.training for name, part in module.named_modules()},
        "requires_grad": {name: p.requires_grad for name, p in module.named_parameters()},
        "grad": {name: None if p.grad is None else id(p.grad) for name, p in module.named_parameters()},
        "identity": [id(p) for p in module.parameters()],
        "state": {k: (t.dtype, t.stride(), t.double().tolist()) for k, t in module.state_dict().items()},
        "hooks": hooks,
    }


# ---- the networks


class Block(nn.Module):
    """A residual block: one ReLU, in place, used twice; the sum is in place too."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(channels)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, z: Tensor) -> Tensor:
        out = self.norm2(self.conv2(self.relu(self.norm1(self.conv1(z)))))
        out += z
        return self.relu(out)


def residual() -> nn.Module:
    return nn.Sequential(
        nn.ReLU(inplace=True),  # a first layer that writes into its input
        nn.Conv2d(2, 4, 3, stride=2, padding=1),
        Block(4),
        Block(4),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Dropout(0.3),
        nn.Linear(4, 3),
    )


class Dense(nn.Module):
    """Every layer sees all earlier ones, concatenated, through norm, ReLU, convolution and dropout."""

    def __init__(self) -> None:
        super().__init__()
        self.norms = nn.ModuleList([nn.BatchNorm2d(2 + 3 * i) for i in range(3)])
        self.convs = nn.ModuleList([nn.Conv2d(2 + 3 * i, 3, 3, padding=1) for i in range(3)])
        self.head = nn.Linear(11, 3)

    def forward(self, z: Tensor) -> Tensor:
        seen = [z]
        for norm, conv in zip(self.norms, self.convs, strict=True):
            new = conv(functional.relu(norm(torch.cat(seen, 1)), inplace=True))
            seen.append(functional.dropout(new, 0.5, self.training))
        pooled = functional.avg_pool2d(functional.relu(torch.cat(seen, 1)), 8).flatten(1)
        return self.head(pooled)


class Transformer(nn.Module):
    """Rows of the image as tokens through a stock encoder layer."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Linear(16, 8)
        self.layer = nn.TransformerEncoderLayer(8, 2, dim_feedforward=16, dropout=0.2, batch_first=True)
        self.head = nn.Linear(8, 3)

    def forward(self, z: Tensor) -> Tensor:
        tokens = self.embed(z.permute(0, 2, 1, 3).flatten(2))  # (rows, 8 tokens, 16)
        return self.head(self.layer(tokens).mean(1))


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gru = nn.GRU(16, 5, batch_first=True)
        self.head = nn.Linear(5, 3)

    def forward(self, z: Tensor) -> Tensor:
        return self.head(self.gru(z.permute(0, 2, 1, 3).flatten(2))[0][:, -1])


class Checkpointed(nn.Module):
    """Activations are forgotten and computed again on the way back."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Flatten(), nn.Linear(128, 6), nn.Tanh())
        self.head = nn.Linear(6, 3)

    def forward(self, z: Tensor) -> Tensor:
        return self.head(checkpoint(self.body, z, use_reentrant=False))


def perceptron() -> nn.Module:
    """The same in-place ReLU after two layers, and a parametrised weight."""
    relu = nn.ReLU(inplace=True)
    normed = nn.utils.parametrizations.weight_norm(nn.Linear(6, 6))
    return nn.Sequential(nn.Flatten(), nn.Linear(128, 6), relu, normed, relu, nn.Linear(6, 3))


NETWORKS: dict[str, Callable[[], nn.Module]] = {
    "residual": residual,
    "dense": Dense,
    "transformer": Transformer,
    "recurrent": Recurrent,
    "checkpointed": Checkpointed,
    "perceptron": perceptron,
}


def image() -> Tensor:
    return draw(*IMAGE, seed=99)


def quarters() -> gralis.Features:
    return gralis.features.grid(IMAGE, 4)


def by_hand(fn: Callable[[Tensor], Tensor], x: Tensor, labels: np.ndarray) -> np.ndarray:
    """phi under the uniform kernel, baseline zero: every coalition, every node, one point at a time."""
    n = int(labels.max()) + 1
    nodes, weights = np.polynomial.legendre.leggauss(N_NODES)
    phi = np.zeros(n)
    for size in range(1, n + 1):
        share = math.factorial(size - 1) * math.factorial(n - size) / math.factorial(n)
        for members in itertools.combinations(range(n), size):
            corner = x * torch.from_numpy(np.isin(labels, members))
            for node, weight in zip((nodes + 1) / 2, weights / 2, strict=True):
                point = (node * corner)[None].requires_grad_()
                (gradient,) = torch.autograd.grad(fn(point.clone()).sum(), point)
                along = np.bincount(labels.ravel(), (gradient[0] * x).detach().numpy().ravel(), n)
                phi[list(members)] += share * weight * along[list(members)]
    return phi


def exhaustive(model: Any, x: Any = None, **options: Any) -> gralis.Explanation:
    """All fifteen coalitions of the four quarters, on the nodes of the reference."""
    options = {"features": quarters(), "kernel": Uniform(), "plan": "exhaustive", "n_nodes": N_NODES, **options}
    return gralis.explain(model, image() if x is None else x, **options)


@pytest.fixture(params=NETWORKS)
def network(request: pytest.FixtureRequest) -> nn.Module:
    return filled(NETWORKS[request.param]())


# ---- the right numbers, and nothing changed


def test_a_stock_network_gives_the_numbers_of_the_reference(network):
    expected = by_hand(lambda z: network(z)[:, 1], image(), quarters().labels[0])
    before = state(network)
    explanation = exhaustive(network, target=1, coalition_values=False)
    np.testing.assert_allclose(explanation.values, expected, rtol=1e-8, atol=1e-10)
    assert np.abs(expected).max() > 1e-3
    assert state(network) == before


@pytest.mark.parametrize("plan", ["shared", "permutation", "independent", "endpoint"])
def test_a_sampling_plan_changes_nothing_either(network, plan):
    before, x = state(network), image()
    features = gralis.features.grid(IMAGE, (2, 4))
    explanation = gralis.explain(network, x, target=2, features=features, plan=plan, budget=200, kernel=Uniform())
    assert np.isfinite(explanation.values).all()
    assert state(network) == before
    assert torch.equal(x, image())


def test_train_mode_is_warned_about_run_in_eval_and_restored(network):
    expected = exhaustive(network, target=0).values
    network.train()
    next(iter(network.children())).eval()  # one part in eval mode already, one parameter frozen
    next(network.parameters()).requires_grad_(False)
    before, rng = state(network), torch.get_rng_state()
    with pytest.warns(UserWarning, match=f"{type(network).__name__} was in train mode") as caught:
        explanation = exhaustive(network, target=0)
    assert len(caught) == 1
    assert np.array_equal(explanation.values, expected)
    assert state(network) == before
    assert torch.equal(torch.get_rng_state(), rng)


@pytest.mark.parametrize("context", [torch.no_grad, torch.inference_mode, torch.enable_grad])
def test_any_grad_mode_around_explain(network, context):
    expected = exhaustive(network, target=1).values
    before = state(network)
    with context():
        explanation = exhaustive(network, image(), target=1)  # under inference_mode x is an inference tensor
    np.testing.assert_allclose(explanation.values, expected, rtol=1e-10)
    assert state(network) == before


def test_extend_outside_the_grad_mode_of_explain():
    network = filled(NETWORKS["residual"]())
    features = gralis.features.grid(IMAGE, 2)
    options = {"target": 1, "features": features, "plan": "permutation", "budget": 700}
    with torch.inference_mode():
        explanation = gralis.explain(network, image(), **options)
    expected = gralis.explain(network, image(), **options).extend(700)
    np.testing.assert_allclose(explanation.extend(700).values, expected.values, rtol=1e-10)


def test_frozen_parameters_stay_frozen_and_are_explained(network):
    expected = exhaustive(network, target=1).values
    for parameter in network.parameters():
        parameter.requires_grad_(False)
    before = state(network)
    assert np.array_equal(exhaustive(network, target=1).values, expected)
    assert state(network) == before


def test_gradients_and_hooks_of_the_user_stay(network):
    seen: list[int] = []
    network(image()[None])[:, 1].sum().backward()
    kept = {name: None if p.grad is None else p.grad.clone() for name, p in network.named_parameters()}
    network.register_forward_hook(lambda module, inputs, output: seen.append(len(output)))
    before = state(network)
    explanation = exhaustive(network, target=1)
    assert state(network) == before
    assert sum(seen) == explanation.cost.n_gradients + explanation.cost.n_forwards
    for name, parameter in network.named_parameters():
        assert (parameter.grad is None) == (kept[name] is None)
        assert kept[name] is None or torch.equal(parameter.grad, kept[name])


class Bomb(nn.Module):
    """Fails in call number k."""

    def __init__(self, k: int, error: Callable[[], BaseException]) -> None:
        super().__init__()
        self.k, self.calls, self.error = k, 0, error

    def forward(self, z: Tensor) -> Tensor:
        self.calls += 1
        if self.calls == self.k:
            raise self.error()
        return z


@pytest.mark.parametrize("k", [1, 2, 4])
@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, MemoryError])
def test_everything_is_restored_after_an_error(network, error, k):
    whole = nn.Sequential(network, Bomb(k, lambda: error("no luck"))).train()
    network.eval()
    next(network.parameters()).requires_grad_(False)
    before = state(whole)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The model Sequential was in train mode")
        context = pytest.raises(KeyboardInterrupt) if error is KeyboardInterrupt else nullcontext()
        if error is RuntimeError:
            context = pytest.raises(ModelError, match=r"Sequential raised RuntimeError on points of shape .*no luck")
        with context:
            exhaustive(whole, target=1, batch_size=8)  # out of memory is not the end: a smaller batch may do
    assert state(whole) == before


@pytest.mark.parametrize("batch_size", [1000, 16])
def test_a_forbidden_write_is_refused_in_the_first_batch_too(batch_size):
    def broken(z: Tensor) -> Tensor:
        y = torch.sigmoid(z)
        y += 1  # the derivative of the sigmoid is made from y as it was
        return (y**2).flatten(1).sum(1)

    with pytest.raises(ModelError, match="modified by an inplace operation"):
        exhaustive(broken, batch_size=batch_size)


def test_a_nan_inside_a_network_restores_and_says_where():
    network = filled(NETWORKS["dense"]())
    with torch.no_grad():
        network.head.bias[1] = float("nan")
    before = str(state(network))
    with pytest.raises(ModelError, match="output is nan"):
        exhaustive(network, target=1)
    assert str(state(network)) == before


# ---- precision and layout


@pytest.mark.parametrize(("dtype", "close"), [(torch.float32, 1e-4), (torch.bfloat16, 0.1), (torch.float16, 0.02)])
@pytest.mark.parametrize("name", ["residual", "dense", "transformer", "perceptron"])
def test_low_precision_is_near_and_points_have_the_dtype_of_the_module(name, dtype, close):
    network = filled(NETWORKS[name]())
    expected = exhaustive(network, target=1).values
    seen: set[torch.dtype] = set()
    low = copy.deepcopy(network).to(dtype)
    low.register_forward_pre_hook(lambda module, inputs: seen.add(inputs[0].dtype))
    before = state(low)
    explanation = exhaustive(low, image().float(), target=1)  # x is in another precision than the module
    assert seen == {dtype}
    assert explanation.values.dtype == np.float64
    assert explanation.provenance["dtype"] == str(dtype).removeprefix("torch.")
    assert np.abs(explanation.values - expected).max() <= close * np.abs(expected).max()
    assert state(low) == before


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_small_gradients_do_not_vanish_in_half_precision(dtype):
    """A product of two halves may not fit into a half."""
    linear = nn.Linear(3000, 1, bias=False).eval().to(dtype)
    with torch.no_grad():
        linear.weight.copy_(draw(1, 3000).abs() * 1e-4)
    x, labels = draw(3000, seed=1).abs() * 1e-3, np.arange(3000) // 300
    exact = np.bincount(labels, (linear.weight[0].double() * x.to(dtype).double()).detach().numpy())
    explanation = gralis.explain(linear, x, features=labels, budget=200, coalition_values=False)
    np.testing.assert_allclose(explanation.values, exact, rtol=0.01)


def test_autocast_around_explain():
    network = filled(NETWORKS["residual"]()).float()
    expected = exhaustive(network, image().float(), target=1).values
    before = state(network)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        explanation = exhaustive(network, image().float(), target=1)
    assert np.abs(explanation.values - expected).max() <= 0.1 * np.abs(expected).max()
    assert state(network) == before


@pytest.mark.parametrize("name", ["residual", "dense"])
def test_channels_last(name):
    network = filled(NETWORKS[name]())
    large = draw(2, 24, 24, seed=5)
    options = {
        "features": gralis.features.grid(large.shape, 12),
        "target": 1,
        "kernel": Uniform(),
        "plan": "exhaustive",
    }
    if name == "dense":
        network.head = filled(nn.Linear(99, 3))
    expected = gralis.explain(network, large, batch_size=16, **options).values
    network.to(memory_format=torch.channels_last)
    before = state(network)
    for x in (large, large[None].to(memory_format=torch.channels_last)[0]):
        for batch_size in (16, "auto"):  # the search tries both layouts of the points
            found = gralis.explain(network, x, batch_size=batch_size, **options)
            np.testing.assert_allclose(found.values, expected, rtol=1e-8)
    assert state(network) == before


# ---- outputs


class Head(nn.Module):
    """One number per row, in many shapes."""

    def __init__(self, shape: str) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Flatten(), nn.Linear(128, 4), nn.Tanh(), nn.Linear(4, 1))
        self.shape = shape

    def forward(self, z: Tensor) -> Any:
        value = self.body(z)  # (rows, 1)
        row, column = torch.arange(3, dtype=z.dtype), torch.arange(20, dtype=z.dtype).reshape(2, 2, 5)
        classes = value + row * value**2
        return {
            "(rows,)": value[:, 0],
            "(rows, 1)": value,
            "(rows, classes)": classes.flip(1),
            "(rows, classes, h, w)": (value[..., None, None] + (column - 7) * value[..., None, None] ** 2),
            "dict": {"scores": classes, "aux": None},
            "tuple": (None, classes),
            "logits": SimpleNamespace(logits=classes),
        }[self.shape]


@pytest.mark.parametrize(
    ("shape", "target"),
    [
        ("(rows,)", None),
        ("(rows, 1)", None),
        ("(rows, 1)", 0),
        ("(rows, classes)", 2),
        ("(rows, classes)", -1),
        ("(rows, classes)", np.int64(2)),
        ("(rows, classes)", gralis.targets.logit(2)),
        ("(rows, classes, h, w)", (0, 1, 2)),
        ("(rows, classes, h, w)", lambda outputs: outputs[:, 0, 1, 2]),
        ("dict", lambda outputs: outputs["scores"][:, 0]),
        ("tuple", lambda outputs: outputs[1][:, 0]),
        ("logits", 0),
    ],
)
def test_every_shape_of_output(shape, target):
    expected = exhaustive(filled(Head("(rows,)"))).values
    found = exhaustive(filled(Head(shape)), target=target)
    np.testing.assert_allclose(found.values, expected, rtol=1e-10)


def test_several_inputs_by_place_and_by_name():
    class Pair(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.bilinear = nn.Bilinear(3, 4, 2)

        def forward(self, left: Tensor, right: Tensor) -> Tensor:
            return self.bilinear(left, right)

    network, left, right = filled(Pair()), draw(3, seed=1), draw(4, seed=2)
    before = state(network)
    placed = gralis.explain(network, (left, right), target=0)
    named = gralis.explain(network, {"right": right, "left": left}, target=0)
    np.testing.assert_allclose(placed.to_input()[0], named.to_input()["left"], rtol=1e-10)
    np.testing.assert_allclose(placed.to_input()[1], named.to_input()["right"], rtol=1e-10)
    assert state(network) == before


def test_a_bound_method_of_a_module_is_explained_like_it():
    network = filled(NETWORKS["dense"]()).train()
    with pytest.warns(UserWarning, match="train mode"):
        found = exhaustive(network.forward, target=1)
    assert network.training
    assert np.array_equal(found.values, exhaustive(network.eval(), target=1).values)


# ---- many times, and at once


def live_tensors() -> int:
    gc.collect()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # looking at every object wakes deprecated ones
        return sum(isinstance(each, Tensor) for each in gc.get_objects())


def test_a_loop_leaves_nothing_behind():
    network, features = filled(NETWORKS["residual"]()), gralis.features.grid(IMAGE, (2, 4))
    options = {"target": 1, "features": features, "budget": 100}
    for _ in range(3):
        gralis.explain(network, image(), **options)
    before = live_tensors()
    for seed in range(30):
        explanation = gralis.explain(network, image(), seed=seed, **options)
        explanation.with_kernel(Gaussian(0.3))
    del explanation
    assert live_tensors() <= before


def test_a_failing_loop_leaves_nothing_behind():
    network = nn.Sequential(filled(NETWORKS["residual"]()), Bomb(0, lambda: RuntimeError("no luck"))).eval()
    before = live_tensors()
    for k in range(1, 11):
        network[1].calls, network[1].k = 0, 1 + k % 3
        with pytest.raises(ModelError):
            exhaustive(network, target=1, batch_size=8)
    assert live_tensors() <= before


@pytest.mark.parametrize("name", ["residual", "transformer"])
def test_threads_explaining_one_module_agree_with_one_after_the_other(name):
    network = filled(NETWORKS[name]())
    next(network.parameters()).requires_grad_(False)
    features = gralis.features.grid(IMAGE, (2, 4))

    def one(seed: int) -> np.ndarray:
        options = {"features": features, "target": seed % 3, "budget": 120, "seed": seed, "batch_size": 16}
        return gralis.explain(network, image(), **options).values

    before = state(network)
    expected = [one(seed) for seed in range(8)]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(one, range(8)))
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-10)
    assert len({tuple(values) for values in found}) == 8
    assert state(network) == before
