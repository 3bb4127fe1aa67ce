"""How far a fixed rule may be off on a ray: nested information in its nodes, and the checksum of Lemma A.

    gauss-legendre   c_j are the Legendre coefficients of the polynomial through the nodes, j < k. The error comes
                     from degrees 2k and more, so the fall of the last coefficients is continued up to degree 2k,
                     less one step for safety.
                     A gradient that is exactly zero at two neighbouring nodes and g at the next one has a kink or a
                     jump between them, in a gap h, that no coefficient shows: h |g| / 4.
    equal weights    (h / 4) sum_k |second difference at k|: it bounds the error of one kink per cell of width h, and is
                     several times the error of the midpoint rule on a smooth ray.

Both look at every feature by itself. The checksum sum_i ray_i - v(T) is the signed sum of the errors of a ray, so it
sees what lies between all nodes; it is charged to every member. If v is known for the coalition of all features only,
the checksum of its ray is charged to the members of the other rays too.
"""

from __future__ import annotations

import numpy as np
from numpy.polynomial.legendre import legvander

from gralis.arrays import Array
from gralis.estimators.full_ray import only_full_is_known
from gralis.ledger import Ledger
from gralis.rays.quadrature import gauss_legendre

__all__ = ["node_errors"]

_HALFWAY = 0.5


def node_errors(ledger: Ledger, rule: str) -> Array:
    """An estimate of |error of ray_i(T)| for every ray and feature, rather too large; NaN where nothing shows it.

    Parameters
    ----------
    ledger : Ledger
        The rays, all of them with fixed nodes.
    rule : str
        The name of the rule that placed the nodes.

    Returns
    -------
    array of shape (n_rays, n_features)
        Zero outside the coalition, and on rays without nodes.
    """
    errors = np.zeros(ledger.masks.shape)
    for n_nodes in np.unique(ledger.nodes_per_ray[ledger.nodes_per_ray > 0]).tolist():
        rays = np.flatnonzero(ledger.nodes_per_ray == n_nodes)
        points = np.flatnonzero(np.isin(ledger.ray, rays)).reshape(len(rays), n_nodes)
        node, gradient = ledger.node[points[0]], ledger.gradient[points]  # (n_nodes,), (n_rays, n_nodes, n_features)
        if rule in ("gauss-legendre", "fejer"):
            errors[rays] = _of_polynomials(node, gradient, rule)
        else:
            errors[rays] = _of_cells(rule, gradient)
    known = np.isfinite(ledger.value) & (ledger.nodes_per_ray > 0)
    errors[known] += np.abs(ledger.checksum[known])[:, None]
    if only_full_is_known(ledger):
        for number in np.unique(ledger.baseline[known]):
            others = ~known & (ledger.nodes_per_ray > 0) & (ledger.baseline == number)
            errors[others] += np.abs(ledger.checksum[known & (ledger.baseline == number)]).max()
    return np.where(ledger.masks, errors, 0.0)


def _of_polynomials(node: Array, gradient: Array, rule: str) -> Array:
    """The error of a polynomial rule on the ray, or on each half of it, by the decay of the Legendre coefficients."""
    n_nodes = len(node)
    if rule == "fejer":  # exact up to degree k - 1, so that nothing is gained beyond the last coefficient
        return _of_panel(node, gradient, 0.5)
    if np.allclose(node, gauss_legendre(n_nodes).nodes):
        return _of_panel(node, gradient, None)
    first = node < _HALFWAY  # discrete features jump half-way
    halves = (
        _of_panel(2 * node[first], gradient[:, first], None),
        _of_panel(2 * node[~first] - 1, gradient[:, ~first], None),
    )
    return (halves[0] + halves[1]) / 2


def _of_panel(node: Array, gradient: Array, steps: float | None) -> Array:
    """The error on [0, 1]: the last coefficients, times their fall to the power of `steps`."""
    n_nodes = len(node)
    if n_nodes < 4:
        return _of_cells("midpoint", gradient)
    basis = np.linalg.inv(legvander(2 * node - 1, n_nodes - 1))  # (degrees, nodes)
    size = np.abs(np.einsum("jk,rki->rji", basis, gradient))  # (n_rays, degrees, n_features)
    group = max(2, n_nodes // 3)
    last, before, earlier = (size[:, max(n_nodes - group * k, 0) :].max(1) for k in (1, 2, 3))
    fall = _ratio(last, before)
    kinked = n_nodes * last > size.max(1)  # coefficients of a kink fall so slowly, and one pair of groups by chance
    fall = np.where(kinked, np.maximum(fall, _ratio(before, earlier)), fall)
    if steps is None:
        steps = (n_nodes + group / 2) / group - 1  # from the last group to degree 2k, in groups, less one
    return np.asarray(np.maximum(last * fall**steps, _where_it_starts(node, gradient)))


def _where_it_starts(node: Array, gradient: Array) -> Array:
    """h |g| / 4 for each gap beside which the gradient is zero at two nodes and g at one; no smooth function is so."""
    zero, gap = gradient == 0, np.diff(node)[:, None]
    two = zero[:, 1:] & zero[:, :-1]
    after, before = two[:, :-1] & ~zero[:, 2:], ~zero[:, :-2] & two[:, 1:]
    starts = (gap[1:] * np.abs(gradient[:, 2:]) * after).sum(1) + (gap[:-1] * np.abs(gradient[:, :-2]) * before).sum(1)
    return np.asarray(starts / 4)


def _ratio(after: Array, before: Array) -> Array:
    return np.divide(after, before, out=np.zeros_like(after), where=before > 0)


def _of_cells(rule: str, gradient: Array) -> Array:
    """The error of equal weights, from second differences; NaN for a single node, which shows nothing."""
    n_nodes = gradient.shape[1]
    if n_nodes == 1:
        return np.full(gradient[:, 0].shape, np.nan)
    first = np.abs(gradient[:, -1] - gradient[:, 0]) / n_nodes
    # Before the first node and after the last one the gradient is taken as constant.
    steps = np.diff(gradient, axis=1, prepend=gradient[:, :1], append=gradient[:, -1:])
    bends = np.abs(np.diff(steps, axis=1)).sum(1) / (4 * n_nodes)
    if rule == "riemann":
        bends = bends + first
    return np.asarray(bends)
