"""GradCAM and GradCAM-lin on any layer with an output (rows, channels, h, w): a map, and the map on features."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
import torch
from torch import Tensor, nn

from gralis.api.signature import keywords_of
from gralis.arrays import Array, Shape
from gralis.canonical.channels import activation_and_gradient, aggregate
from gralis.errors import GralisError, NoGradientError, bad
from gralis.evaluation.calls import ModelCalls
from gralis.evaluation.point_sequences import GivenPoints
from gralis.methods.layer_map import Map
from gralis.methods.method import delta_of, exact_estimate
from gralis.methods.settings import MethodKeywords, MethodSettings
from gralis.models.failures import kind
from gralis.models.layer import Layer
from gralis.models.outputs import TargetedModel
from gralis.models.torch_module import TorchModel
from gralis.results import Attribution
from gralis.targets import Target

__all__ = ["Cam", "gradcam", "gradcam_lin", "gradcam_map"]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Cam(Attribution):
    """GradCAM on features, with the map that it comes from.

    Attributes
    ----------
    estimate, names, delta, note, features, form
        As in `Attribution`.
    map : Map
        The map over the cells of the layer.
    """

    map: Map


@keywords_of(MethodSettings)
def gradcam(
    model: object,
    x: object,
    *,
    layer: str | nn.Module | None = None,
    relu: bool = True,
    pre_activation: bool = False,
    **keywords: Unpack[MethodKeywords],
) -> Cam:
    """max(sum over k of mean_q(dy/dA^k_q) A^k_p, 0) at a layer, brought to the features by area.

    Parameters
    ----------
    model : torch.nn.Module
        The model, which must have a layer with an output (rows, channels, h, w).
    x : array or tensor
        One input, without a batch axis. Its last two axes are rows and columns.
    layer : str, torch.nn.Module or None, default=None
        The layer whose activations A are read: a module of the model, or its name. None takes the last layer that
        runs once, whose output is (rows, channels, h, w) with more than one cell, and on which y depends: a layer
        that y does not read, such as an auxiliary head, would give a map of zeros. A forward pass finds the layers.
    relu : bool, default=True
        Whether negative cells of the map become zero, as in the original method.
    pre_activation : bool, default=False
        Whether A is the input of the layer, which is an activation such as `nn.ReLU`, instead of its output. A then
        keeps its signs, and layer=None takes the last activation.

    Returns
    -------
    Cam
        The values on the features, and the map as `.map`.

    Examples
    --------
    >>> net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(72, 1)).eval()
    >>> cam = gradcam(net, torch.ones(1, 8, 8), features=np.arange(64).reshape(8, 8) // 32)
    >>> cam.map.values.shape, cam.values.shape, bool(abs(cam.values.sum() - cam.map.values.sum()) < 1e-6)
    ((6, 6), (2,), True)
    """
    settings = MethodSettings.of(gradcam, keywords)
    cells = gradcam_map(model, x, target=settings.target, layer=layer, relu=relu, pre_activation=pre_activation)
    if settings.ledger is None:
        with settings.evaluator(model, x) as evaluator:
            delta, features = delta_of(evaluator), evaluator.problem.features
    else:
        explanation = settings.explain(model, x)
        delta, features = explanation.delta, explanation.features
    estimate = exact_estimate(cells.on(features), cells.method)
    return Cam(estimate, features.names, delta, f"at {cells.layer}", features, map=cells)


@keywords_of(MethodSettings)
def gradcam_lin(
    model: object,
    x: object,
    *,
    layer: str | nn.Module | None = None,
    pre_activation: bool = False,
    **keywords: Unpack[MethodKeywords],
) -> Cam:
    """sum over k of mean_q(dy/dA^k_q) A^k_p at a layer: GradCAM without its final ReLU, signed and linear in F.

    Parameters
    ----------
    model : torch.nn.Module
        The model, which must have a layer with an output (rows, channels, h, w).
    x : array or tensor
        One input, without a batch axis. Its last two axes are rows and columns.
    layer : str, torch.nn.Module or None, default=None
        The layer whose activations A are read, as in `gradcam`.
    pre_activation : bool, default=False
        Whether A is the input of the layer instead of its output, as in `gradcam`.

    Returns
    -------
    Cam
        The values on the features, and the map as `.map`.
    """
    MethodSettings.of(gradcam_lin, keywords)  # so that an error names this function
    return gradcam(model, x, layer=layer, relu=False, pre_activation=pre_activation, **keywords)


def gradcam_map(
    model: object,
    x: object,
    *,
    target: Target = None,
    layer: str | nn.Module | None = None,
    relu: bool = True,
    pre_activation: bool = False,
) -> Map:
    """L_p = sum over channels k of mean_q(dy/dA^k_q) A^k_p on the cells p of a layer.

    Parameters
    ----------
    model : torch.nn.Module
        The model, which must have a layer with an output (rows, channels, h, w).
    x : array or tensor
        One input, without a batch axis. Its last two axes are rows and columns.
    target : int, tuple of int, callable or None, default=None
        Which number of the model's output is y.
    layer : str, torch.nn.Module or None, default=None
        The layer whose activations A are read, as in `gradcam`.
    relu : bool, default=True
        Whether the map is max(L_p, 0).
    pre_activation : bool, default=False
        Whether A is the input of the layer instead of its output, as in `gradcam`.

    Returns
    -------
    Map
    """
    network, of = _network(model, target)
    shape = _shape(x)

    def at(layer: Layer) -> tuple[Layer, Array, Array]:
        return layer, *activation_and_gradient(network, x, layer.module, of, before=pre_activation)

    if layer is None:
        read, activation, gradient = _last(at, _readable(network, x, pre_activation))
    else:
        read, activation, gradient = at(Layer.find(network, layer))
    if activation.ndim != 3:
        raise bad("layer", "gradcam", "one with an output (rows, channels, h, w)", f"{read.name}, {activation.shape}")
    values = aggregate(activation, gradient)
    method = f"{'GradCAM' if relu else 'GradCAM-lin'}{' before the activation' if pre_activation else ''}"
    return Map(np.maximum(values, 0.0) if relu else values, shape, read.name, method)


def _last(at: Callable[[Layer], tuple[Layer, Array, Array]], layers: Sequence[Layer]) -> tuple[Layer, Array, Array]:
    """The first of these layers on which y depends, with A and dy/dA; the first of all if y depends on none."""

    def moving(layer: Layer) -> tuple[Layer, Array, Array] | None:
        try:
            found = at(layer)
        except NoGradientError:
            return None
        return found if np.any(found[2]) else None

    found = moving(layers[0])
    if found is None and moving(layers[-1]) is not None:  # otherwise y is flat, and nothing between them is tried
        found = next(one for one in map(moving, layers[1:]) if one is not None)
    return found or at(layers[0])


def _readable(network: nn.Module, x: object, pre_activation: bool) -> list[Layer]:
    """The layers of the forward pass that GradCAM can read, the last one first."""
    seen: dict[nn.Module, int] = {}
    order: list[nn.Module] = []

    def note(module: nn.Module, args: Any, output: Any) -> None:
        seen[module] = seen.get(module, 0) + 1
        if isinstance(output, Tensor) and output.ndim == 4 and output.shape[2] * output.shape[3] > 1:
            order.append(module)

    named = {module: name for name, module in network.named_modules() if name}
    wanted = [module for module in named if not pre_activation or _is_activation(module)]
    with ExitStack() as hooks:
        for module in wanted:
            hooks.enter_context(module.register_forward_hook(note))
        point = (x if isinstance(x, Tensor) else torch.as_tensor(np.asarray(x)))[None]
        calls = ModelCalls(TargetedModel(TorchModel(network, _no_number)), point.nbytes, batch_size=1)
        with calls.session():
            calls.values(GivenPoints(point))
    found = [Layer(network, module, named[module]) for module in reversed(order) if seen[module] == 1]
    if found:
        return found
    what = "activation" if pre_activation else "layer"
    raise GralisError(
        f"No {what} of {type(network).__name__} ran once with an output (rows, channels, h, w) of more than one cell, "
        f"so GradCAM has no map to make; name a layer with layer=..., or use another method."
    )


def _no_number(outputs: Any) -> Tensor:
    """Nothing is read off the outputs: this forward pass is made to see which layers run."""
    return torch.zeros(1)


def _is_activation(module: nn.Module) -> bool:
    """Whether the module is one of torch's activation functions."""
    return type(module).__module__ == "torch.nn.modules.activation"


def _network(model: object, target: Target) -> tuple[nn.Module, Target]:
    """The module inside an adapted model, and the target that reads its output."""
    if isinstance(model, TorchModel) and isinstance(model.module, nn.Module):
        return model.module, model.target
    if not isinstance(model, nn.Module):
        raise bad("model", "gradcam", "a torch.nn.Module, which has layers", kind(model))
    return model, target


def _shape(x: object) -> Shape:
    """The shape of x, which must have rows and columns."""
    shape = getattr(x, "shape", None)
    if isinstance(x, tuple | dict) or shape is None or len(shape) < 2:
        got = kind(x) if shape is None else f"shape {tuple(shape)}"
        raise bad("x", "gradcam", "one array whose last two axes are rows and columns", got)
    return tuple(shape)
