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

from gralis.trees.compiled import compiled

__all__ = ["add_pair", "product_factors"]

_NONE_LO, _NONE_HI = -1.0, 2.0


@compiled
def product_factors(p, nodes, weights, q, s, alpha, beta, one_in, one_out):
    """What a product law needs at the nodes u: q_j, 1 - q_j, and the measures of u for members and for others.

    P(j in T | u) = q_j = u p_j / (1 - u + u p_j). Given i in T, u has the density prod_{j != i} (1 - u + u p_j) / Z_i.
    """
    for m in range(len(nodes)):
        u, product = nodes[m], 1.0
        for j in range(len(p)):
            both = 1.0 - u + u * p[j]
            product *= both
            q[j, m] = u * p[j] / both
            s[j, m] = (1.0 - u) / both
        alpha[m] = weights[m] * product / u
        beta[m] = weights[m] * product / (1.0 - u)
    for j in range(len(p)):
        z = 0.0
        for m in range(len(nodes)):
            z += beta[m] * s[j, m]
        one_in[j] = 1.0 / (p[j] * z)
        one_out[j] = 1.0 / z


@compiled
def _credit(out, feature, values, leaf, amount):
    for k in range(values.shape[1]):
        out[k, feature] += amount * values[leaf, k]


@compiled
def _dot(a, b):
    total = 0.0
    for m in range(len(a)):
        total += a[m] * b[m]
    return total


@compiled
def _tie_by_product(entering, n_in, leaving, n_out, staying, n_stay, V, law, ties, R, values, leaf, out):
    """Features that cross at one moment: those that come, members that leave, and others that leave if members."""
    q, s, alpha, beta, one_in, one_out, _ = law
    t_nodes, t_weights = ties
    k = (n_in + n_out + n_stay + 1) // 2
    for c in range(k):
        t, w = t_nodes[k, c], t_weights[k, c]
        for m in range(len(V)):
            R[m] = V[m]
        for j in range(n_stay):
            for m in range(len(V)):
                R[m] *= 1.0 - q[staying[j], m] * t
        if n_in + n_out > 0:
            members = _dot(alpha, R)
            for j in range(n_in):
                i = entering[j]
                _credit(out, i, values, leaf, one_in[i] * w * t ** (n_in - 1) * (1.0 - t) ** n_out * members)
            for j in range(n_out):
                i = leaving[j]
                _credit(out, i, values, leaf, -one_in[i] * w * t**n_in * (1.0 - t) ** (n_out - 1) * members)
        for j in range(n_stay):
            i, total = staying[j], 0.0
            for m in range(len(V)):
                total += beta[m] * s[i, m] * R[m] / (1.0 - q[i, m] * t)
            _credit(out, i, values, leaf, -one_out[i] * w * t**n_in * (1.0 - t) ** n_out * total)


@compiled
def _tie_by_size(entering, n_in, leaving, n_out, staying, n_stay, a, b, law, values, leaf, out):
    """The same where a coalition counts by its size: table[a, b] is the weight with a features in and b out."""
    table, beta = law[6]
    come, leave, stay, ways = 0.0, 0.0, 0.0, 1.0
    for r in range(n_stay + 1):  # r of those that may stay are members
        if n_in > 0:
            come += ways * table[a - 1 + r, b + n_stay - r] * beta[n_in - 1, n_out + r]
        if n_out > 0:
            leave += ways * table[a - 1 + r, b + n_stay - r] * beta[n_in, n_out - 1 + r]
        ways *= (n_stay - r) / (r + 1.0)
    ways = 1.0
    for r in range(n_stay):
        stay += ways * table[a + r, b + n_stay - 1 - r] * beta[n_in, n_out + r]
        ways *= (n_stay - 1 - r) / (r + 1.0)
    for j in range(n_in):
        _credit(out, entering[j], values, leaf, come)
    for j in range(n_out):
        _credit(out, leaving[j], values, leaf, -leave)
    for j in range(n_stay):
        _credit(out, staying[j], values, leaf, -stay)


@compiled
def _leaf(k, feature, lo, hi, V, law, ties, scratch, values, leaf, out):
    """All jumps into and out of one leaf."""
    order, entering, leaving, staying, R = scratch
    _, s, alpha, beta, one_in, one_out, _ = law
    by_product = len(alpha) > 0
    last, first, a, b, n_in, n_later = _NONE_LO, _NONE_HI, 0, 0, 0, 0
    for j in range(k):
        if lo[j] >= 0.0:
            a += 1
            last, first = max(last, lo[j]), min(first, hi[j])
    if last > first:
        return
    n_stay = 0
    for j in range(k):
        if lo[j] >= 0.0:
            if lo[j] == last:
                entering[n_in] = feature[j]
                n_in += 1
        elif hi[j] < last:
            b += 1
            if by_product:
                for m in range(len(V)):
                    V[m] *= s[feature[j], m]
        elif hi[j] == last:
            staying[n_stay] = feature[j]
            n_stay += 1
        elif hi[j] <= first:
            place = n_later
            while place > 0 and hi[order[place - 1]] > hi[j]:
                order[place] = order[place - 1]
                place -= 1
            order[place] = j
            n_later += 1
    n_out = 0
    if first == last:
        for j in range(k):
            if lo[j] >= 0.0 and hi[j] == first:
                leaving[n_out] = feature[j]
                n_out += 1
    if a > 0:
        if n_in == 1 and n_out == 0 and n_stay == 0:
            i = entering[0]
            if by_product:
                _credit(out, i, values, leaf, one_in[i] * _dot(alpha, V))
            else:
                _credit(out, i, values, leaf, law[6][0][a - 1, b])
        elif by_product:
            _tie_by_product(entering, n_in, leaving, n_out, staying, n_stay, V, law, ties, R, values, leaf, out)
        else:
            _tie_by_size(entering, n_in, leaving, n_out, staying, n_stay, a, b, law, values, leaf, out)
        if first == last:
            return
        b += n_stay
        if by_product:
            for j in range(n_stay):
                for m in range(len(V)):
                    V[m] *= s[staying[j], m]
    # Those that leave later, one moment after the other, until a member that must stay leaves.
    at = 0
    while at < n_later and hi[order[at]] < first:
        end = at + 1
        while end < n_later and hi[order[end]] == hi[order[at]]:
            end += 1
        if end == at + 1:
            i = feature[order[at]]
            if by_product:
                total = 0.0
                for m in range(len(V)):
                    V[m] *= s[i, m]
                    total += beta[m] * V[m]
                _credit(out, i, values, leaf, -one_out[i] * total)
            else:
                _credit(out, i, values, leaf, -law[6][0][a, b])
        else:
            for j in range(at, end):
                staying[j - at] = feature[order[j]]
            if by_product:
                _tie_by_product(entering, 0, leaving, 0, staying, end - at, V, law, ties, R, values, leaf, out)
                for j in range(end - at):
                    for m in range(len(V)):
                        V[m] *= s[staying[j], m]
            else:
                _tie_by_size(entering, 0, leaving, 0, staying, end - at, a, b, law, values, leaf, out)
        b += end - at
        at = end
    if first <= 1.0:
        n_out, n_stay = 0, 0
        for j in range(k):
            if lo[j] >= 0.0 and hi[j] == first:
                leaving[n_out] = feature[j]
                n_out += 1
        while at < n_later:  # all that are left cross at this moment too
            staying[n_stay] = feature[order[at]]
            n_stay += 1
            at += 1
        if n_out == 1 and n_stay == 0:
            i = leaving[0]
            if by_product:
                _credit(out, i, values, leaf, -one_in[i] * _dot(alpha, V))
            else:
                _credit(out, i, values, leaf, -law[6][0][a - 1, b])
        elif by_product:
            _tie_by_product(entering, 0, leaving, n_out, staying, n_stay, V, law, ties, R, values, leaf, out)
        else:
            _tie_by_size(entering, 0, leaving, n_out, staying, n_stay, a, b, law, values, leaf, out)


@compiled
def _copy_state(k, feature, lo, hi, V, top):
    for j in range(k):
        feature[top + 1, j] = feature[top, j]
        lo[top + 1, j] = lo[top, j]
        hi[top + 1, j] = hi[top, j]
    for m in range(V.shape[1]):
        V[top + 1, m] = V[top, m]


@compiled
def _may_be_reached(k, lo, hi):
    """Whether some moment is after all that must come and before all that must not have left."""
    last, first = _NONE_LO, _NONE_HI
    for j in range(k):
        if lo[j] >= 0.0:
            last, first = max(last, lo[j]), min(first, hi[j])
    return last <= first


@compiled
def add_pair(trees, x, z, left_x, left_z, jumps, law, ties, stack, scratch, out):
    """Add phi of one input and one baseline, for all trees of a block, to `out` (n_outputs, n_features)."""
    roots, left, right, column, threshold, group, values = trees
    node_at, k_at, feature, lo, hi, V = stack
    q = law[0]
    for t in range(len(roots)):
        top, node_at[0], k_at[0] = 0, roots[t], 0
        for m in range(V.shape[1]):
            V[0, m] = 1.0
        while top >= 0:
            node, k = node_at[top], k_at[top]
            if k < 0:  # the way to the side of x' has been found dead
                top -= 1
                continue
            while left[node] >= 0 and left_x[node] == left_z[node]:
                node = left[node] if left_x[node] else right[node]
            if left[node] < 0:
                if k > 0:
                    _leaf(k, feature[top], lo[top], hi[top], V[top], law, ties, scratch, values, node, out)
                top -= 1
                continue
            c = column[node]
            at = 0.5 if jumps[c] else min(max((threshold[node] - z[c]) / (x[c] - z[c]), 0.0), 1.0)
            to_x, to_z = (left[node], right[node]) if left_x[node] else (right[node], left[node])
            i, r = group[c], 0
            while r < k and feature[top, r] != i:
                r += 1
            if r == k:
                feature[top, k], lo[top, k], hi[top, k] = i, _NONE_LO, _NONE_HI
                k += 1
            was_in, until = lo[top, r], hi[top, r]
            z_lives = was_in < min(until, at)
            x_lives = max(was_in, at) < until
            if x_lives:
                target = top
                if z_lives:
                    _copy_state(k, feature, lo, hi, V, top)
                    target = top + 1
                lo[target, r] = max(was_in, at)
                if was_in < 0.0:
                    for m in range(V.shape[1]):
                        V[target, m] *= q[i, m]
                node_at[target], k_at[target] = to_x, k
                if not _may_be_reached(k, lo[target], hi[target]):
                    target -= 1
            else:
                target = top if z_lives else top - 1
            if z_lives:
                hi[top, r] = min(until, at)
                node_at[top], k_at[top] = to_z, k
                if was_in >= 0.0 and not _may_be_reached(k, lo[top], hi[top]):
                    if target == top:
                        target = top - 1
                    else:
                        k_at[top] = -1
            top = target
