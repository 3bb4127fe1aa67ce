"""The weights that combine levels with the least variance: minimise lambda' Sigma lambda subject to sum lambda = 1.

inverse-variance  lambda_l proportional to 1 / Sigma_ll, which is the minimum if levels are independent
covariance        lambda proportional to Sigma^-1 1, which is the minimum; weights may be negative
nonnegative       the minimum subject to lambda >= 0, a quadratic program solved by an active-set method
uniform           1 / L

Except with "uniform", levels without variance share all the weight equally. That is right for levels that estimate one
quantity. Levels that answer different questions differ by more than their errors: `between_levels` estimates by how
much, and `multiscale` adds it to the variance of each.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import nnls

from gralis.arrays import Array
from gralis.errors import bad

__all__ = ["between_levels", "minimum_variance"]

METHODS = ("inverse-variance", "covariance", "nonnegative", "uniform")
_RIDGE = 1e-10
_BEYOND = 4.0  # two levels that agree on a feature exceed it in one case of a hundred


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


def between_levels(values: object, departures: object, numerical: object = 0.0) -> float:
    """tau^2 = max(0, (Q - E - 4 S) / (L - 1)), Q = mean over features of sum_l (y_l - mean y)^2: the variance between.

    The model is y_l = theta + b_l + e_l for L levels: a common value theta, deviations b_l with variance tau^2 that are
    independent between levels, and errors e_l with covariance Sigma. With C = I - 11'/L, the expectation of
    Q = y' C y is (L - 1) tau^2 + E, E = tr(C Sigma). Solving for tau^2 is the method of moments of DerSimonian and
    Laird with equal weights, which stays defined where a level has no error. S is the standard deviation that the
    errors alone give Q, sqrt(2 tr((C Sigma)^2)). It is subtracted four times, so that levels which differ by no more
    than their errors explain keep tau^2 = 0, and with it the weights that are best for one common value.

    It assumes that the levels deviate to the same extent and without correlation. With few levels and features it rests
    on few differences, so it is rough.

    Parameters
    ----------
    values : array of shape (n_levels, n_features)
        The values of each level. The features share one tau^2, the mean over them.
    departures : array of shape (n_levels, n_replicates, n_features)
        The departures of the replicates from the values, which hold the covariance of the errors between levels and
        features.
    numerical : array of shape (n_levels, n_features) or float, default=0.0
        The quadrature errors of the values, whose squares count in E.

    Returns
    -------
    float
        tau^2.

    Examples
    --------
    >>> between_levels([[1.0], [3.0]], np.zeros((2, 5, 1)))  # two levels without errors
    2.0
    """
    y, d = np.asarray(values, dtype=np.float64), np.asarray(departures, dtype=np.float64)
    if y.ndim != 2 or d.ndim != 3 or y.shape != (d.shape[0], d.shape[2]):
        allowed = "of shape (n_levels, n_replicates, n_features), with values (n_levels, n_features)"
        raise bad("departures", "between_levels", allowed, f"{d.shape} with values {y.shape}")
    n_levels, n, n_features = map(int, d.shape)
    if n_levels < 2:
        return 0.0
    apart = np.concatenate(d - d.mean(0), axis=1)  # (n_replicates, n_levels * n_features): C applied to the errors
    gram = apart @ apart.T / (n * max(n - 1, 1))
    fixed = n_levels * float(np.mean(np.asarray(numerical, dtype=np.float64) ** 2)) * (1 - 1 / n_levels)
    expected = float(np.trace(gram)) / n_features + fixed
    spread = float(np.sqrt(2 * (gram**2).sum())) / n_features
    squares = float(((y - y.mean(0)) ** 2).sum(0).mean())
    return max(0.0, (squares - expected - _BEYOND * spread) / (n_levels - 1))


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
