"""A and dF/dA at one layer of a network, by one forward and one backward: what GradCAM is made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from gralis.errors import GralisError, NoGradientError, bad
from gralis.models.points import leaves
from gralis.models.protocol import Points
from gralis.models.torch_module import TorchModel

__all__ = ["ActivationModel"]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ActivationModel(TorchModel):
    """F of a network, with the pair (A, dF/dA) in place of dF/dpoint; A are the activations of one layer.

    A is (rows, channels, positions ...): the output of the layer or, with `before`, its input.
    """

    layer: nn.Module
    before: bool = False

    def value_and_gradient(self, points: Points) -> tuple[Tensor, Points]:
        """F at every row, and (A, dF/dA): one forward, one backward."""
        with self.session(), torch.inference_mode(False), torch.enable_grad():
            activations: list[Tensor] = []
            with self._hook(activations):
                value = self._selected(self._outputs(self._copies(points)), self.target, points)
            if len(activations) != 1:
                raise GralisError(
                    f"The layer must be called once in a forward pass; here it was called {len(activations)} times."
                )
            gradient = self._backward(value, activations, activations[0], keep=False)
        return value.detach(), (activations[0].detach(), *leaves(gradient))

    def _hook(self, activations: list[Tensor]) -> RemovableHandle:
        """Collects the activations of the layer; `with` removes the hook, also after an error."""

        def capture(activation: Any) -> Tensor:
            if not isinstance(activation, Tensor) or activation.ndim < 3:
                shape = tuple(activation.shape) if isinstance(activation, Tensor) else type(activation).__name__
                side = "an input" if self.before else "an output"
                raise bad("layer", "canonical.gradcam_lin", f"one with {side} (rows, channels, positions ...)", shape)
            activations.append(activation.detach().clone().requires_grad_())  # a copy: what follows may work in place
            return activations[-1].clone()  # a leaf may not be written in place; its clone may

        if self.before:
            return self.layer.register_forward_pre_hook(
                lambda module, inputs: (capture(inputs[0] if len(inputs) == 1 else inputs),)
            )
        return self.layer.register_forward_hook(lambda module, inputs, output: capture(output))

    def _detached(self) -> NoGradientError:
        return NoGradientError(
            "The output of the model does not depend on this layer through differentiable operations."
        )
