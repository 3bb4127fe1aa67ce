"""Theorem 1 on random networks: each triple equals its method and is linear in F; standard GradCAM is not linear."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import permutations
from typing import cast

import numpy as np
import torch

from gralis import canonical
from gralis.api.explain import explain
from gralis.arrays import Array
from gralis.canonical import Triple
from gralis.kernels import Gaussian, SizeKernel, Uniform
from gralis.laws import all_masks
from gralis.paper.claim_row import ClaimRow, collect, equal, exceeds, near, vanishes
from gralis.paper.networks import Function, conv_net, image, network, point

_N, _MODELS, _NODES = 4, 6, 8
_SIGMA, _RIDGE = 0.25, 1.0
_SUPPORT = [0, 2]
_T1 = "Thm. canonical"

_TRIPLES: dict[str, Callable[[Function, Array], Triple]] = {
    "SHAP": canonical.shap,
    "LIME, ridge": lambda f, x: canonical.lime(f, x, ridge=_RIDGE, sigma=_SIGMA),
    "LIME, 2 features": lambda f, x: canonical.lime(f, x, ridge=_RIDGE, sigma=_SIGMA, support=_SUPPORT),
    "IG": lambda f, x: canonical.integrated_gradients(f, x, n_nodes=_NODES),
    "GRALIS": lambda f, x: canonical.gralis(f, x, n_nodes=_NODES),
}


def rows() -> list[ClaimRow]:
    return collect(_methods, _weights, _unique, _linear, _map)


def _methods() -> list[ClaimRow]:
    direct: dict[str, Callable[[Function, Array], Array]] = {
        "SHAP": _shapley,
        "LIME, ridge": lambda f, x: _ridge(f, x, list(range(_N))),
        "LIME, 2 features": lambda f, x: _ridge(f, x, _SUPPORT),
        "IG": _midpoints,
        "GRALIS": lambda f, x: explain(f, x, plan="exhaustive", budget=None, n_nodes=_NODES).values,
    }
    pairs = [(network(seed, _N), point(seed, _N)) for seed in range(_MODELS)]
    claims = []
    for name, triple in _TRIPLES.items():
        apart = _largest(triple(f, x).attribution() - direct[name](f, x) for f, x in pairs)
        claims.append(vanishes(f"{name}: triple against the method", apart, _T1, 1e-10))
    apart = _largest(
        canonical.gradcam_lin(net, image(seed), layer=net[1]).attribution() - _gradcam_lin(net, image(seed))
        for seed, net in ((seed, conv_net(seed)) for seed in range(_MODELS))
    )
    claims.append(vanishes("GradCAM-lin: triple against the method", apart, _T1, 1e-10))
    return claims


def _weights() -> list[ClaimRow]:
    f, x, net = network(0, _N), point(0, _N), conv_net(0)
    totals = {name: triple(f, x).total_weight for name, triple in _TRIPLES.items()}
    cam = canonical.gradcam_lin(net, image(0), layer=net[1])
    return [
        near("SHAP: weights sum to one", np.ones(_N), totals["SHAP"], "Lemma shapley-weight"),
        near("GRALIS: weights sum to one", np.ones(_N), totals["GRALIS"], "Def. explicit"),
        near("IG: weights sum to x_i - x'_i, of either sign", x, totals["IG"], "Rem. weak-strong"),
        near("GradCAM-lin: 1 / Z sums to the 2 channels, not to one", np.full(9, 2.0), cam.total_weight, _T1),
    ]


def _unique() -> list[ClaimRow]:
    """The game that is 1 on S u i only has the marginal 1 at S and 0 elsewhere, so its attribution is w(S)."""
    recovered, weights = [], canonical.shap(network(0, _N), point(0, _N))
    sets = [frozenset(s) for s in cast("tuple[tuple[int, ...], ...]", weights.index[0])]
    for s in sets:
        corner = s | {0}
        v = {t: float(t == corner) for t in _values(network(0, _N), point(0, _N))}
        recovered.append(_of_game(v)[0])
    return [near("SHAP: its weights, recovered from 8 games", weights.weights[0], recovered, _T1)]


def _linear() -> list[ClaimRow]:
    claims = []
    f, g, x = network(10, _N), network(11, _N), point(10, _N)
    for name, triple in _TRIPLES.items():
        both, of_f, of_g = (triple(h, x).attribution() for h in (lambda z: f(z) - 2 * g(z), f, g))
        claims.append(vanishes(f"{name}: linear in F", float(np.abs(both - of_f + 2 * of_g).max()), _T1))
    nets = [(conv_net(seed), image(seed)) for seed in range(_MODELS)]
    lin, opposite = (
        [canonical.gradcam_lin(net, x, layer=net[1], target=sign).attribution() for net, x in nets]
        for sign in (lambda y: y, lambda y: -y)
    )
    both_signs = _largest(a + b for a, b in zip(lin, opposite, strict=True))
    claims.append(vanishes("GradCAM-lin: linear in y", both_signs, _T1))
    cam = [canonical.gradcam(net, x, layer=net[1]) for net, x in nets]
    minus = [canonical.gradcam(net, x, layer=net[1], target=lambda y: -y) for net, x in nets]
    broken = _largest(a + b for a, b in zip(cam, minus, strict=True))
    agree = [bool(((a == b) == (b >= 0)).all()) for a, b in zip(cam, lin, strict=True)]
    return [
        *claims,
        exceeds("standard GradCAM of -y is not minus that of y", 0.0, broken, "Rem. relu_nonlinear"),
        equal("GradCAM = GradCAM-lin exactly where that is >= 0", True, all(agree), "Rem. relu_nonlinear"),
    ]


def _map() -> list[ClaimRow]:
    """The arrows of the paper's correspondence map: two of them are equalities, the others are not."""
    f, x = network(20, _N), point(20, _N)
    explanation = explain(f, x, plan="exhaustive", budget=None, kernel=Uniform(), n_nodes=_NODES, quadrature="midpoint")
    full = SizeKernel(lambda s: float(s == _N - 1))
    ends = explain(f, x, plan="endpoint", budget=None, kernel=Uniform()).values
    shapley, ig = _shapley(f, x), _midpoints(f, x)
    limes = [canonical.lime(f, x, ridge=ridge, sigma=s).attribution() for ridge in (0.0, 1.0) for s in (0.1, 0.25, 10)]
    ours = [explanation.with_kernel(kernel).values for kernel in (full, Gaussian(0.01), Uniform())]
    net, picture = conv_net(20), image(20)
    activation = net[1](net[0](picture[None]))[0]
    one_node = canonical.integrated_gradients(net[2], activation, quadrature="riemann", n_nodes=1).attribution()
    cam = _gradcam_lin(net, picture)
    least = min(float(np.abs(a - b).max()) for a in ours for b in limes)
    source = "Fig. hierarchy"
    return [
        vanishes("all weight on F without i: GRALIS is IG", _largest([ours[0] - ig]), source),
        vanishes("endpoint form, uniform kernel: Shapley", _largest([ends - shapley]), source),
        exceeds("uniform kernel: not Shapley", 1e-3, _largest([explanation.values - shapley]), "Rem. kernel-limits"),
        exceeds("no limit of the kernel is LIME (nearest of 18 pairs)", 1e-3, least, source),
        exceeds("one layer, no path: not GradCAM-lin", 1e-3, _largest([one_node.reshape(2, 9).sum(0) - cam]), source),
    ]


# ---- the methods, each computed by its definition


def _values(f: Function, x: Array) -> dict[frozenset[int], float]:
    masks = np.concatenate([np.zeros((1, _N), dtype=bool), all_masks(_N)])
    values = f(torch.from_numpy(masks * x)).numpy()
    return {frozenset(np.flatnonzero(row).tolist()): float(value) for row, value in zip(masks, values, strict=True)}


def _shapley(f: Function, x: Array) -> Array:
    return _of_game(_values(f, x))


def _of_game(v: dict[frozenset[int], float]) -> Array:
    """The mean marginal contribution over all n! orders."""
    total, orders = np.zeros(_N), list(permutations(range(_N)))
    for order in orders:
        before: frozenset[int] = frozenset()
        for i in order:
            total[i] += v[before | {i}] - v[before]
            before |= {i}
    return total / len(orders)


def _ridge(f: Function, x: Array, kept: list[int]) -> Array:
    """Least squares on weighted rows, with one more row per slope for the penalty."""
    v = _values(f, x)
    rows = np.array([[1.0, *(float(i in s) for i in kept)] for s in v])
    root = np.array([np.exp(-((1 - np.sqrt(len(s) / _N)) ** 2) / (4 * _SIGMA**2)) for s in v])
    penalty = np.sqrt(_RIDGE) * np.eye(len(kept) + 1)[1:]
    right = np.append(np.array(list(v.values())) * root, np.zeros(len(kept)))
    slopes = np.zeros(_N)
    slopes[kept] = np.linalg.lstsq(np.concatenate([rows * root[:, None], penalty]), right, rcond=None)[0][1:]
    return slopes


def _midpoints(f: Function, x: Array) -> Array:
    """x times the mean gradient at the midpoints of the straight path from 0."""
    z = torch.from_numpy((np.arange(_NODES) + 0.5)[:, None] / _NODES * x).requires_grad_()
    (gradient,) = torch.autograd.grad(f(z).sum(), z)
    return np.asarray(x * gradient.numpy().mean(0))


def _gradcam_lin(net: torch.nn.Sequential, x: torch.Tensor) -> Array:
    """sum_k alpha_k A^k with alpha_k the mean of dy/dA^k."""
    activation = net[1](net[0](x[None])).detach().requires_grad_()
    (gradient,) = torch.autograd.grad(net[2](activation).sum(), activation)
    return np.asarray((gradient.mean((2, 3), keepdim=True) * activation.detach()).sum(1).numpy().ravel())


def _largest(differences: Iterable[Array]) -> float:
    return max(float(np.abs(difference).max()) for difference in differences)
