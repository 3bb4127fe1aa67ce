"""The weights that combine levels with the least variance: minimise lambda' Sigma lambda subject to sum lambda = 1.

inverse-variance  lambda_l proportional to 1 / Sigma_ll, which is the minimum if levels are independent
covariance        lambda proportional to Sigma^-1 1, which is the minimum; weights may be negative
nonnegative       the minimum subject to lambda >= 0, a quadratic program solved by an active-set method
uniform           1 / L

Except with "uniform", levels without variance share all the weight equally.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import nnls

from gralis.arrays import Array
from gralis.errors import bad

__all__ = ["minimum_variance"]

METHODS = ("inverse-variance", "covariance", "nonnegative", "uniform")
_RIDGE = 1e-10


def minimum_variance(covariance: object, method: str = "covariance") -> Array:
    """lambda that minimises lambda' Sigma lambda subject to sum lambda = 1: the weights of levels with this covariance.

    Parameters
    ----------
    covariance : array
        The covariance matrix Sigma of the levels, or a vector with the variances of independent levels.
    method : {"inverse-variance", "covariance", "nonnegative", "uniform"}, default="covariance"
        "covariance" is the minimum, with weights that may be negative. "nonnegative" is the minimum among weights >= 0,
        "inverse-variance" the minimum for independent levels, and "uniform" gives every level the same weight.

    Returns
    -------
    array of shape (n_levels,)
        The weights, which sum to one.

    Examples
    --------
    >>> minimum_variance([1.0, 4.0, 0.25], "inverse-variance") * 21
    array([ 4.,  1., 16.])
    """
    sigma = _checked_covariance(covariance)
    if method not in METHODS:
        raise bad(
            "weights", "multiscale", f"one of {', '.join(map(repr, METHODS))}, or one number per level", repr(method)
        )
    n = len(sigma)
    variances = np.diag(sigma)
    certain = variances == 0
    if method == "uniform":
        return np.full(n, 1 / n)
    if certain.any():
        return np.asarray(certain / certain.sum())
    if method == "inverse-variance":
        raw = 1 / variances
        return np.asarray(raw / raw.sum())
    scale = 1 / np.sqrt(variances)  # correlations are better conditioned than covariances
    correlation = sigma * scale[:, None] * scale + _RIDGE * np.eye(n)
    root = cholesky(correlation)  # correlation = root' root
    right = solve_triangular(root, scale, trans="T")  # root' right = scale
    # With mu = lambda / scale, nnls minimises mu' C mu / 2 - scale' mu over mu >= 0, which gives mu up to a factor.
    best = solve_triangular(root, right) if method == "covariance" else nnls(root, right)[0]
    raw = scale * best
    return np.asarray(raw / raw.sum())


def checked_weights(weights: Sequence[float], n_levels: int) -> Array:
    """The user's weights as an array."""
    numbers = np.asarray(weights, dtype=np.float64)
    if numbers.shape != (n_levels,) or not np.isfinite(numbers).all() or not np.isclose(numbers.sum(), 1.0):
        raise bad("weights", "multiscale", f"{n_levels} numbers, one per level, that sum to 1", repr(list(weights)))
    return numbers


def _checked_covariance(covariance: object) -> Array:
    """The covariance matrix as a symmetric array."""
    try:
        sigma = np.array(covariance, dtype=np.float64)
    except (TypeError, ValueError):
        sigma = np.full((1, 1), np.nan)
    sigma = np.diag(sigma) if sigma.ndim == 1 else sigma
    symmetric = (
        sigma.ndim == 2 and len(set(sigma.shape)) == 1 and np.isfinite(sigma).all() and np.allclose(sigma, sigma.T)
    )
    if not symmetric or not len(sigma):
        raise bad("covariance", "minimum_variance", "variances, or a symmetric matrix, all finite", repr(covariance))
    if (np.diag(sigma) < 0).any():
        raise bad("covariance", "minimum_variance", "variances >= 0", f"{np.diag(sigma).min():g}")
    if np.linalg.eigvalsh(sigma).min() < -1e-8 * max(np.trace(sigma), 1e-300):
        raise bad("covariance", "minimum_variance", "a covariance matrix", "one with a negative eigenvalue")
    return np.asarray((sigma + sigma.T) / 2)
