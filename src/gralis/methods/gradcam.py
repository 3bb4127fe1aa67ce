"""GradCAM and GradCAM-lin on any layer with an output (rows, channels, h, w): a map, and the map on features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
import torch
from torch import Tensor, nn

from gralis.arrays import Shape
from gralis.canonical.channels import activation_and_gradient, aggregate
from gralis.errors import GralisError, bad
from gralis.explainers import Attribution
from gralis.methods.map import Map
from gralis.methods.method import Task, TaskWords, delta_of, known
from gralis.models.failures import kind
from gralis.models.layer import Layer
from gralis.models.torch_module import TorchModel
from gralis.targets import Target


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Cam(Attribution):
    """GradCAM on features, with the map that it comes from."""

    map: Map


def gradcam(
    model: object,
    x: object,
    *,
    layer: str | nn.Module | None = None,
    relu: bool = True,
    pre_activation: bool = False,
    **asked: Unpack[TaskWords],
) -> Cam:
    """max(sum over k of mean_q(dy/dA^k_q) A^k_p, 0) at a layer, brought to the features by area; see `gradcam_map`.

    >>> net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(72, 1)).eval()
    >>> found = gradcam(net, torch.ones(1, 8, 8), features=np.arange(64).reshape(8, 8) // 32)
    >>> found.map.values.shape, found.values.shape, bool(abs(found.values.sum() - found.map.values.sum()) < 1e-6)
    ((6, 6), (2,), True)
    """
    task = Task.of(gradcam, asked)
    found = gradcam_map(model, x, target=task.target, layer=layer, relu=relu, pre_activation=pre_activation)
    if task.ledger is None:
        with task.evaluator(model, x) as evaluator:
            delta, over = delta_of(evaluator), evaluator.problem.features
    else:
        read = task.explain(model, x)
        delta, over = read.delta, read.features
    return Cam(known(found.on(over), found.method), over.names, delta, f"at {found.layer}", over, map=found)


def gradcam_lin(
    model: object,
    x: object,
    *,
    layer: str | nn.Module | None = None,
    pre_activation: bool = False,
    **asked: Unpack[TaskWords],
) -> Cam:
    """GradCAM without its final ReLU: signed, and linear in F."""
    Task.of(gradcam_lin, asked)  # what is wrong is said in this name
    return gradcam(model, x, layer=layer, relu=False, pre_activation=pre_activation, **asked)


def gradcam_map(
    model: object,
    x: object,
    *,
    target: Target = None,
    layer: str | nn.Module | None = None,
    relu: bool = True,
    pre_activation: bool = False,
) -> Map:
    """L_p = sum over channels k of mean_q(dy/dA^k_q) A^k_p on the cells p of a layer; `relu` keeps max(L_p, 0).

    `layer`: a module of the model, or its name; None takes the last one that runs once and whose output is (rows,
    channels, h, w) with more than one cell, found by a forward. `pre_activation`: A is what goes into the layer, an
    activation such as nn.ReLU (None: the last one), so that its signs are kept.
    """
    network, of = _network(model, target)
    shape = _shape(x)
    found = _last(network, x, pre_activation) if layer is None else Layer.find(network, layer)
    activation, gradient = activation_and_gradient(network, x, found.module, of, before=pre_activation)
    if activation.ndim != 3:
        raise bad("layer", "gradcam", "one with an output (rows, channels, h, w)", f"{found.name}, {activation.shape}")
    values = aggregate(activation, gradient)
    method = f"{'GradCAM' if relu else 'GradCAM-lin'}{' before the activation' if pre_activation else ''}"
    return Map(np.maximum(values, 0.0) if relu else values, shape, found.name, method)


def _last(network: nn.Module, x: object, pre_activation: bool) -> Layer:
    """The last layer of the forward pass that GradCAM can read."""
    seen: dict[nn.Module, int] = {}
    order: list[nn.Module] = []

    def note(module: nn.Module, args: Any, output: Any) -> None:
        seen[module] = seen.get(module, 0) + 1
        if isinstance(output, Tensor) and output.ndim == 4 and output.shape[2] * output.shape[3] > 1:
            order.append(module)

    named = {module: name for name, module in network.named_modules() if name}
    wanted = [module for module in named if not pre_activation or _is_activation(module)]
    handles = [module.register_forward_hook(note) for module in wanted]
    try:
        tensor = x if isinstance(x, Tensor) else torch.as_tensor(np.asarray(x))
        TorchModel(network, _first_number).value(tensor[None])
    finally:
        for handle in handles:
            handle.remove()
    for module in reversed(order):
        if seen[module] == 1:
            return Layer(network, module, named[module])
    what = "activation" if pre_activation else "layer"
    raise GralisError(
        f"No {what} of {type(network).__name__} ran once with an output (rows, channels, h, w) of more than one cell, "
        f"so GradCAM has no map to make; name a layer with layer=..., or use another method."
    )


def _first_number(outputs: Any) -> Tensor:
    """Any number per row: this forward is made for its layers."""
    tensor = outputs if isinstance(outputs, Tensor) else getattr(outputs, "logits", torch.zeros(1))
    return tensor.reshape(1, -1)[:, 0]


def _is_activation(module: nn.Module) -> bool:
    return type(module).__module__ == "torch.nn.modules.activation"


def _network(model: object, target: Target) -> tuple[nn.Module, Target]:
    """The module inside, and the target that reads it."""
    if isinstance(model, TorchModel) and isinstance(model.module, nn.Module):
        return model.module, model.target
    if not isinstance(model, nn.Module):
        raise bad("model", "gradcam", "a torch.nn.Module, which has layers", kind(model))
    return model, target


def _shape(x: object) -> Shape:
    shape = getattr(x, "shape", None)
    if isinstance(x, tuple | dict) or shape is None or len(shape) < 2:
        got = kind(x) if shape is None else f"shape {tuple(shape)}"
        raise bad("x", "gradcam", "one array whose last two axes are rows and columns", got)
    return tuple(shape)
