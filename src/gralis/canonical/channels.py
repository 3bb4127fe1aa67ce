"""GradCAM over a convolutional layer: its linear part is a triple over channels and positions; its ReLU is not."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from gralis.arrays import Array, plain
from gralis.canonical.triple import Triple
from gralis.errors import GralisError, bad
from gralis.models.failures import report_failure
from gralis.models.frozen import frozen
from gralis.targets import Target, select

_MOST_ENTRIES = 2**26


def gradcam_lin(model: nn.Module, x: object, *, layer: nn.Module, target: Target = None) -> Triple:
    """L_p = sum over channels k and positions q of (1 / Z) dy/dA^k_q A^k_p: GradCAM without its final ReLU.

    A are the activations of `layer` for one input x, Z the number of positions; features are the positions p, row by
    row. The weights of one position sum to the number of channels.

    >>> net = nn.Sequential(nn.Conv2d(1, 2, 1, bias=False), nn.Flatten(), nn.Linear(8, 1)).double().eval()
    >>> triple = gradcam_lin(net, torch.ones(1, 2, 2), layer=net[0])
    >>> len(triple.index[0]), triple.total_weight.tolist()
    (8, [2.0, 2.0, 2.0, 2.0])
    """
    activation, gradient = activation_and_gradient(model, x, layer, target)
    n_channels, n_positions = activation.shape[0], activation[0].size
    if n_channels * n_positions**2 > _MOST_ENTRIES:
        raise GralisError(
            f"The triple of this layer has {n_channels} channels x {n_positions} positions for each of its "
            f"{n_positions} positions, too many to write down; choose a deeper layer."
        )
    flat = activation.reshape(n_channels, n_positions)
    marginals = np.einsum("kq,kp->pkq", gradient.reshape(n_channels, n_positions), flat)
    marginals = marginals.reshape(n_positions, n_channels * n_positions)
    index = tuple(product(*map(range, activation.shape)))
    weights = np.broadcast_to(1 / n_positions, marginals.shape)
    return Triple((index,) * n_positions, weights, marginals, "GradCAM-lin")


def gradcam(model: nn.Module, x: object, *, layer: nn.Module, target: Target = None) -> Array:
    """max(L_p, 0): standard GradCAM, position by position. Not linear in y, hence no triple."""
    return np.maximum(gradcam_lin(model, x, layer=layer, target=target).attribution(), 0.0)


def aggregate(activation: Array, gradient: Array) -> Array:
    """L_p = sum over channels k of mean_q(dy/dA^k_q) A^k_p, shaped like the positions: the sum of the triple.

    >>> aggregate(np.array([[1.0, 2.0], [3.0, 5.0]]), np.array([[1.0, 1.0], [0.0, -2.0]])).tolist()
    [-2.0, -3.0]
    """
    weights = gradient.reshape(len(gradient), -1).mean(1)
    return np.asarray(np.tensordot(weights, activation, 1))


def activation_and_gradient(
    model: nn.Module, x: object, layer: nn.Module, target: Target, *, before: bool = False
) -> tuple[Array, Array]:
    """A and dy/dA of the layer, (n_channels, *positions) each; the hook is gone afterwards, also after an error.

    `before`: A is what goes into the layer (into a ReLU, say) instead of what comes out of it.
    """
    if not isinstance(model, nn.Module):
        raise bad("model", "canonical.gradcam_lin", "a torch.nn.Module", f"a {type(model).__name__}")
    if not any(part is layer for part in model.modules()):
        raise bad("layer", "canonical.gradcam_lin", "a module inside the model", f"a {type(layer).__name__} outside")
    seen: list[Tensor] = []

    def capture(found: Any) -> Tensor:
        if not isinstance(found, Tensor) or found.ndim < 3:
            shape = tuple(found.shape) if isinstance(found, Tensor) else type(found).__name__
            what = "an input" if before else "an output"
            raise bad("layer", "canonical.gradcam_lin", f"one with {what} (rows, channels, positions ...)", shape)
        seen.append(found.detach().clone().requires_grad_())  # a copy: what follows may work in place
        return seen[-1].clone()  # a leaf may not be written in place; its clone may

    def on_input(module: nn.Module, args: Any) -> Any:
        return (capture(args[0] if len(args) == 1 else args),)

    def on_output(module: nn.Module, args: Any, output: Any) -> Tensor:
        return capture(output)

    handle = layer.register_forward_pre_hook(on_input) if before else layer.register_forward_hook(on_output)
    try:
        with frozen(model), torch.inference_mode(False), torch.enable_grad():
            points = _placed(x, model)
            with report_failure(f"The model {type(model).__name__}", points):
                y = select(model(points), target, "canonical.gradcam_lin")
            if len(seen) != 1:
                raise GralisError(
                    f"The layer must be called once in a forward pass; here it was called {len(seen)} times."
                )
            (gradient,) = torch.autograd.grad(y.sum(), seen, allow_unused=True) if y.requires_grad else (None,)
    finally:
        handle.remove()
    if gradient is None:
        raise GralisError("The output of the model does not depend on this layer through differentiable operations.")
    return seen[0].detach().double().cpu().numpy()[0], gradient.double().cpu().numpy()[0]


def _placed(x: object, model: nn.Module) -> Tensor:
    """x as a batch of one, where and as the parameters are."""
    tensor = x.detach() if isinstance(x, Tensor) else torch.from_numpy(plain(x))
    like = next((p for p in model.parameters() if p.is_floating_point()), tensor)
    return tensor.to(device=like.device, dtype=like.dtype, copy=True)[None]
