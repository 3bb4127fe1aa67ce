"""Indices of the game v(T) = F(x_T) - F(x') of a tree ensemble, leaf by leaf.

A leaf is reached by x_T if T contains the features that only x brings to it, `a` in number, and none of those that only
x' brings to it, `b` in number; the others do not matter. So every index gives a leaf a weight that depends on a and b
alone. For Shapley values this is interventional TreeSHAP.
"""

# mypy: allow-untyped-defs, allow-untyped-calls
# numba infers the types of the compiled functions, so that they have no annotations.

from __future__ import annotations

import numpy as np

from gralis.trees.compiled import Compiled

__all__ = ["add_singles", "add_tables", "add_two", "leaf_paths", "pattern_tables"]


@Compiled
def _next_leaf(left, right, owner, left_x, left_z, number, way, top):
    """Walk to the next leaf that some coalition reaches, from the way at this level. Returns the leaf and its level.

    At each level `way` holds the features so far, for each whether x brings it (1) or x' (0), and in its last rows the
    node and the number of features.
    """
    node, k = way[2, top, 0], way[2, top, 1]
    while left[node] >= 0:
        if left_x[node] == left_z[number, node]:
            node = left[node] if left_x[node] else right[node]
            continue
        to_x, to_z = (left[node], right[node]) if left_x[node] else (right[node], left[node])
        i, r = owner[node], 0
        while r < k and way[0, top, r] != i:
            r += 1
        if r < k:
            node = to_x if way[1, top, r] == 1 else to_z
            continue
        for j in range(k):
            way[0, top + 1, j], way[1, top + 1, j] = way[0, top, j], way[1, top, j]
        way[0, top, k], way[1, top, k] = i, 0
        way[0, top + 1, k], way[1, top + 1, k] = i, 1
        k += 1
        way[2, top, 0], way[2, top, 1] = to_z, k
        top += 1
        node, way[2, top, 1] = to_x, k
    return node, top


@Compiled
def add_singles(trees, left_x, left_z, shares, tables, deep, out, total):
    """Add the index of every feature to `out` (n_outputs, n_features), and a sum over all leaves to `total`.

    `tables` are the weights of a leaf by a and b: of a feature that x brings, of one that x' brings, and in the total.
    """
    roots, left, right, owner, values = trees
    way = np.zeros((3, deep, deep), dtype=np.int64)
    for number in range(len(shares)):
        for t in range(len(roots)):
            top, way[2, 0, 0], way[2, 0, 1] = 0, roots[t], 0
            while top >= 0:
                leaf, top = _next_leaf(left, right, owner, left_x, left_z, number, way, top)
                k, a = way[2, top, 1], 0
                for j in range(k):
                    a += way[1, top, j]
                for o in range(values.shape[1]):
                    value = shares[number] * values[leaf, o]
                    total[o] += value * tables[2, a, k - a]
                    for j in range(k):
                        out[o, way[0, top, j]] += value * tables[1 - way[1, top, j], a, k - a]
                top -= 1


@Compiled
def add_two(trees, left_x, left_z, shares, tables, deep, out):
    """Add the index of every pair of features to `out` (n_outputs, n_features, n_features), above the diagonal.

    `tables` are the weights of a leaf for a pair of which x brings two, one or none.
    """
    roots, left, right, owner, values = trees
    way = np.zeros((3, deep, deep), dtype=np.int64)
    for number in range(len(shares)):
        for t in range(len(roots)):
            top, way[2, 0, 0], way[2, 0, 1] = 0, roots[t], 0
            while top >= 0:
                leaf, top = _next_leaf(left, right, owner, left_x, left_z, number, way, top)
                k, a = way[2, top, 1], 0
                for j in range(k):
                    a += way[1, top, j]
                for j in range(k):
                    for h in range(j):
                        weight = shares[number] * tables[2 - way[1, top, j] - way[1, top, h], a, k - a]
                        first, second = min(way[0, top, j], way[0, top, h]), max(way[0, top, j], way[0, top, h])
                        for o in range(values.shape[1]):
                            out[o, first, second] += values[leaf, o] * weight
                top -= 1


@Compiled
def leaf_paths(trees, deep):
    """The comparisons on the way to each leaf, their sides, the place of each among the leaf's features, and those."""
    _, left, right, owner, _ = trees
    parent, length = np.full(len(left), -1), np.zeros(len(left), dtype=np.int64)
    n_leaves, total = 0, 0
    for node in range(len(left)):  # parents come before their children
        if left[node] >= 0:
            parent[left[node]] = parent[right[node]] = node
            length[left[node]] = length[right[node]] = length[node] + 1
        else:
            n_leaves += 1
            total += length[node]
    starts, widths = np.zeros(n_leaves + 1, dtype=np.int64), np.zeros(n_leaves, dtype=np.int64)
    path, place = np.zeros(total, dtype=np.int64), np.zeros(total, dtype=np.int64)
    to_left, features = np.zeros(total, dtype=np.bool_), np.zeros((n_leaves, deep), dtype=np.int64)
    leaf, at = 0, 0
    for node in range(len(left)):
        if left[node] >= 0:
            continue
        features[leaf, 0], below, d = node, node, 0
        while parent[below] >= 0:
            above = parent[below]
            i, r = owner[above], 0
            while r < d and features[leaf, 1 + r] != i:
                r += 1
            if r == d:
                features[leaf, 1 + d] = i
                d += 1
            path[at], to_left[at], place[at] = above, left[above] == below, r
            at += 1
            below = above
        widths[leaf] = d
        leaf += 1
        starts[leaf] = at
    return starts, path, to_left, place, widths, features


@Compiled
def pattern_tables(leaves, left_z, weights, tables):
    """For every leaf and every set of its features that x brings: the mean weight of each feature, over all baselines.

    So the baselines are looked at once, whatever the number of rows (the idea of Woodelf).
    """
    starts, path, to_left, place, widths, offsets, size = leaves
    result = np.zeros(size)
    for leaf in range(len(widths)):
        d = widths[leaf]
        everyone = (1 << d) - 1
        share = np.zeros(everyone + 1)
        for b in range(len(left_z)):
            mask = everyone
            for e in range(starts[leaf], starts[leaf + 1]):
                if left_z[b, path[e]] != to_left[e]:
                    mask &= ~(1 << place[e])
            share[mask] += weights[b]
        for of_z in range(everyone + 1):
            if share[of_z] == 0.0:
                continue
            only_x = everyone & ~of_z
            a = 0
            for j in range(d):
                a += (only_x >> j) & 1
            both = of_z  # the features that x brings too, a subset of those that x' brings
            while True:
                only_z = of_z & ~both
                b = 0
                for j in range(d):
                    b += (only_z >> j) & 1
                at = offsets[leaf] + (only_x | both) * d
                for j in range(d):
                    if (only_x >> j) & 1:
                        result[at + j] += share[of_z] * tables[0, a, b]
                    elif (only_z >> j) & 1:
                        result[at + j] += share[of_z] * tables[1, a, b]
                if both == 0:
                    break
                both = (both - 1) & of_z
    return result


@Compiled
def add_tables(values, leaves, features, left_x, result, out):
    """Add what the tables of `pattern_tables` give for each row to `out` (n_rows, n_outputs, n_features)."""
    starts, path, to_left, place, widths, offsets, _ = leaves
    for row in range(len(left_x)):
        for leaf in range(len(widths)):
            d = widths[leaf]
            mask = (1 << d) - 1
            for e in range(starts[leaf], starts[leaf + 1]):
                if left_x[row, path[e]] != to_left[e]:
                    mask &= ~(1 << place[e])
            at = offsets[leaf] + mask * d
            for o in range(values.shape[1]):
                value = values[features[leaf, 0], o]
                for j in range(d):
                    out[row, o, features[leaf, 1 + j]] += value * result[at + j]
