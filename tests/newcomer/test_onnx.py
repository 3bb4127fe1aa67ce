"""ONNX models: values by onnxruntime, gradients where onnx2torch converts, and a sentence where it cannot."""

from __future__ import annotations

import sys
import types
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import gralis
from gralis import GralisError

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")
X = torch.linspace(0.2, 1.0, 4)


def network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 3)).eval()


def written(path: Path, batch: object = "rows", kind: int = onnx.TensorProto.FLOAT) -> Path:
    """The network above as an ONNX file, written node by node."""
    first, _, last = network()
    helper, dtype = onnx.helper, np.float32 if kind == onnx.TensorProto.FLOAT else np.float64
    arrays = {"w1": first.weight, "b1": first.bias, "w2": last.weight, "b2": last.bias}
    constants = [onnx.numpy_helper.from_array(a.detach().numpy().astype(dtype), name) for name, a in arrays.items()]
    nodes = [
        helper.make_node("Gemm", ["x", "w1", "b1"], ["hidden"], transB=1),
        helper.make_node("Tanh", ["hidden"], ["bent"]),
        helper.make_node("Gemm", ["bent", "w2", "b2"], ["logits"], transB=1),
    ]
    x = helper.make_tensor_value_info("x", kind, [batch, 4])
    out = helper.make_tensor_value_info("logits", kind, [batch, 3])
    graph = helper.make_graph(nodes, "network", [x], [out], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.save(model, str(path))
    return path


@pytest.fixture
def torchvision(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in for torchvision with what onnx2torch imports, so that its conversion runs."""
    package, ops = types.ModuleType("torchvision"), types.ModuleType("torchvision.ops")
    for name in ("nms", "box_convert", "roi_align"):
        setattr(ops, name, None)
    package.ops = ops  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torchvision", package)
    monkeypatch.setitem(sys.modules, "torchvision.ops", ops)
    pytest.importorskip("onnx2torch")


@pytest.fixture
def no_onnx2torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnx2torch", None)


def test_with_gradients_it_is_explained_like_the_torch_network(tmp_path: Path, torchvision: None) -> None:
    model = gralis.models.onnx(written(tmp_path / "net.onnx"))
    assert model.differentiable
    found = gralis.explain(model, X, target=1, budget=300)
    expected = gralis.explain(network(), X, target=1, budget=300)
    assert np.allclose(found.values, expected.values, atol=1e-5)
    assert "endpoint" not in repr(found)


def test_without_gradients_it_says_why_and_uses_values(tmp_path: Path, no_onnx2torch: None) -> None:
    model = gralis.models.onnx(written(tmp_path / "net.onnx"))
    found = gralis.explain(model, X, target=1, budget=60)
    assert found.plan["name"] == "endpoint"
    assert "note: the model has no gradient here (onnx2torch cannot be imported" in repr(found)
    expected = gralis.explain(network(), X, target=1, plan="endpoint", budget=60)
    assert np.allclose(found.values, expected.values, atol=1e-6)
    with pytest.raises(GralisError, match=r"net\.onnx has no gradient here \(onnx2torch cannot be imported"):
        gralis.explain(model, X, target=1, plan="independent", budget=60)


def test_a_session_is_enough(tmp_path: Path, no_onnx2torch: None) -> None:
    path = str(written(tmp_path / "net.onnx"))
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    points = torch.rand(5, 4, dtype=torch.float64)
    model = gralis.models.onnx(session, target=2)
    assert torch.allclose(model.value(points), network()(points.float())[:, 2].detach(), atol=1e-6)


@pytest.mark.parametrize("batch", [1, 3])
def test_a_fixed_batch_size_is_kept(tmp_path: Path, no_onnx2torch: None, batch: int) -> None:
    model = gralis.models.onnx(written(tmp_path / "net.onnx", batch=batch), target=0)
    points = torch.rand(7, 4)
    assert torch.allclose(model.value(points), network()(points)[:, 0].detach(), atol=1e-6)


def test_the_declared_type_is_used(tmp_path: Path, no_onnx2torch: None) -> None:
    double = gralis.models.onnx(written(tmp_path / "double.onnx", kind=onnx.TensorProto.DOUBLE), target=0)
    assert double.dtype == torch.float64
    assert gralis.models.onnx(written(tmp_path / "net.onnx")).dtype == torch.float32
    points = torch.rand(2, 4, dtype=torch.float64)
    assert torch.allclose(double.value(points), network().double()(points)[:, 0].detach(), atol=1e-12)


def test_a_batch_axis_left_on(tmp_path: Path, no_onnx2torch: None) -> None:
    found = gralis.explain(gralis.models.onnx(written(tmp_path / "net.onnx")), X[None], target=0, budget=60)
    assert "x has a batch axis of 1" in repr(found)


def test_a_conversion_that_computes_something_else_is_not_used(tmp_path: Path, torchvision: None) -> None:
    model = gralis.models.onnx(written(tmp_path / "net.onnx"), target=0)
    with torch.no_grad():
        next(model.module.parameters()).mul_(3)
    with pytest.raises(GralisError, match="computes other values than onnxruntime"):
        gralis.explain(model, X, budget=60)


def test_what_is_no_onnx_model(tmp_path: Path) -> None:
    with pytest.raises(
        GralisError, match=r"must be a file \.onnx or an onnxruntime\.InferenceSession\. Got 'none\.onnx'"
    ):
        gralis.models.onnx("none.onnx")
    (tmp_path / "torn.onnx").write_bytes(b"no model")
    with pytest.raises(GralisError, match="onnxruntime cannot read"):
        gralis.models.onnx(tmp_path / "torn.onnx")
    with pytest.raises(GralisError, match="Got a Linear instead"):
        gralis.models.onnx(nn.Linear(1, 1))
    with pytest.raises(GralisError, match=r"'output' parameter of models\.onnx must be one of logits"):
        gralis.models.onnx(written(tmp_path / "net.onnx"), output="probabilities")
