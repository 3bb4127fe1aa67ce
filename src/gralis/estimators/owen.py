"""The covariance of Shapley values with the rows, and among themselves, when the game is a Gaussian process.

Owen's formula says that Sh_i(f) is the integral over u in [-1, 1] of the derivative of E f in z_i, where all other z_j
are independent with mean u. For f(z) = e^P with P = sum_j b_j z_j z'_j the expectation is the product
prod_j cosh b_j (1 + u z'_j tanh b_j), so the integrand is a polynomial in u. For f(z) = P^3 the integrand is a
polynomial of degree two. The even part of a game contributes nothing to its Shapley values.
"""

from __future__ import annotations

import numpy as np
from scipy.special import betaln, gammaln

from gralis.arrays import Array
from gralis.estimators.process import Process, Rows

_MOST_NODES = 24  # with this many Gauss-Legendre nodes the integral is exact to rounding


def of_rows(process: Process, rows: Rows, baseline_weights: Array) -> Array:
    """Cov(Sh_i, v_r) between the Shapley values of the mean game and the values of the rows, (n_features, n_rows)."""
    z, b = rows.signs, process.relevance
    n, s = len(b), b.sum()
    x, p2 = b * z, (b**2).sum()
    rest = x.sum(1, keepdims=True) - x  # P without the term of feature i
    covariance = (2 * process.linear / n) * z
    covariance += (2 * process.cubic / s**3) * x * (2 * (p2 - b**2) + rest**2 + b**2)
    tanh, scale = np.tanh(b), _scale(b)
    for node, weight in zip(*_nodes(n), strict=True):
        logs = np.log1p(node * tanh * z)
        covariance += (4 * process.odd * scale * weight) * tanh * z * np.exp(logs.sum(1, keepdims=True) - logs)
    u = rows.balance
    sizes = _balances(n)
    effects = process.effects(u, sizes) + process.effects(u, -sizes)
    covariance += (effects @ _falling(n))[:, None] * (z - u[:, None])
    covariance += (process.curve / n) * (process.near(u, np.ones(1)) - process.near(u, -np.ones(1)))
    own = process.noise(u)[:, None] * coefficients(z) * (2 if rows.paired else 1)
    if rows.shares is not None:
        share = (rows.shares @ baseline_weights)[:, None]
        covariance *= 1 + process.apart * share
        own *= share
    return np.asarray((covariance + own).T)


def spread(process: Process, baseline_weights: Array, paired: bool) -> Array:
    """Cov(Sh_i, Sh_j) of the mean game before any row is seen, (n_features, n_features)."""
    b = process.relevance
    n, s, p2 = len(b), b.sum(), (b**2).sum()
    cubic = process.cubic / s**3
    covariance = np.diag(4 * process.linear / n + 4 * cubic * b * (3 * p2 - 2 * b**2))
    triples = np.outer(b, b) * (s - b[:, None] - b)  # a Walsh function of three features has Sh_i = 2/3 in each
    np.fill_diagonal(triples, b * ((s - b) ** 2 - p2 + b**2) / 2)
    covariance += (8 / 3) * cubic * triples
    node, weight = _nodes(n)
    u, w = np.outer(node, node).ravel(), np.outer(weight, weight).ravel()
    tanh = np.tanh(b)
    logs = np.log1p(u[:, None] * tanh)
    product, each = np.exp(logs.sum(1)), tanh * np.exp(-logs)
    many = (each * (w * u * product)[:, None]).T @ each
    np.fill_diagonal(many, (w * product) @ each)
    covariance += 8 * process.odd * _scale(b) * many
    sizes, falling = _balances(n), _falling(n)
    effects = process.effects(sizes, sizes) + process.effects(sizes, -sizes)
    covariance += 2 * (falling @ effects @ falling) * (n * np.eye(n) - 1)
    covariance += 2 * process.curve / n**2 * (1 - np.exp(-2 / process.reach**2))
    squares = baseline_weights @ baseline_weights
    own = own_spread(process.noise(_balances(n))) * (2 if paired else 1) * squares
    return np.asarray(covariance * (1 + process.apart * squares) + own)


def coefficients(signs: Array) -> Array:
    """The weight of v(T) in Sh_i: B(t, n - t + 1) for members, - B(t + 1, n - t) for the others; signs (n_rows, n)."""
    n = signs.shape[1]
    t = (signs > 0).sum(1)
    inside = np.exp(betaln(np.maximum(t, 1), n - t + 1.0))
    outside = np.exp(betaln(t + 1.0, np.maximum(n - t, 1)))
    return np.asarray(np.where(signs > 0, inside[:, None], -outside[:, None]))


def own_spread(noise: Array) -> Array:
    """sum over all T of noise(|T|) c_i(T) c_j(T) with c from `coefficients`, (n, n); noise of the sizes 0 .. n.

    C(n, t) B(t, n - t + 1) = 1 / t and C(n, t) B(t + 1, n - t) = 1 / (n - t), so the binomials cancel except for one
    factor 1 / C(n, t).
    """
    n = len(noise) - 1
    t = np.arange(n + 1.0)
    one_of = noise * np.exp(gammaln(t + 1) + gammaln(n - t + 1) - gammaln(n + 1)) / n  # noise / (n C(n, t))
    inside = np.where(t > 0, one_of / np.maximum(t, 1), 0.0)
    outside = np.where(t < n, one_of / np.maximum(n - t, 1), 0.0)
    both = (t - 1) * inside + (n - t - 1) * outside - np.where((t > 0) & (t < n), 2 * one_of, 0.0)
    covariance = np.full((n, n), both.sum() / max(n - 1, 1))
    np.fill_diagonal(covariance, (inside + outside).sum())
    return covariance


def _balances(n: int) -> Array:
    """2 t / n - 1 for the sizes t = 0 .. n."""
    return np.linspace(-1.0, 1.0, n + 1)


def _falling(n: int) -> Array:
    """2 (n - t) / (n^2 (n - 1)) for t = 1 .. n: the weight in Sh_i of an effect z_i - u that belongs to the size t."""
    t = np.arange(n + 1.0)
    return np.where(t > 0, 2 * (n - t) / (n**2 * max(n - 1, 1)), 0.0)


def _nodes(n: int) -> tuple[Array, Array]:
    """Gauss-Legendre nodes on [-1, 1] and weights that sum to one; exact for the polynomials of n features."""
    node, weight = np.polynomial.legendre.leggauss(min(n // 2 + 1, _MOST_NODES))
    return node, weight / 2


def _scale(b: Array) -> float:
    """prod_j cosh b_j e^(- b_j)."""
    return float(np.exp((np.log1p(np.exp(-2 * b)) - np.log(2)).sum()))
