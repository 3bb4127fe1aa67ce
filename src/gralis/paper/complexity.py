"""The evaluations of every method, counted by the model: each entry is a number of points, not an order of growth."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from gralis import canonical, models, plans
from gralis.api.explain import explain
from gralis.arrays import Array
from gralis.kernels import Gaussian, SizeKernel, Uniform
from gralis.laws import all_masks
from gralis.models.points import leaves
from gralis.models.protocol import Points
from gralis.paper.claim_row import ClaimRow, at_most, collect, equal, vanishes
from gralis.paper.networks import Function, conv_net, image, network, point
from gralis.paper.rational import without

_N, _M, _K = 4, 6, 3
_TABLE = "Tab. complexity"


class Counting:
    """A model that counts the points it evaluates, and its calls with a backward pass."""

    def __init__(self, function: Function) -> None:
        self._inner = models.torch(function)
        self.n_forwards = self.n_gradients = self.n_backward_calls = 0

    def value(self, points: Points) -> Tensor:
        self.n_forwards += len(leaves(points)[0])
        return self._inner.value(points)

    def value_and_gradient(self, points: Points) -> tuple[Tensor, Points]:
        self.n_gradients += len(leaves(points)[0])
        self.n_backward_calls += 1
        return self._inner.value_and_gradient(points)

    @property
    def counts(self) -> tuple[int, int]:
        """The number of forwards without a backward pass, and the number of gradients."""
        return self.n_forwards, self.n_gradients


def rows() -> list[ClaimRow]:
    return collect(_exact, _sampled, _peers, _reuse)


def _model(n: int = _N) -> Counting:
    return Counting(network(0, n))


def definition_1(model: Counting, x: Array, k: int) -> Array:
    """Definition 1 to the letter, with uniform kernel and baseline 0: k midpoints for every i and every S without i."""
    n, phi = len(x), np.zeros(len(x))
    at = (np.arange(k) + 0.5) / k
    for i in range(n):
        sets = without(n, i)
        for s in sets:
            moving = np.array([j == i or j in s for j in range(n)])
            _, gradient = model.value_and_gradient(torch.from_numpy(at[:, None] * moving * x))
            weight = 1 / (n * sum(len(t) == len(s) for t in sets))
            phi[i] += weight * x[i] * float(leaves(gradient)[0][:, i].mean())
    return phi


def _exact() -> list[ClaimRow]:
    literal, shared, apart = [], [], 0.0
    for n in (3, 4, 5):
        pairwise, shared_rays, x = _model(n), _model(n), point(0, n)
        by_pairs = definition_1(pairwise, x, _K)
        options = {"plan": "exhaustive", "budget": None, "kernel": Uniform(), "coalition_values": False}
        explanation = explain(shared_rays, x, quadrature="midpoint", n_nodes=_K, **options)  # type: ignore[call-overload]
        literal.append(pairwise.n_gradients)
        shared.append(shared_rays.n_gradients)
        apart = max(apart, float(np.abs(by_pairs - explanation.values).max()))
    return [
        equal(
            "GRALIS exact, pair by pair: n 2^(n-1) k, n = 3, 4, 5",
            [n * 2 ** (n - 1) * _K for n in (3, 4, 5)],
            literal,
            _TABLE,
        ),
        equal(
            "GRALIS exact, one ray for all its members: (2^n - 1) k",
            [(2**n - 1) * _K for n in (3, 4, 5)],
            shared,
            _TABLE,
        ),
        vanishes("both give the same phi", apart, _TABLE),
    ]


def _sampled() -> list[ClaimRow]:
    x, model, ends = point(0, _N), _model(), _model(6)
    plan = plans.permutation(n_permutations=_M)
    explain(model, x, plan=plan, n_nodes=_K, budget=None, batch_size=_N * _K, coalition_values=False)
    explain(ends, point(0, 6), plan="endpoint", kernel=Uniform(), budget=4 * 6 + 2)
    return [
        equal("GRALIS-MC, m = 6, n = 4, k = 3: m n k gradients", _M * _N * _K, model.n_gradients, _TABLE),
        equal("GRALIS-MC in batches of one permutation: m backward calls", _M, model.n_backward_calls, "Prop. c1"),
        at_most("endpoint form, m = 4, n = 6: m n + 2 forwards at most", 26, ends.n_forwards, "C1"),
        equal("endpoint form: gradients", 0, ends.n_gradients, "C1"),
    ]


def _peers() -> list[ClaimRow]:
    x = point(0, _N)
    ig, lime, shap = _model(), _model(), _model()
    canonical.integrated_gradients(ig, x, n_nodes=_K)
    design = np.concatenate([np.zeros((1, _N), dtype=bool), all_masks(_N)[::2], np.ones((1, _N), dtype=bool)])
    n_design = len(np.unique(design, axis=0))
    canonical.lime(lime, x, masks=design)
    canonical.shap(shap, x)
    passes: list[str] = []

    def head(activation: Tensor) -> Tensor:
        passes.append("forward")
        if activation.requires_grad:
            activation.register_hook(lambda gradient: passes.append("backward"))  # type: ignore[no-untyped-call]
        return (activation**2).flatten(1).sum(1)

    net = conv_net(0, head)
    canonical.gradcam_lin(net, image(0), layer=net[1])
    return [
        equal("IG, k = 3: forwards, gradients", (0, _K), ig.counts, _TABLE),
        equal(f"LIME, T = {n_design} perturbations: forwards, gradients", (n_design, 0), lime.counts, _TABLE),
        equal("SHAP, all coalitions: 2^n forwards, no gradient", (2**_N, 0), shap.counts, _TABLE),
        equal("GradCAM: one forward, one backward", ["forward", "backward"], passes, _TABLE),
    ]


def _reuse() -> list[ClaimRow]:
    model = _model()
    explanation = explain(model, point(0, _N), plan="exhaustive", budget=None, n_nodes=_K)
    before = model.counts
    for kernel in (Uniform(), Gaussian(0.3), SizeKernel(lambda s: 1 + s)):
        explanation.with_kernel(kernel)
    kernels = model.counts
    explanation.audit(np.ones(_N))
    audit = model.counts
    for name in ("shapley", "kernel_shap", "lime", "integrated_gradients", "interactions"):
        getattr(explanation, name)()
    repr(explanation.residual)
    return [
        equal("three more kernels on one ledger: further evaluations", 0, sum(kernels) - sum(before), "C3"),
        equal("an audit: further evaluations", 0, sum(audit) - sum(kernels), "C2"),
        equal(
            "Shapley, LIME, IG, interactions, residual: further evaluations", 0, sum(model.counts) - sum(audit), "C3"
        ),
    ]
