"""Features whose gradient is zero although F changes with them: the model rounds them, or looks them up.

By Lemma A the terms of the ray of T sum to v(T), and c(T) = sum_i ray_i(T) - v(T) is what they miss. If the gradient of
feature i is zero wherever it was taken, and c(T) departs from zero where T contains i, then the model sees i only
through a step, and its value is missing from phi.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gralis.arrays import Array
from gralis.ledger import Ledger

__all__ = ["standing_gradients"]

_ZERO = 1e-12  # relative to the largest gradient
_LEAST_POINTS = 8  # at which another feature has a gradient
_STANDARD_ERRORS = 4.0  # that the missing part of a feature must exceed
_OWN_FIT = 1e-9  # a row that determines its own fit shows no noise
_LEAST_SHARE = 0.01  # of |F(x) - F(x')| that the missing part of a feature must exceed


def standing_gradients(ledger: Ledger, delta: float, names: Sequence[str]) -> tuple[str, ...]:
    """A sentence that names the features whose gradient is zero on every ray although F changes with them.

    The missing part of each such feature is the coefficient of its membership in a least-squares fit of -c(T). A
    feature is named if it exceeds four standard errors and one percent of |F(x) - F(x')|. Nothing is said where all
    gradients vanish together, as they do beside a steep step of all features.

    Parameters
    ----------
    ledger : Ledger
        The evaluated rays, with gradients and coalition values.
    delta : float
        F(x) - F(x').
    names : sequence of str
        The names of the features.

    Returns
    -------
    tuple of str
        Empty if there is no such feature.

    Examples
    --------
    >>> import gralis, torch
    >>> model = lambda z: z[:, 0] ** 2 + 3 * torch.round(z[:, 1])
    >>> explanation = gralis.explain(model, torch.tensor([1.0, 2.0], dtype=torch.float64))
    >>> (sentence,) = standing_gradients(explanation.ledger, explanation.delta, ["age", "city"])
    >>> sentence.partition(" at ")[0]
    'The gradient of city is zero'
    """
    standing = _standing(ledger)
    rows = np.isfinite(ledger.value) & (
        (ledger.nodes_per_ray > 0) | (ledger.masks[:, standing].any(1) & (ledger.sizes == 1))
    )
    if not len(standing) or rows.sum() <= len(standing) or ledger.masks[rows].all():
        return ()  # the ray of all features alone does not tell the features apart
    missing, error = _fit(ledger.masks[rows][:, standing], -ledger.checksum[rows])
    scale = abs(delta) or float(np.abs(ledger.value[rows]).max())
    sure = np.abs(missing) > np.maximum(_STANDARD_ERRORS * error, _LEAST_SHARE * scale)
    if not sure.any():
        return ()
    found = [(names[int(i)], float(part)) for i, part in zip(standing[sure], missing[sure], strict=True)]
    return (_sentence(found, ledger.n_points, scale),)


def _standing(ledger: Ledger) -> NDArray[np.int64]:
    """The features whose gradient is zero at every point, if enough of the points have a gradient at all."""
    size = np.abs(ledger.gradient)
    zero = _ZERO * size.max(initial=0.0)
    if (size.max(1, initial=0.0) > zero).sum() < _LEAST_POINTS:
        return np.zeros(0, dtype=np.int64)
    return np.flatnonzero((size <= zero).all(0))


def _fit(members: NDArray[np.bool_], missing: Array) -> tuple[Array, Array]:
    """The coefficient of every member, and its standard error: the larger of two.

    The first takes all rows to be equally noisy. The second (HC3) takes the noise of every row from what the fit leaves
    there without it: random nodes leave much on rays of many features and nothing on those of a single one.
    """
    table = members.astype(np.float64)
    inverse = np.linalg.pinv(table.T @ table)
    solve = inverse @ table.T
    coefficients = solve @ missing
    left = missing - table @ coefficients
    alike = (left**2).sum() / (len(table) - table.shape[1]) * np.diag(inverse)
    others = 1 - np.einsum("ij,ji->i", table, solve)  # how little a row determines its own fit
    by_row = solve**2 @ np.divide(left, others, out=np.zeros_like(left), where=others > _OWN_FIT) ** 2
    return coefficients, np.sqrt(np.maximum(alike, by_row))


def _sentence(found: Sequence[tuple[str, float]], n_points: int, scale: float) -> str:
    names = [name for name, _ in found]
    parts = ", ".join(f"{part:.3g}" for _, part in found)
    share = ", ".join(f"{abs(part) / scale:.0%}" for _, part in found)
    who, them = (names[0], "it") if len(names) == 1 else (f"{', '.join(names[:-1])} and {names[-1]}", "them")
    return (
        f"The gradient of {who} is zero at all {n_points} evaluated points, but F changes by about {parts} with {them} "
        f"({share} of |F(x) - F(x')|), which is missing from the values: the model rounds {them}, looks {them} up or "
        f"compares {them} with a threshold. Let {them} jump: features.jumping({names!r}), or discrete={names!r} in "
        f"gralis.features.columns."
    )
