"""beta = argmin sum_T w(T) (v(T) - b0 - sum over U in T of beta(U))^2 + ridge |beta|^2: fits of coalition values.

KernelSHAP   single features, Shapley's kernel, the sum constrained to v(F)
Faith-Shap   the same with all U of up to `order` features
LIME         single features and an intercept, an exponential kernel around x, a ridge penalty

A sampled row stands for `count` coalitions, and its weight is multiplied by this number. The fits therefore do not
depend on the law by which the plan drew the rows. Errors come from leaving out one replicate at a time (jackknife).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from gralis.arrays import Array
from gralis.errors import GralisError
from gralis.estimators import Estimate
from gralis.explainers.coalition_values import CoalitionValues, log_class_size
from gralis.explainers.sampled import contained
from gralis.explainers.transform import Coalition

#: Takes the logarithm of how many coalitions each row stands for, and returns the fitted coefficients.
Fit = Callable[[Array], Array]


def faith_estimate(game: CoalitionValues, terms: Sequence[Coalition], method: str) -> Estimate:
    """Weighted least squares with Shapley's kernel. The fit is exact at the coalition of all features."""
    n, size = game.n_features, game.masks.sum(1)
    design = contained(game.masks, terms)
    everyone, t = size == n, np.arange(1, n)
    total = float(np.average(game.value[everyone], weights=np.exp(game.log_count[everyone])))
    log_kernel = np.full(n + 1, -np.inf)
    log_kernel[1:n] = np.log((n - 1) / (t * (n - t))) - log_class_size(n)[1:n]

    def fit(log_count: Array) -> Array:
        weight = np.exp(log_kernel[size] + log_count)
        return _constrained((design * weight[:, None]).T @ design, design.T @ (weight * game.value), total)

    return _jackknifed(game, fit, len(terms), method)


def moebius_estimate(game: CoalitionValues, sets: Sequence[Coalition]) -> tuple[Estimate, int]:
    """Moebius coefficients, and how many of them are exact.

    A coefficient is exact if v of all subsets was evaluated. The others come from the best fit. The fit absorbs higher
    orders, and this error is common to all replicates, so they cannot show it. The exact coefficients can: the errors
    of the others are widened by how far the fit is off there. With several baselines, or with values from rays, no row
    equals v, so all coefficients come from the fit.
    """
    fitted = faith_estimate(game, sets, "Moebius")
    exact = _exact_moebius(game, sets)
    known = np.isfinite(exact)
    if not known.any():
        return fitted, 0
    off = fitted.values[known] - exact[known]
    stated = float((fitted.stderr[known] ** 2).sum())
    wide = fitted.widened(float(np.sqrt(max(1.0, (off**2).sum() / stated))) if stated > 0 else 1.0)
    departures = np.where(known, 0.0, wide.departures)
    return Estimate(np.where(known, exact, fitted.values), departures, "Moebius"), int(known.sum())


def _exact_moebius(game: CoalitionValues, sets: Sequence[Coalition]) -> Array:
    """m(A) by inclusion and exclusion if the rows have v of every subset of A, otherwise NaN."""
    coefficients = np.full(len(sets), np.nan)
    several = game.masks.all(1).sum() > 1  # there is a full coalition for each baseline
    if several or game.from_rays:
        return coefficients
    small = game.masks.sum(1) <= max(map(len, sets))
    value: dict[Coalition, float] = {(): 0.0}
    for mask, v in zip(game.masks[small], game.value[small], strict=True):
        value[tuple(int(j) for j in np.flatnonzero(mask))] = v
    for row, members in enumerate(sets):
        subsets = [s for size in range(len(members) + 1) for s in itertools.combinations(members, size)]
        if all(s in value for s in subsets):
            coefficients[row] = sum((-1) ** (len(members) - len(s)) * value[s] for s in subsets)
    return coefficients


def lime_weights(game: CoalitionValues, sigma: float, log_count: Array) -> Array:
    """sqrt(exp(-D^2 / sigma^2)), D = 1 - cos(z, 1) = 1 - sqrt(t / n), times how many coalitions a row stands for.

    The counts are scaled to sum to the number of different coalitions in the rows, whether these are all 2^n or fewer.
    A ridge then has the same meaning in both cases.
    """
    distance = 1 - np.sqrt(game.masks.sum(1) / game.n_features)
    log_kernel = -(distance**2) / sigma**2 / 2
    return np.asarray(game.n_distinct * np.exp(log_kernel + log_count - logsumexp(log_count)))


def lime_fit(
    game: CoalitionValues, sigma: float, ridge: float, support: NDArray[np.int64]
) -> tuple[Estimate, float, float]:
    """Coefficients on the support (zero elsewhere), the intercept, and the weighted R2."""
    n = game.n_features
    design = np.concatenate([np.ones((len(game.value), 1)), game.masks[:, support]], axis=1)
    penalty = ridge * np.concatenate([[0.0], np.ones(len(support))])

    def fit(log_count: Array) -> Array:
        w = lime_weights(game, sigma, log_count)
        normal = (design * w[:, None]).T @ design + np.diag(penalty)
        full = np.zeros(n + 1)
        full[np.concatenate([[0], support + 1])] = np.linalg.lstsq(normal, design.T @ (w * game.value), rcond=None)[0]
        return full

    fitted_all = _jackknifed(game, fit, n + 1, "LIME")
    fitted = design @ fitted_all.values[np.concatenate([[0], support + 1])]
    weight = lime_weights(game, sigma, game.together())
    mean = np.average(game.value, weights=weight)
    left, whole = weight @ (game.value - fitted) ** 2, weight @ (game.value - mean) ** 2
    r2 = float(1 - left / whole) if whole > 0 else float("nan")
    carriers = None if fitted_all.carriers is None else fitted_all.carriers[1:]
    features = Estimate(fitted_all.values[1:], fitted_all.departures[:, 1:], "LIME", fitted_all.exact, carriers)
    return features, float(fitted_all.values[0]), r2


def lasso_support(game: CoalitionValues, sigma: float, k: int) -> NDArray[np.int64]:
    """The first k features to enter the lasso path of the weighted fit, by coordinate descent."""
    w = lime_weights(game, sigma, game.together())
    w /= w.sum()
    z = game.masks - w @ game.masks
    y = game.value - w @ game.value
    gram, cross = (z * w[:, None]).T @ z, z.T @ (w * y)
    beta, scale = np.zeros(game.n_features), np.diag(gram) + 1e-300
    for penalty in np.geomspace(np.abs(cross).max() + 1e-300, np.abs(cross).max() * 1e-6 + 1e-300, 200):
        for _ in range(200):
            before = beta.copy()
            for j in range(len(beta)):
                free = cross[j] - gram[j] @ beta + gram[j, j] * beta[j]
                beta[j] = np.sign(free) * max(abs(free) - penalty, 0.0) / scale[j]
            if np.abs(beta - before).max() <= 1e-9 * (np.abs(beta).max() + 1e-300):
                break
        if (beta != 0).sum() >= k:
            break
    return np.sort(np.argsort(-np.abs(beta), kind="stable")[:k])


def _constrained(normal: Array, right: Array, total: float) -> Array:
    """The minimiser among the vectors whose entries sum to `total`."""
    size = len(right)
    scale = np.trace(normal) / size or 1.0
    system = np.zeros((size + 1, size + 1))
    system[:size, :size] = normal / scale
    system[size, :size] = system[:size, size] = 1.0
    return np.asarray(np.linalg.lstsq(system, np.append(right / scale, total), rcond=1e-12)[0][:size])


def _jackknifed(game: CoalitionValues, fit: Fit, n_values: int, method: str) -> Estimate:
    """The fit to all rows. Its departures come from leaving out each replicate in turn."""
    together = fit(game.together())
    if game.complete:
        return Estimate(together, np.zeros((1, n_values)), method, exact=True)
    if game.n_replicates < 2:
        raise GralisError("Errors need at least two replicates of the plan; explain with replicates=2 or more.")
    without = np.stack([fit(game.together(without=r)) for r in range(game.n_replicates)])
    departures = (game.n_replicates - 1) * (without.mean(0) - without)
    return Estimate(together, departures, method).unknown_where(np.full(n_values, game.silent))
