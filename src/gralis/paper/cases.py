"""Small models that every method can explain, so that their attributions may be held against the same axiom.

SHAP, LIME, IG and GRALIS explain F at x against 0 (n = 4). GradCAM explains a head y(A) at activations A > 0 of two
channels on 3 x 3 positions, its features, against A = 0; the head looks at the first four positions. u is the fraction
z / x of every feature: 0 or 1 at the corners x_T. LIME has a sampled design, as it has in use.
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
from gralis.paper.networks import Function, Over, network, point

METHODS = ("GradCAM", "SHAP", "LIME", "IG", "GRALIS")
N_FEATURES = 4
N_POSITIONS = 9

#: F as a function of u (rows, 4).
Shape: TypeAlias = Callable[[Tensor], Tensor]

_DESIGN = np.random.default_rng(3).random((12, N_FEATURES)) < 0.5
_SIGMA = {"LIME": 0.25, "GRALIS": 0.75}


@dataclass(frozen=True)
class Case:
    """A function and an input, explained by one method."""

    method: str
    function: Function
    x: Tensor

    @property
    def delta(self) -> float:
        """F(x) - F(0)."""
        ends = self.function(torch.stack([self.x, torch.zeros_like(self.x)]))
        return float(ends[0] - ends[1])

    def only_first(self) -> Case:
        """The same function where nothing but feature 0 differs from the baseline."""
        n = N_POSITIONS if self.method == "GradCAM" else N_FEATURES
        kept = torch.zeros(n, dtype=self.x.dtype)
        kept[0] = 1
        x = (self.x.reshape(-1, n) * kept).reshape(self.x.shape)
        return Case(self.method, self.function, x)

    def attribution(self, sigma: float | None = None) -> Array:
        """phi, or a number for every position; `sigma` is the width of the kernel, for methods that have one."""
        sigma = sigma or _SIGMA.get(self.method, 1.0)
        f, x = self.function, self.x
        if self.method == "GradCAM":
            net = nn.Sequential(nn.Identity(), Over(f)).eval()
            return canonical.gradcam(net, x, layer=net[0])
        if self.method == "SHAP":
            return canonical.shap(f, x).attribution()
        if self.method == "LIME":
            return canonical.lime(f, x, masks=_DESIGN, sigma=sigma).attribution()
        if self.method == "IG":
            return canonical.integrated_gradients(f, x, quadrature="gauss-legendre", n_nodes=16).attribution()
        return canonical.gralis(f, x, kernel=Gaussian(sigma), n_nodes=12).attribution()


def case(method: str, seed: int, shape: Shape | None = None, *, alike: bool = False) -> Case:
    """F = shape(u), by default a random network of u; `alike` gives features 0 and 1 the same x."""
    of_u = shape or network(seed, N_FEATURES)
    if method == "GradCAM":
        rng = np.random.default_rng([seed, 7])
        a, share = torch.from_numpy(rng.uniform(0.2, 1.5, (2, 3, 3))), torch.from_numpy(rng.uniform(0.1, 0.9, 9))
        if alike:
            a[:, 0, 1], share[1] = a[:, 0, 0], share[0]

        def head(z: Tensor) -> Tensor:
            u = (z / a).flatten(2)  # (rows, channels, positions)
            return of_u((share * u[:, 0] + (1 - share) * u[:, 1])[:, :N_FEATURES])

        return Case(method, head, a)
    x = torch.from_numpy(point(seed, N_FEATURES))
    if alike:
        x[1] = x[0]
    return Case(method, lambda z: of_u(z / x), x)


def exchangeable(seed: int) -> Shape:
    """A network that does not tell features 0 and 1 apart."""
    inner = network(seed, N_FEATURES)
    return lambda u: inner(torch.stack([u[:, 0] * u[:, 1], u[:, 0] + u[:, 1], u[:, 2], u[:, 3]], dim=1))
