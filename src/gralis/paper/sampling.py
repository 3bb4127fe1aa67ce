"""Theorem 3 and its corollaries on F = sin(z_1 + z_2 + z_3) + z_1 z_2, whose constants are all known.

Third derivatives are at most 1, second derivatives at most 2, and |d_i dF/dx_i| <= |d_i| (1 + |d_j|) on the box.
"""

from __future__ import annotations

from itertools import permutations

import numpy as np
import torch
from torch import Tensor

from gralis.api.explain import explain
from gralis.arrays import Array
from gralis.certificates import numerator_bound, ratio_bound
from gralis.paper.claim_row import ClaimRow, arithmetic, at_most, collect, exceeds, near, vanishes

_X = np.array([0.8, -0.6, 0.5])
_SIGMA = 0.7
_THIRD, _SECOND = 1.0, 2.0
_N = 3
_ORDERS = np.array(list(permutations(range(_N))))
_RUNS, _M, _K, _DELTA = 4000, 20, 4, 0.1


def rows() -> list[ClaimRow]:
    return collect(_quadrature, _rules, _bounds, _ratio)


def gradient(z: Array) -> Array:
    """dF/dz at every row."""
    common = np.cos(z.sum(-1))
    return np.stack([common + z[..., 1], common + z[..., 0], common], axis=-1)


def conditioned(nodes: Array, weights: Array) -> Array:
    """IG_i(S) by this quadrature rule, one row per binary code of T = S u i; zero for features outside T."""
    masks = (np.arange(2**_N)[:, None] >> np.arange(_N) & 1).astype(np.float64)
    z = nodes[:, None, None] * masks * _X  # (n_nodes, n_coalitions, n)
    return np.asarray(np.einsum("k,kci->ci", weights, gradient(z)) * masks * _X)


def _gauss() -> Array:
    nodes, weights = np.polynomial.legendre.leggauss(30)
    return conditioned((nodes + 1) / 2, weights / 2)


def _midpoint(k: int) -> Array:
    return conditioned((np.arange(k) + 0.5) / k, np.full(k, 1 / k))


@arithmetic
def _quadrature() -> list[ClaimRow]:
    true, distance = _gauss(), np.abs(_X)
    ks = (4, 8, 16, 32)
    middle = [np.abs(_midpoint(k) - true).max(0) for k in ks]
    right = [np.abs(conditioned(np.arange(1, k + 1) / k, np.full(k, 1 / k)) - true).max(0) for k in ks]
    room = max(
        float((error / (distance * distance.sum() ** 2 * _THIRD / (24 * k**2))).max())
        for k, error in zip(ks, middle, strict=True)
    )
    coarse = max(
        float((error / (distance * distance.sum() * _SECOND / (2 * k))).max())
        for k, error in zip(ks, right, strict=True)
    )
    rate, slow = (float(np.log2(errors[2].max() / errors[3].max())) for errors in (middle, right))
    return [
        at_most("midpoint error / its bound, largest over S, i, k", 1.0, room, "Thm. mc"),
        near("order of the midpoint rule: error / 2^p for twice k", 2.0, rate, "Thm. mc", within=0.05),
        at_most("endpoint-rule error / its bound", 1.0, coarse, "Rem. riemann-fallback"),
        near("order of the endpoint rule", 1.0, slow, "Rem. riemann-fallback", within=0.05),
    ]


def _rules() -> list[ClaimRow]:
    """The same orders, measured on the rays of the library: the largest error over all rays, halved nodes to nodes."""

    def model(z: Tensor) -> Tensor:
        return torch.sin(z.sum(1)) + z[:, 0] * z[:, 1]

    def error(rule: str, k: int) -> float:
        run = explain(model, _X, plan="exhaustive", budget=None, quadrature=rule, n_nodes=k, coalition_values=False)
        found = run.ledger.require_rows("the orders")
        codes = found.masks @ (1 << np.arange(_N))
        return float(np.abs(found.rays - _gauss()[codes]).max())

    def order(rule: str) -> float:
        return float(np.log2(error(rule, 16) / error(rule, 32)))

    return [
        near("explain: order of the midpoint rule", 2.0, lambda: order("midpoint"), "Thm. mc", within=0.05),
        near(
            "explain: order of the endpoint rule", 1.0, lambda: order("riemann"), "Rem. riemann-fallback", within=0.05
        ),
        vanishes("explain: 12 Gauss-Legendre nodes, error", lambda: error("gauss-legendre", 12), "Thm. mc"),
    ]


def _per_order(table: Array) -> tuple[Array, Array]:
    """pi(S) IG_i(S) and pi(S) for every order and feature, (n_orders, n)."""
    place = np.argsort(_ORDERS, axis=1)
    before = place[:, None, :] < place[:, :, None]  # [order, i, j]: j comes before i
    weight = np.exp(-(before @ _X**2) / (2 * _SIGMA**2))
    codes = (before | np.eye(_N, dtype=bool)) @ (1 << np.arange(_N))
    return weight * table[codes, np.arange(_N)], weight


def _bounds() -> list[ClaimRow]:
    """Many runs of Algorithm 1: how often the error is larger than each bound."""
    top, bottom = _per_order(_midpoint(_K))
    exact_top, _ = _per_order(_gauss())
    numerator, normaliser = exact_top.mean(0), bottom.mean(0)
    draws = np.random.default_rng(0).integers(len(_ORDERS), size=(_RUNS, _M))
    n_hat, z_hat = top[draws].mean(1), bottom[draws].mean(1)
    distance = np.abs(_X)
    b = distance * np.array([1 + distance[1], 1 + distance[0], 1.0])
    e_quad = distance * distance.sum() ** 2 * _THIRD / (24 * _K**2)
    pi_min, ones = bottom.min(0), np.ones(_N)
    off = np.abs(n_hat / z_hat - numerator / normaliser)
    outside_n = np.abs(n_hat - numerator) > numerator_bound(b, e_quad, _M, _DELTA)
    outside_r = off > ratio_bound(b, ones, pi_min, e_quad, _M, _DELTA)
    joint = ratio_bound(b, ones, pi_min, e_quad, _M, _DELTA / _N)
    total = np.abs((n_hat / z_hat).sum(1) - (numerator / normaliser).sum()) > joint.sum()
    return [
        at_most("numerator outside its bound, share of 4000 runs", _DELTA, float(outside_n.mean(0).max()), "Thm. mc"),
        at_most("ratio outside its bound, share of runs", _DELTA, float(outside_r.mean(0).max()), "Cor. ratio-bound"),
        at_most(
            "any feature outside, share of runs",
            _DELTA,
            float((off > joint).any(1).mean()),
            "Cor. aggregate-completeness",
        ),
        at_most("sum of phi outside, share of runs", _DELTA, float(total.mean()), "Cor. aggregate-completeness"),
        exceeds(
            "aggregate bound / 95% quantile of the true error",
            10.0,
            _slack(joint, n_hat, z_hat),
            "Cor. aggregate-completeness",
        ),
    ]


def _slack(joint: Array, n_hat: Array, z_hat: Array) -> float:
    totals = (n_hat / z_hat).sum(1)
    return float(joint.sum() / np.quantile(np.abs(totals - totals.mean()), 0.95))


@arithmetic
def _ratio() -> list[ClaimRow]:
    top, bottom = _per_order(_gauss())
    phi, flat = top.mean(0) / bottom.mean(0), (top / bottom).mean(0)
    reverse = [int(np.flatnonzero((order[::-1] == _ORDERS).all(1))[0]) for order in _ORDERS]
    pair = (top + top[reverse]) / 2
    covariance = ((top - top.mean(0)) * (top[reverse] - top.mean(0))).mean(0)
    return [
        exceeds(
            "m = 1: mean of the ratio away from phi (self-normalised)",
            1e-3,
            float(np.abs(flat - phi).max()),
            "Rem. ratio-estimator",
        ),
        near(
            "variance of an antithetic pair = (Var + Cov) / 2",
            (top.var(0) + covariance) / 2,
            pair.var(0),
            "Rem. antithetic",
        ),
    ]
