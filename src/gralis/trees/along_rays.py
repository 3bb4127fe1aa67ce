"""The jumps of a tree along all rays between one input and one baseline, each given to the feature that crosses.

Along a ray a leaf is entered at most once and left at most once. Take the features on the path of a leaf whose
threshold lies between x' and x. Each is in one of three states: it stays until it crosses at `hi` and leaves the leaf
(its `lo` is -1), it must be a member and fits from `lo` on (its `hi` is 2), or it must be a member and fits between.
So the leaf is entered when the last of the members that must come has crossed, and it is left when the first member
crosses away. The weight of the coalitions in which this happens is a product over the features of the path.

Features that cross at the same moment do so in all orders alike: with t uniform on [0, 1], each has crossed with
probability t.
"""

# mypy: allow-untyped-defs, allow-untyped-calls
# numba infers the types of the compiled functions, so that they have no annotations.

from __future__ import annotations

import numpy as np

from gralis.trees.compiled import Compiled

__all__ = ["add_row"]

_NONE_LO, _NONE_HI = -1.0, 2.0


@Compiled
def _product_factors(p, nodes, weights, member, measure, scale):
    """What a product law needs at the nodes u: q_j, 1 - q_j, and the measures of u for members and for others.

    P(j in T | u) = q_j = u p_j / (1 - u + u p_j). Given i in T, u has the density prod_{j != i} (1 - u + u p_j) / Z_i.
    """
    for m in range(len(nodes)):
        u, product = nodes[m], 1.0
        for j in range(len(p)):
            both = 1.0 - u + u * p[j]
            product *= both
            member[0, j, m] = u * p[j] / both
            member[1, j, m] = (1.0 - u) / both
        measure[0, m] = weights[m] * product / u
        measure[1, m] = weights[m] * product / (1.0 - u)
    for j in range(len(p)):
        z = 0.0
        for m in range(len(nodes)):
            z += measure[1, m] * member[1, j, m]
        scale[0, j] = 1.0 / (p[j] * z)
        scale[1, j] = 1.0 / z


@Compiled
def _credit(out, i, values, leaf, amount):
    for k in range(values.shape[1]):
        out[k, i] += amount * values[leaf, k]


@Compiled
def _tie_by_product(n_in, n_out, n_stay, top, V, member, measure, scale, ties, lists, values, leaf, out):
    """Features that cross at one moment: those that come, members that leave, and others that leave if members."""
    k = (n_in + n_out + n_stay + 1) // 2
    for c in range(k):
        t, w, members = ties[0, k, c], ties[1, k, c], 0.0
        for m in range(V.shape[1]):
            V[-1, m] = V[top, m]
        for j in range(n_in + n_out, n_in + n_out + n_stay):
            for m in range(V.shape[1]):
                V[-1, m] *= 1.0 - member[0, lists[1, j], m] * t
        for m in range(V.shape[1]):
            members += measure[0, m] * V[-1, m]
        for j in range(n_in):
            i = lists[1, j]
            _credit(out, i, values, leaf, scale[0, i] * w * t ** (n_in - 1) * (1.0 - t) ** n_out * members)
        for j in range(n_in, n_in + n_out):
            i = lists[1, j]
            _credit(out, i, values, leaf, -scale[0, i] * w * t**n_in * (1.0 - t) ** (n_out - 1) * members)
        for j in range(n_in + n_out, n_in + n_out + n_stay):
            i, total = lists[1, j], 0.0
            for m in range(V.shape[1]):
                total += measure[1, m] * member[1, i, m] * V[-1, m] / (1.0 - member[0, i, m] * t)
            _credit(out, i, values, leaf, -scale[1, i] * w * t**n_in * (1.0 - t) ** n_out * total)


@Compiled
def _tie_by_size(n_in, n_out, n_stay, a, b, tables, lists, values, leaf, out):
    """The same where a coalition counts by its size: tables[0, a, b] is the weight with a features in and b out."""
    come, leave, stay, ways = 0.0, 0.0, 0.0, 1.0
    for r in range(n_stay + 1):  # r of those that may stay are members
        if n_in > 0:
            come += ways * tables[0, a - 1 + r, b + n_stay - r] * tables[1, n_in - 1, n_out + r]
        if n_out > 0:
            leave += ways * tables[0, a - 1 + r, b + n_stay - r] * tables[1, n_in, n_out - 1 + r]
        ways *= (n_stay - r) / (r + 1.0)
    ways = 1.0
    for r in range(n_stay):
        stay += ways * tables[0, a + r, b + n_stay - 1 - r] * tables[1, n_in, n_out + r]
        ways *= (n_stay - 1 - r) / (r + 1.0)
    for j in range(n_in + n_out + n_stay):
        _credit(out, lists[1, j], values, leaf, come if j < n_in else -leave if j < n_in + n_out else -stay)


@Compiled
def _leaf(k, top, feature, span, V, member, measure, scale, tables, ties, lists, values, leaf, out):
    """All jumps into and out of one leaf."""
    by_product = V.shape[1] > 0
    last, first, a, b, n_later = _NONE_LO, _NONE_HI, 0, 0, 0
    for j in range(k):
        if span[0, top, j] >= 0.0:
            a += 1
            last, first = max(last, span[0, top, j]), min(first, span[1, top, j])
    if last > first:
        return
    for j in range(k):  # those that may stay away: gone before the leaf is entered, or in the order in which they leave
        if span[0, top, j] < 0.0:
            if span[1, top, j] < last:
                b += 1
                for m in range(V.shape[1]):
                    V[top, m] *= member[1, feature[top, j], m]
            elif span[1, top, j] <= first:
                place = n_later
                while place > 0 and span[1, top, lists[0, place - 1]] > span[1, top, j]:
                    lists[0, place] = lists[0, place - 1]
                    place -= 1
                lists[0, place] = j
                n_later += 1
    at, entered = 0, a == 0
    while True:
        n_in, n_out, n_stay = 0, 0, 0
        if not entered:
            moment = last
            for j in range(k):
                if span[0, top, j] == last:
                    lists[1, n_in] = feature[top, j]
                    n_in += 1
            entered = True
        else:
            moment = min(span[1, top, lists[0, at]], first) if at < n_later else first
            if moment > 1.0:
                return
        if moment == first:
            for j in range(k):
                if span[0, top, j] >= 0.0 and span[1, top, j] == first:
                    lists[1, n_in + n_out] = feature[top, j]
                    n_out += 1
        while at < n_later and span[1, top, lists[0, at]] == moment:
            lists[1, n_in + n_out + n_stay] = feature[top, lists[0, at]]
            n_stay += 1
            at += 1
        i = lists[1, 0]
        if n_in + n_out + n_stay > 1:
            if by_product:
                _tie_by_product(n_in, n_out, n_stay, top, V, member, measure, scale, ties, lists, values, leaf, out)
            else:
                _tie_by_size(n_in, n_out, n_stay, a, b, tables, lists, values, leaf, out)
        elif by_product:
            total = 0.0
            if n_stay > 0:
                for m in range(V.shape[1]):
                    total += measure[1, m] * member[1, i, m] * V[top, m]
                _credit(out, i, values, leaf, -scale[1, i] * total)
            else:
                for m in range(V.shape[1]):
                    total += measure[0, m] * V[top, m]
                _credit(out, i, values, leaf, scale[0, i] * total if n_in > 0 else -scale[0, i] * total)
        elif n_stay > 0:
            _credit(out, i, values, leaf, -tables[0, a, b])
        else:
            _credit(out, i, values, leaf, tables[0, a - 1, b] if n_in > 0 else -tables[0, a - 1, b])
        if n_out > 0:
            return
        b += n_stay
        for j in range(n_in, n_in + n_stay):
            for m in range(V.shape[1]):
                V[top, m] *= member[1, lists[1, j], m]


@Compiled
def _may_be_reached(k, top, span):
    """Whether some moment is after all that must come and before all that must not have left."""
    last, first = _NONE_LO, _NONE_HI
    for j in range(k):
        if span[0, top, j] >= 0.0:
            last, first = max(last, span[0, top, j]), min(first, span[1, top, j])
    return last <= first


@Compiled
def add_row(trees, x, baselines, left_x, left_z, jumps, shares, law, tables, ties, deep, out):
    """Add phi of one input, averaged over the baselines, for all trees of a block, to `out` (n_outputs, n_features)."""
    roots, left, right, column, threshold, group, values = trees
    p, u_nodes, u_weights = law
    n_u = len(u_nodes)
    n = out.shape[1] if n_u > 0 else 0
    member, measure, scale = np.zeros((2, n, n_u)), np.zeros((2, n_u)), np.zeros((2, n))
    node_at, k_at, lists = (
        np.zeros(deep, dtype=np.int64),
        np.zeros(deep, dtype=np.int64),
        np.zeros((2, deep), dtype=np.int64),
    )
    feature, span, V = np.zeros((deep, deep), dtype=np.int64), np.zeros((2, deep, deep)), np.zeros((deep + 1, n_u))
    one = np.zeros_like(out)
    for number in range(len(baselines)):
        if n_u > 0:
            _product_factors(p[number], u_nodes, u_weights, member, measure, scale)
        one[:] = 0.0
        for t in range(len(roots)):
            top, node_at[0], k_at[0] = 0, roots[t], 0
            for m in range(n_u):
                V[0, m] = 1.0
            while top >= 0:
                node, k = node_at[top], k_at[top]
                if k < 0:  # the way to the side of x' has been found dead
                    top -= 1
                    continue
                while left[node] >= 0 and left_x[node] == left_z[number, node]:
                    node = left[node] if left_x[node] else right[node]
                if left[node] < 0:
                    if k > 0:
                        _leaf(k, top, feature, span, V, member, measure, scale, tables, ties, lists, values, node, one)
                    top -= 1
                    continue
                c = column[node]
                z = baselines[number, c]
                at = 0.5 if jumps[number, c] else min(max((threshold[node] - z) / (x[c] - z), 0.0), 1.0)
                to_x, to_z = (left[node], right[node]) if left_x[node] else (right[node], left[node])
                i, r = group[c], 0
                while r < k and feature[top, r] != i:
                    r += 1
                if r == k:
                    feature[top, k], span[0, top, k], span[1, top, k] = i, _NONE_LO, _NONE_HI
                    k += 1
                was_in, until = span[0, top, r], span[1, top, r]
                z_lives = was_in < min(until, at)
                x_lives = max(was_in, at) < until
                target = top
                if x_lives:
                    if z_lives:
                        target = top + 1
                        for j in range(k):
                            feature[target, j], span[0, target, j], span[1, target, j] = (
                                feature[top, j],
                                span[0, top, j],
                                span[1, top, j],
                            )
                        for m in range(n_u):
                            V[target, m] = V[top, m] * member[0, i, m] if was_in < 0.0 else V[top, m]
                    elif was_in < 0.0:
                        for m in range(n_u):
                            V[target, m] *= member[0, i, m]
                    span[0, target, r] = max(was_in, at)
                    node_at[target], k_at[target] = to_x, k
                    if not _may_be_reached(k, target, span):
                        target -= 1
                elif not z_lives:
                    target = top - 1
                if z_lives:
                    span[1, top, r] = min(until, at)
                    node_at[top], k_at[top] = to_z, k
                    if was_in >= 0.0 and not _may_be_reached(k, top, span):
                        if target == top:
                            target = top - 1
                        else:
                            k_at[top] = -1
                top = target
        out += shares[number] * one
