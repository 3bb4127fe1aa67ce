"""GradCAM over a convolutional layer: its linear part is a triple over channels and positions; its ReLU is not."""

from __future__ import annotations

from itertools import product

import numpy as np
import torch
from torch import Tensor, nn

from gralis.arrays import Array, plain
from gralis.canonical.triple import Triple
from gralis.errors import GralisError, bad
from gralis.evaluation.calls import ModelCalls
from gralis.evaluation.point_sequences import GivenPoints, PointBatch
from gralis.models import Points
from gralis.models.activations import ActivationModel
from gralis.models.outputs import TargetedModel
from gralis.models.points import leaves
from gralis.targets import Target, check

__all__ = ["activation_and_gradient", "aggregate", "gradcam", "gradcam_lin"]

_MOST_ENTRIES = 2**26


def gradcam_lin(model: nn.Module, x: object, *, layer: nn.Module, target: Target = None) -> Triple:
    """L_p = sum over channels k and positions q of (1 / Z) dy/dA^k_q A^k_p: GradCAM without its final ReLU.

    A are the activations of the layer and Z is the number of positions. The features are the positions p, row by row.
    The weights of one position sum to the number of channels.

    Parameters
    ----------
    model : torch.nn.Module
        The network.
    x : array or tensor
        One input, without a batch axis.
    layer : torch.nn.Module
        A module of the network with an output (rows, channels, positions ...). It must run once in a forward pass.
    target : int, tuple of int, callable or None, default=None
        Which number of the network's output is y.

    Returns
    -------
    Triple

    Examples
    --------
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
    """max(L_p, 0): standard GradCAM, position by position. It is not linear in y, so it has no triple.

    Parameters
    ----------
    model : torch.nn.Module
        The network.
    x : array or tensor
        One input, without a batch axis.
    layer : torch.nn.Module
        A module of the network with an output (rows, channels, positions ...). It must run once in a forward pass.
    target : int, tuple of int, callable or None, default=None
        Which number of the network's output is y.

    Returns
    -------
    array of shape (n_positions,)
    """
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
    network_at_layer = ActivationModel(model, check(target, "canonical.gradcam_lin"), layer=layer, before=before)
    points = _placed(x, model)
    calls = ModelCalls(TargetedModel(network_at_layer), points.nbytes, batch_size=1)
    with calls.session():
        (batch,) = calls.gradients(GivenPoints(points, _ActivationBatch))
    activation, gradient = batch.rows[0][0]
    return activation, gradient


class _ActivationBatch(PointBatch):
    """Of an `ActivationModel` both A and dF/dA are kept, (rows, 2, channels, positions ...)."""

    def reduced(self, gradients: Points) -> Tensor:
        return torch.stack(leaves(gradients), dim=1).double()

    def name_of(self, place: tuple[int, ...]) -> str:
        return f"{'gradient with respect to the activation' if place[0] else 'activation'} {place[1:]} of the layer"


def _placed(x: object, model: nn.Module) -> Tensor:
    """x as a batch of one, with the device and the dtype of the parameters."""
    tensor = x.detach() if isinstance(x, Tensor) else torch.from_numpy(plain(x))
    like = next((p for p in model.parameters() if p.is_floating_point()), tensor)
    return tensor.to(device=like.device, dtype=like.dtype)[None]
