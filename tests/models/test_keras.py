"""Keras models through the adapter: torch's numbers on the same weights, on every backend that is installed."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import gralis
from gralis import GralisError

CASE = Path(__file__).parent / "keras_case.py"


@pytest.mark.parametrize("backend", ["jax", "torch", "tensorflow"])
def test_torch_s_numbers_on_the_same_weights(backend: str, tmp_path: Path) -> None:
    for package in ("keras", backend):
        if find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
    environment = {**os.environ, "KERAS_HOME": str(tmp_path), "TF_CPP_MIN_LOG_LEVEL": "3"}
    command = [sys.executable, str(CASE), backend]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == f"same numbers on {backend}"


class Tape:
    """GradientTape as TensorFlow documents it, on torch: what the adapter asks of it, without TensorFlow."""

    def __init__(self, persistent: bool = False) -> None:
        self._persistent = persistent

    def __enter__(self) -> Tape:
        self._grad = torch.enable_grad()
        self._grad.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._grad.__exit__(*error)

    def watch(self, part: Any) -> None:
        part.tensor.requires_grad_()

    def gradient(self, target: Any, sources: Any, output_gradients: Any = None, unconnected_gradients: str = "") -> Any:
        outputs = [part.tensor for part in (target if isinstance(target, list) else [target])]
        seeds = [torch.ones_like(t) for t in outputs]
        if output_gradients is not None:
            seeds = [given.tensor for given in output_gradients]
        inputs = [source.tensor for source in sources]
        found = torch.autograd.grad(outputs, inputs, seeds, retain_graph=self._persistent, allow_unused=True)
        return [Fake(torch.zeros_like(i) if g is None else g) for g, i in zip(found, inputs, strict=True)]


class Fake:
    """An eager TensorFlow tensor."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor

    @property
    def dtype(self) -> Any:
        return SimpleNamespace(is_floating=self.tensor.is_floating_point())

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self.tensor.detach().numpy()


def test_a_function_under_a_gradient_tape(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = ModuleType("tensorflow")
    fake.convert_to_tensor = lambda array: Fake(torch.tensor(np.asarray(array)))  # type: ignore[attr-defined]
    fake.GradientTape = Tape  # type: ignore[attr-defined]
    fake.nest = SimpleNamespace(  # type: ignore[attr-defined]
        flatten=lambda outputs: [outputs], pack_sequence_as=lambda outputs, parts: parts[0]
    )
    monkeypatch.setitem(sys.modules, "tensorflow", fake)
    net = torch.nn.Sequential(torch.nn.Linear(5, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3)).eval()
    x = torch.linspace(-1, 1, 5)
    model = gralis.models.keras(lambda z: Fake(net(z.tensor)))
    own = gralis.models.keras(lambda z: Fake(net(z.tensor)), lambda z: Fake(z.tensor.softmax(1)[:, 1]))
    expected = gralis.explain(net, x, target=2)
    np.testing.assert_allclose(gralis.explain(model, x, target=2).values, expected.values, atol=1e-7)
    expected = gralis.explain(net, x, target=gralis.targets.probability(1))
    np.testing.assert_allclose(gralis.explain(own, x).values, expected.values, atol=1e-7)
    expected = gralis.explain(net, x, target="all")
    np.testing.assert_allclose(gralis.explain(model, x, target="all").values, expected.values, atol=1e-7)


def test_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(GralisError, match=r"'model' parameter of models.keras must be a Keras model .* Got a str"):
        gralis.models.keras("resnet")  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "tensorflow", None)
    with pytest.raises(GralisError, match="needs TensorFlow: pip install tensorflow"):
        gralis.models.keras(lambda z: z)
    layer = type("Layer", (), {"__module__": "keras.src.layers", "__call__": lambda self, z: z})()
    monkeypatch.setitem(
        sys.modules,
        "keras",
        SimpleNamespace(config=SimpleNamespace(backend=lambda: "numpy")),  # type: ignore[arg-type]
    )
    with pytest.raises(GralisError, match="Keras runs on numpy here, which has no gradients; set KERAS_BACKEND"):
        gralis.models.keras(layer)
