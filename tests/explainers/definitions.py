"""Truths over all coalitions: games as tables, weighted least squares as it is written; nothing from `gralis`.

A game is its values by code: feature j is bit j, so that v[0] belongs to the empty coalition and is 0.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable

import numpy as np
import torch
from shapiq import ExactComputer

Coalition = tuple[int, ...]


def all_masks(n: int) -> np.ndarray:
    """Every coalition, in the order of its code."""
    return (np.arange(2**n)[:, None] >> np.arange(n) & 1).astype(bool)


def random_game(n: int, seed: int) -> np.ndarray:
    """v of every coalition, without any structure."""
    v = np.random.default_rng([n, seed]).standard_normal(2**n)
    v[0] = 0.0
    return v


def as_function(v: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """The game as a function of 0/1 rows, to be explained from x = ones and baseline = 0."""
    bits = 1 << np.arange(int(np.log2(len(v))))
    return lambda rows: v[np.asarray(rows).astype(np.int64) @ bits]


def game_of(model: Callable[[torch.Tensor], torch.Tensor], x: np.ndarray, baselines: np.ndarray) -> np.ndarray:
    """v(T) = F(x_T) - F(x'), averaged over the rows of `baselines`."""
    tables = [model(torch.from_numpy(np.where(all_masks(len(x)), x, base))).detach().numpy() for base in baselines]
    return np.mean([table - table[0] for table in tables], axis=0)


def sets_of(n: int, order: int) -> list[Coalition]:
    return [a for size in range(1, order + 1) for a in itertools.combinations(range(n), size)]


def shapiq_index(v: np.ndarray, index: str, order: int) -> np.ndarray:
    """An index by shapiq, for all coalitions of up to `order` features, smaller ones first."""
    n = int(np.log2(len(v)))
    found = ExactComputer(game=as_function(v), n_players=n)(index, order)
    return np.array([found[a] for a in sets_of(n, order)])


def best_fit(v: np.ndarray, order: int) -> np.ndarray:
    """argmin sum_T k(t) (v(T) - sum over A in T of b(A))^2 with sum b = v(F), k(t) = (n - 1) / (C(n, t) t (n - t)).

    Order 1: Shapley values as KernelSHAP defines them; above: Faith-Shap. The last b is eliminated.
    """
    n = int(np.log2(len(v)))
    masks = all_masks(n)[1:-1]
    design = np.stack([masks[:, a].all(1) for a in sets_of(n, order)], axis=1).astype(float)
    root = np.sqrt([(n - 1) / (math.comb(n, t) * t * (n - t)) for t in masks.sum(1)])
    reduced, target = design[:, :-1] - design[:, -1:], v[1:-1] - design[:, -1] * v[-1]
    b = np.linalg.lstsq(reduced * root[:, None], target * root, rcond=None)[0]
    return np.append(b, v[-1] - b.sum())


def lime_weights(n: int, sigma: float) -> np.ndarray:
    """exp(-D^2 / 2 sigma^2) of every coalition z, D = 1 - cos(z, ones)."""
    cosine = [mask.sum() / math.sqrt(max(mask.sum(), 1) * n) for mask in all_masks(n)]
    return np.exp(-((1 - np.array(cosine)) ** 2) / (2 * sigma**2))


def weighted_ridge(
    v: np.ndarray, sigma: float, ridge: float, support: Iterable[int] | None = None
) -> tuple[np.ndarray, float, float]:
    """argmin sum_T w(T) (v(T) - c - sum_j b_j z_j)^2 + ridge |b|^2 over all coalitions: (b, c, weighted R2).

    A ridge is |b| observed as zero: rows sqrt(ridge) e_j with target 0 below the data, none for the intercept.
    """
    n = int(np.log2(len(v)))
    chosen = list(range(n) if support is None else support)
    z = np.column_stack([all_masks(n)[:, chosen], np.ones(2**n)]).astype(float)
    w = lime_weights(n, sigma)
    penalty = math.sqrt(ridge) * np.eye(len(chosen), len(chosen) + 1)
    rows, target = np.vstack([z * np.sqrt(w)[:, None], penalty]), np.append(v * np.sqrt(w), np.zeros(len(chosen)))
    solved = np.linalg.lstsq(rows, target, rcond=None)[0]
    left, centre = v - z @ solved, v - np.average(v, weights=w)
    coefficients = np.zeros(n)
    coefficients[chosen] = solved[:-1]
    return coefficients, float(solved[-1]), float(1 - (w @ left**2) / (w @ centre**2))
