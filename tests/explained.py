"""Models, inputs and settings that the tests of explain share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

import gralis
from gralis import Explanation, Gaussian, GralisError, Uniform

#: A budget for six features that each plan can work with; the shared plan stays a sampling one.
BUDGETS = {"shared": 300, "exhaustive": 300, "permutation": 300, "independent": 300, "endpoint": 60}
SAMPLED = ["shared", "permutation", "independent", "endpoint"]


def setting(plan: str) -> dict[str, Any]:
    return {"plan": plan, "budget": BUDGETS[plan], "kernel": Uniform() if plan == "independent" else Gaussian(0.75)}


def draw(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def smooth(z: torch.Tensor) -> torch.Tensor:
    """A small smooth network with interactions, of any shape of input, in the dtype of its input."""
    flat = z.flatten(1)
    n = flat.shape[1]
    weight = torch.cos(torch.arange(4 * n, dtype=torch.float64)).reshape(n, 4).to(flat.dtype)
    return torch.tanh(flat @ weight).prod(1) + torch.tanh(flat @ weight).sum(1) + 0.3 * flat.sum(1)


def easy(z: torch.Tensor) -> torch.Tensor:
    """Nearly affine: any tolerance is reached early."""
    return z.sum(1) + 1e-3 * (z**2).sum(1)


class Counting:
    """A model of the user's own that counts rows and invocations, and remembers the points of forward-only calls."""

    def __init__(self, fn: Callable[[torch.Tensor], torch.Tensor] = smooth) -> None:
        self.fn = fn
        self.forward_rows: list[int] = []
        self.gradient_rows: list[int] = []
        self.seen: list[bytes] = []

    def value(self, points: torch.Tensor) -> torch.Tensor:
        self.forward_rows.append(len(points))
        self.seen.extend(row.numpy().tobytes() for row in points)
        return self.fn(points)

    def value_and_gradient(self, points: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        self.gradient_rows.append(len(points))
        leaf = points.clone().requires_grad_()
        values = self.fn(leaf)
        (gradient,) = torch.autograd.grad(values.sum(), leaf)
        return values.detach(), gradient

    @property
    def calls(self) -> int:
        return len(self.forward_rows) + len(self.gradient_rows)

    def agrees_with(self, cost: Any) -> bool:
        return (sum(self.gradient_rows), sum(self.forward_rows)) == (cost.n_gradients, cost.n_forwards)


def outcome(*arguments: Any, **options: Any) -> Explanation | GralisError:
    try:
        return gralis.explain(*arguments, **options)
    except GralisError as error:
        return error


def spread(n: int) -> torch.Tensor:
    """An input whose features all differ from each other and from zero."""
    return torch.linspace(0.4, 1.3, n, dtype=torch.float64)


def truth(fn: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor, **options: Any) -> np.ndarray:
    """phi from all coalitions with 16 Gauss-Legendre nodes each."""
    return gralis.explain(fn, x, plan="exhaustive", budget=None, **{"n_nodes": 16, **options}).values


def same_rows(a: Any, b: Any, n_rays: int, n_points: int) -> bool:
    """Whether the first rows of two ledgers are the same, bit for bit."""
    columns = [(name, n_rays) for name in ("masks", "log_rate", "replicate", "baseline", "owner", "value")]
    columns += [(name, n_points) for name in ("ray", "node", "place", "stretch", "weight", "gradient")]
    return all(np.array_equal(getattr(a, c)[:k], getattr(b, c)[:k], equal_nan=c == "value") for c, k in columns)


class Interrupted(torch.nn.Module):
    """Ctrl-C arrives during call number k."""

    def __init__(self, k: int) -> None:
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones((), dtype=torch.float64))
        self.dropout = torch.nn.Dropout(0.5)
        self.k, self.calls = k, 0

    def forward(self, z: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        if self.calls == self.k:
            raise KeyboardInterrupt
        return self.dropout(smooth(self.scale * z))
