"""F as a function of one layer's output: rays run between the activations of x and x'; F is the rest of the network.

The network runs on x with the output of the layer replaced by the points. That is the rest of the network only if
everything flows through the layer, and flows through it once. Both are checked, the first by comparing F(x) and F(x').
A name that ends in ":input" means what goes into a module, such as the attention heads before they are mixed. It is
switched to its activation at the baseline, and everything that flows around it stays as it is at x.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from gralis.errors import GralisError, ModelError, bad
from gralis.models.failures import kind
from gralis.models.points import call, leaves, rebuild
from gralis.models.protocol import Points
from gralis.models.torch_module import TorchModel
from gralis.targets import Target

_INPUT = ":input"  # after the name of a module: what goes into it
_CLOSE = 1e-4  # relative agreement of F through the layer with F itself; float32 and batch sizes make small differences

__all__ = ["Descent", "Layer", "Tail", "activation_shape", "descend"]


@dataclass(frozen=True)
class Layer:
    """A layer of a network, with its dotted name."""

    network: nn.Module
    module: nn.Module
    name: str
    before: bool = False  # what goes into the module is meant, and not what comes out of it

    @staticmethod
    def find(network: object, layer: object) -> Layer:
        """The layer with this name, or this module; otherwise an error that suggests names."""
        if not isinstance(network, nn.Module):
            raise bad("model", "explain", "a torch.nn.Module when layer= is given", kind(network))
        named = dict(network.named_modules())
        if isinstance(layer, str) and layer in named and layer:
            return Layer(network, named[layer], layer)
        if isinstance(layer, str) and layer.endswith(_INPUT) and named.get(layer.removesuffix(_INPUT)):
            return Layer(network, named[layer.removesuffix(_INPUT)], layer, before=True)
        if isinstance(layer, nn.Module):
            for name, module in named.items():
                if module is layer and name:
                    return Layer(network, module, name)
            raise bad("layer", "explain", "a module inside the model", f"a {type(layer).__name__} that is not in it")
        names = [name for name in named if name]
        close = difflib.get_close_matches(str(layer), names, n=3, cutoff=0.3) or names[:3]
        raise bad(
            "layer", "explain", f"the name of a module of the model, such as {', '.join(map(repr, close))}", repr(layer)
        )

    def output(self, points: Points) -> Tensor:
        """The output of the layer at these points, (rows, *shape)."""
        outputs: list[Any] = []

        def keep(module: nn.Module, inputs: Any, output: Any) -> None:
            # A copy: what follows may work in place.
            outputs.append(output.detach().clone() if isinstance(output, Tensor) else output)

        def keep_input(module: nn.Module, inputs: Any) -> None:
            keep(module, inputs, inputs[0] if inputs else None)

        register = self.module.register_forward_pre_hook if self.before else self.module.register_forward_hook
        with register(keep_input if self.before else keep):  # type: ignore[arg-type]  # removed also after an error
            TorchModel(self.network).outputs(points)
        if not outputs:
            raise ModelError(f"The layer {self.name} was not reached when the model ran on x; choose another layer.")
        if len(outputs) > 1:
            raise ModelError(
                f"The layer {self.name} ran {len(outputs)} times on one input, so its output is not one point of a "
                f"ray; choose a layer that runs once, such as the one that follows."
            )
        output = outputs[0]
        if not isinstance(output, Tensor) or not output.is_floating_point():
            got = str(output.dtype) if isinstance(output, Tensor) else type(output).__name__
            raise ModelError(f"The layer {self.name} returns {got}; layer= needs one that returns one float tensor.")
        return output


class Tail(nn.Module):
    """The part of a network that follows a layer, as a module of the layer's output."""

    def __init__(self, layer: Layer, x: Points, *, repeat: bool) -> None:
        super().__init__()
        self.network = layer.network
        self.training = layer.network.training  # only this flag: the network keeps its flags
        self._layer, self._x, self._repeat = layer, x, repeat

    @property
    def name(self) -> str:
        """The dotted name of the layer."""
        return self._layer.name

    def forward(self, activation: Tensor) -> Any:
        rows = len(activation) if self._repeat else 1
        points = rebuild(self._x, [leaf.expand(rows, *leaf.shape[1:]).clone() for leaf in leaves(self._x)])
        count = 0

        def replace(module: nn.Module, inputs: Any, output: Any) -> Tensor:
            nonlocal count
            count += 1
            return activation if count == 1 else output

        def replace_input(module: nn.Module, inputs: Any) -> Any:
            return (replace(module, inputs, inputs[0]), *inputs[1:])

        module, before = self._layer.module, self._layer.before
        register = module.register_forward_pre_hook if before else module.register_forward_hook
        with register(replace_input if before else replace):  # type: ignore[arg-type]
            return call(self.network, points)


@dataclass(frozen=True, eq=False)
class Descent:
    """What is explained at a layer: the rest of the network, the activation of x, and those of the baselines."""

    tail: Tail
    activation: Tensor  # (*shape)
    baselines: Tensor  # (n_baselines, *shape)


def descend(model: object, layer: object, x: Points, baselines: Points, target: Target) -> Descent:
    """Run x (1, ...) and the baselines (n_baselines, ...) up to the layer, and check the rest of the network."""
    at = Layer.find(model, layer)
    whole = TorchModel(at.network, target)
    x, baselines = (rebuild(points, [_like(whole, leaf) for leaf in leaves(points)]) for points in (x, baselines))
    of_x, of_baselines = at.output(x), at.output(baselines)
    n_baselines = leaves(baselines)[0].shape[0]
    if of_x.shape[0] != 1 or of_baselines.shape[0] != n_baselines or of_baselines.shape[1:] != of_x.shape[1:]:
        raise ModelError(
            f"The layer {at.name} returns shape {tuple(of_x.shape)} for one input; layer= needs one row per input."
        )
    ends = torch.cat([of_x, of_baselines])
    expected = torch.cat([whole.value(x), whole.value(baselines)])
    for repeat in (False, True):  # the part before the layer runs on one row, unless the network needs all rows
        tail = Tail(at, x, repeat=repeat)
        try:
            through = TorchModel(tail, target).value(ends)
        except ModelError:
            if repeat:
                raise
            continue
        checked = slice(1 if at.before else None)  # what goes around a part of a layer stays as it is at x
        near = _CLOSE * float(expected.abs().max())
        if torch.allclose(through[checked], expected[checked], rtol=_CLOSE, atol=near):
            return Descent(tail, of_x[0], of_baselines)
    raise GralisError(
        f"F depends on the input by other ways than through the layer {at.name} (a connection around it?), so the "
        f"rest of the network is no function of its output; choose a layer that everything flows through."
    )


def activation_shape(model: object, layer: object, x: object) -> tuple[int, ...]:
    """The shape of the layer's output for one input."""
    at = Layer.find(model, layer)
    try:
        point = torch.as_tensor(x)[None]
    except (TypeError, ValueError, RuntimeError):
        raise bad("x", "explain", "a tensor or an array where the features of a layer are left open", kind(x)) from None
    return tuple(at.output(point).shape[1:])


def _like(model: TorchModel, leaf: Tensor) -> Tensor:
    dtype = (model.dtype or leaf.dtype) if leaf.is_floating_point() else leaf.dtype
    return leaf.detach().to(device=model.device, dtype=dtype)
