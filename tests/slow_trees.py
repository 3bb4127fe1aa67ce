"""GRALIS of small tree ensembles by the definition: every coalition, every crossing, every order of tied crossings."""

from __future__ import annotations

import itertools
from fractions import Fraction
from math import comb, exp, isnan

import numpy as np

from gralis.kernels import Gaussian, SizeKernel, Uniform
from gralis.trees import TreeEnsemble, exact_many, pairs_of_row, shapley_weight
from gralis.trees.columns import Columns


def random_ensemble(rng, n_columns=4, n_trees=3, depth=3, *, categories=0, n_outputs=1, inclusive=True, grid=4):
    """Trees with thresholds on a grid, so that crossings tie and thresholds repeat; the last columns are categories."""
    nodes = {name: [] for name in ("left", "right", "column", "threshold", "default_left", "missing", "values")}
    nodes |= {name: [] for name in ("category_start", "category_stop", "other_left")}
    table, roots = [], []

    def grow(level):
        number = len(nodes["left"])
        leaf = level == depth or (level > 0 and rng.random() < 0.2)
        for name in nodes:
            nodes[name].append(0)
        column = int(rng.integers(n_columns))
        nodes["column"][number] = column
        nodes["threshold"][number] = rng.integers(1, 2 * grid) / 2 / grid
        nodes["default_left"][number], nodes["other_left"][number] = bool(rng.random() < 0.5), bool(rng.random() < 0.5)
        nodes["missing"][number] = 1
        nodes["category_start"][number] = nodes["category_stop"][number] = -1
        nodes["values"][number] = rng.normal(size=n_outputs).round(2) if leaf else np.zeros(n_outputs)
        if not leaf and column >= n_columns - categories:
            nodes["category_start"][number] = len(table)
            table.extend(rng.integers(-1, 2, size=3))
            nodes["category_stop"][number] = len(table)
        nodes["left"][number] = -1 if leaf else grow(level + 1)
        nodes["right"][number] = -1 if leaf else grow(level + 1)
        return number

    for _ in range(n_trees):
        roots.append(len(nodes["left"]))
        grow(0)
    columns = Columns(tuple("abcdefghij"[:n_columns]), False, (None,) * (n_columns - categories) + ((),) * categories)
    return TreeEnsemble.of_nodes(
        {**nodes, "roots": roots, "category_left": table},
        columns=columns,
        tree_weights=rng.choice([0.5, 1.0], n_trees),
        base=np.full(n_outputs, 0.25),
        divisor=2.0,
        inclusive=inclusive,
        single=False,
    )


def random_rows(rng, trees, n_rows, missing=0.0, grid=4):
    """Rows on the grid of the thresholds, with codes of categories and with NaN."""
    rows = rng.integers(0, grid + 1, size=(n_rows, trees.n_columns)) / grid
    rows[:, trees.columns.categorical] = rng.integers(0, 4, size=(n_rows, int(trees.columns.categorical.sum())))
    rows[rng.random(rows.shape) < missing] = np.nan
    return rows


def value(trees, row, output=0):
    """F of one row, node by node."""
    total = trees.base[output]
    for root, weight in zip(trees.roots, trees.tree_weights, strict=True):
        node = root
        while trees.left[node] >= 0:
            node = trees.left[node] if goes_left(trees, node, row[trees.column[node]]) else trees.right[node]
        total += weight * trees.values[node, output]
    return total / trees.divisor


def goes_left(trees, node, entry):
    if isinstance(entry, float) and isnan(entry):
        return trees.default_left[node]
    if trees.category_start[node] >= 0:
        start, stop = trees.category_start[node], trees.category_stop[node]
        code = int(entry)
        side = trees.category_left[start + code] if 0 <= code < stop - start else -1
        return side == 1 if side >= 0 else trees.other_left[node]
    return entry <= trees.threshold[node] if trees.inclusive else entry < trees.threshold[node]


def ray(trees, x, z, members, output=0):
    """The jumps along the ray of these features, each given to the feature that crosses."""
    jumps = trees.jumping | np.isnan(x) | np.isnan(z)
    moments = {}  # of each member: the times at which one of its columns crosses a threshold
    for i in members:
        times = set()
        for column in np.flatnonzero(trees.groups == i):
            if jumps[column]:
                times.add(Fraction(1, 2))
                continue
            a, b = Fraction(z[column]), Fraction(x[column])
            for c in trees.threshold[(trees.column == column) & (trees.left >= 0)]:
                if a != b and min(a, b) <= Fraction(c) <= max(a, b):
                    times.add((Fraction(c) - a) / (b - a))
        moments[i] = times

    def place(time_of):
        """The row in which each member stands where it is at its own time; time -1 is the baseline, 2 the input."""
        row = list(map(float, z))
        for i, time in time_of.items():
            for column in np.flatnonzero(trees.groups == i):
                if time < 0:
                    continue
                if time > 1:
                    row[column] = float(x[column])
                elif jumps[column]:
                    row[column] = float(x[column] if time > Fraction(1, 2) else z[column])
                else:
                    row[column] = Fraction(z[column]) + time * (Fraction(x[column]) - Fraction(z[column]))
        return row

    events = sorted(set().union(*moments.values()))
    between = [Fraction(-1), *((a + b) / 2 for a, b in itertools.pairwise(events)), Fraction(2)]
    result = dict.fromkeys(members, 0.0)
    for number, event in enumerate(events):
        tied = [i for i in members if event in moments[i]]
        orders = list(itertools.permutations(tied))
        for order in orders:
            time_of = dict.fromkeys(members, between[number])
            before = value(trees, place(time_of), output)
            for i in order:
                time_of[i] = between[number + 1]
                after = value(trees, place(time_of), output)
                result[i] += (after - before) / len(orders)
                before = after
    return result


def phi(trees, x, baselines, weights, kernel, output=0):
    """phi_i = sum_T q(T | i in T) ray_i(T), averaged over the baselines."""
    n = trees.n_features
    total = np.zeros(n)
    for z, share in zip(baselines, weights, strict=True):
        numerator, normaliser = np.zeros(n), np.zeros(n)
        squared = distance(trees, x, z)
        for size in range(1, n + 1):
            for T in itertools.combinations(range(n), size):
                along = ray(trees, x, z, T, output)
                for i in T:
                    w = weight(kernel, [j for j in T if j != i], squared) / (n * comb(n - 1, size - 1))
                    numerator[i] += w * along[i]
                    normaliser[i] += w
        total += share * numerator / normaliser
    return total


def weight(kernel, predecessors, squared):
    if isinstance(kernel, Uniform):
        return 1.0
    if isinstance(kernel, SizeKernel):
        return kernel.fn(len(predecessors))
    assert isinstance(kernel, Gaussian)
    scale = 1.0 if kernel.distance == "euclidean" or not squared.sum() else squared.sum()
    return exp(-sum(squared[j] for j in predecessors) / scale / 2 / kernel.sigma**2)


def distance(trees, x, z):
    squared, jumped = np.zeros(trees.n_features), set()
    for column, i in enumerate(trees.groups):
        a, b = x[column], z[column]
        if not (trees.jumping[column] or isnan(a) or isnan(b)):
            squared[i] += (a - b) ** 2
        elif a != b and not (isnan(a) and isnan(b)):
            jumped.add(i)
    squared[list(jumped)] += 1.0
    return squared


def game(trees, x, baselines, weights, output=0):
    """v(T) of all coalitions by code, averaged over the baselines."""
    n = trees.n_features
    v = np.zeros(2**n)
    for code in range(2**n):
        member = np.array([code >> i & 1 for i in range(n)], dtype=bool)[trees.groups]
        for z, share in zip(baselines, weights, strict=True):
            v[code] += share * (value(trees, np.where(member, x, z), output) - value(trees, z, output))
    return v


def answers():
    """What the library says on a few rows: phi, Shapley values and pairs, with or without numba."""
    rng = np.random.default_rng(5)
    trees = random_ensemble(rng, n_columns=6, n_trees=3, depth=4, categories=2, n_outputs=2)
    rows, background = (random_rows(rng, trees, n, 0.1) for n in (3, 4))
    both = exact_many(trees, rows, background, Gaussian(0.6))
    shares = np.full(4, 0.25)
    pairs = pairs_of_row(trees, trees.encode(rows)[0], trees.encode(background), shapley_weight, shares)
    return [both.phi.tolist(), both.shapley.tolist(), pairs.tolist()]
