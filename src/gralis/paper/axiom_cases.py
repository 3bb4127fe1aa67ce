"""Small models that every method can explain, so that one axiom can be measured on all methods.

SHAP, LIME, IG and GRALIS explain F at x against the baseline 0, with four features. GradCAM explains a head y(A) at
activations A > 0 against A = 0; its features are the 3 x 3 positions of two channels, and the head uses the first four
of them. u is the fraction z / x of every feature, which is 0 or 1 at the corners x_T. LIME has a sampled design, as it
has in practice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor, nn

from gralis import canonical
from gralis.arrays import Array
from gralis.kernels import Gaussian
from gralis.paper.networks import Function, FunctionModule, network, point

METHODS = ("GradCAM", "SHAP", "LIME", "IG", "GRALIS")
N_FEATURES = 4
N_POSITIONS = 9

#: F as a function of the fractions u (rows, 4).
FractionFunction: TypeAlias = Callable[[Tensor], Tensor]

_DESIGN = np.random.default_rng(3).random((12, N_FEATURES)) < 0.5
_SIGMA = {"LIME": 0.25, "GRALIS": 0.75}


@dataclass(frozen=True)
class AxiomCase:
    """A function and an input, with the method that explains it."""

    method: str
    function: Function
    x: Tensor

    @property
    def delta(self) -> float:
        """F(x) - F(0)."""
        ends = self.function(torch.stack([self.x, torch.zeros_like(self.x)]))
        return float(ends[0] - ends[1])

    def only_first(self) -> AxiomCase:
        """The same function at the input that differs from the baseline in feature 0 only."""
        n = N_POSITIONS if self.method == "GradCAM" else N_FEATURES
        kept = torch.zeros(n, dtype=self.x.dtype)
        kept[0] = 1
        x = (self.x.reshape(-1, n) * kept).reshape(self.x.shape)
        return AxiomCase(self.method, self.function, x)

    def attribution(self, sigma: float | None = None) -> Array:
        """One number per feature; `sigma` is the width of the kernel of the methods that have a kernel."""
        sigma = sigma or _SIGMA.get(self.method, 1.0)
        f, x = self.function, self.x
        if self.method == "GradCAM":
            net = nn.Sequential(nn.Identity(), FunctionModule(f)).eval()
            return canonical.gradcam(net, x, layer=net[0])
        if self.method == "SHAP":
            return canonical.shap(f, x).attribution()
        if self.method == "LIME":
            return canonical.lime(f, x, masks=_DESIGN, sigma=sigma).attribution()
        if self.method == "IG":
            return canonical.integrated_gradients(f, x, quadrature="gauss-legendre", n_nodes=16).attribution()
        return canonical.gralis(f, x, kernel=Gaussian(sigma), n_nodes=12).attribution()


def axiom_case(method: str, seed: int, shape: FractionFunction | None = None, *, same_x: bool = False) -> AxiomCase:
    """The case F = shape(u), by default a random network of u; `same_x` gives features 0 and 1 the same x."""
    of_u = shape or network(seed, N_FEATURES)
    if method == "GradCAM":
        rng = np.random.default_rng([seed, 7])
        a, share = torch.from_numpy(rng.uniform(0.2, 1.5, (2, 3, 3))), torch.from_numpy(rng.uniform(0.1, 0.9, 9))
        if same_x:
            a[:, 0, 1], share[1] = a[:, 0, 0], share[0]

        def head(z: Tensor) -> Tensor:
            u = (z / a).flatten(2)  # (rows, channels, positions)
            return of_u((share * u[:, 0] + (1 - share) * u[:, 1])[:, :N_FEATURES])

        return AxiomCase(method, head, a)
    x = torch.from_numpy(point(seed, N_FEATURES))
    if same_x:
        x[1] = x[0]
    return AxiomCase(method, lambda z: of_u(z / x), x)


def exchangeable(seed: int) -> FractionFunction:
    """A network that is symmetric in features 0 and 1."""
    inner = network(seed, N_FEATURES)
    return lambda u: inner(torch.stack([u[:, 0] * u[:, 1], u[:, 0] + u[:, 1], u[:, 2], u[:, 3]], dim=1))
