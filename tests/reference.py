"""Slow references that follow the definitions letter by letter; plain Python, nothing from `gralis` is used.

Features are 0 .. n - 1, coalitions are frozensets, a kernel is a function pi(S) of a coalition, and a model is a
torch function (rows, n) -> (rows,) in float64. Sums run over all subsets, so keep n <= 9.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction

import numpy as np
import torch

Coalition = frozenset[int]
Kernel = Callable[[Coalition], float]
Model = Callable[[torch.Tensor], torch.Tensor]
Value = Callable[[Coalition], float]


# ---- coalitions and kernels


def subsets(features: Iterable[int]) -> list[Coalition]:
    """Every subset, the empty one first."""
    members = sorted(features)
    return [frozenset(s) for size in range(len(members) + 1) for s in itertools.combinations(members, size)]


def coalitions(n: int) -> list[Coalition]:
    """Every non-empty coalition of n features."""
    return subsets(range(n))[1:]


def masks_of(sets: Sequence[Coalition], n: int) -> np.ndarray:
    """The 0/1 rows of these coalitions."""
    return np.array([[j in s for j in range(n)] for s in sets], dtype=bool).reshape(len(sets), n)


def without(n: int, i: int) -> list[Coalition]:
    """The predecessor sets of feature i: every S without it."""
    return subsets(set(range(n)) - {i})


def shapley_weight(n: int, size: int) -> Fraction:
    """|S|! (n - |S| - 1)! / n!"""
    return Fraction(math.factorial(size) * math.factorial(n - size - 1), math.factorial(n))


def uniform(s: Coalition) -> float:
    """pi(S) = 1."""
    return 1.0


def gaussian(squared_distance: Sequence[float], sigma: float, distance: str) -> Kernel:
    """pi(S) = exp(-||x_S - x'_S||^2 / 2 sigma^2), the distance divided by ||x - x'|| if relative."""
    scale = math.fsum(squared_distance) if distance == "relative" else 1.0
    return lambda s: math.exp(-math.fsum(float(squared_distance[j]) for j in s) / scale / (2 * sigma**2))


def of_masks(fn: Callable[[np.ndarray], np.ndarray], n: int) -> Kernel:
    """The kernel that a user's function of masks stands for."""
    return lambda s: float(fn(masks_of([s], n))[0])


# ---- the law of coalitions


def normaliser(n: int, kernel: Kernel) -> np.ndarray:
    """Z_i = sum over S without i of w(|S|) pi(S)."""
    return np.array([math.fsum(float(shapley_weight(n, len(s))) * kernel(s) for s in without(n, i)) for i in range(n)])


def conditional(n: int, kernel: Kernel, i: int) -> dict[Coalition, float]:
    """q_i(T) = w(|T| - 1) pi(T without i) / Z_i for every T that contains i."""
    weight = {s | {i}: float(shapley_weight(n, len(s))) * kernel(s) for s in without(n, i)}
    total = math.fsum(weight.values())
    return {t: w / total for t, w in weight.items()}


def law_q(n: int, kernel: Kernel) -> dict[Coalition, float]:
    """q(T) proportional to pi(T) / (|T| C(n, |T|)), T non-empty: the law that product kernels share."""
    weight = {t: kernel(t) / (len(t) * math.comb(n, len(t))) for t in coalitions(n)}
    total = math.fsum(weight.values())
    return {t: w / total for t, w in weight.items()}


def elementary(p: Sequence[Fraction]) -> list[Fraction]:
    """e_0 .. e_n of these numbers, exactly."""
    e = [Fraction(1)]
    for number in p:
        shifted = [Fraction(0), *(number * term for term in e)]
        e = [a + b for a, b in zip([*e, Fraction(0)], shifted, strict=True)]
    return e


def normaliser_esp(p: Sequence[float]) -> np.ndarray:
    """Z_i = (1/n) sum_s e_s(p without i) / C(n - 1, s), in exact arithmetic."""
    n, exact = len(p), [Fraction(float(number)) for number in p]
    result = []
    for i in range(n):
        e = elementary(exact[:i] + exact[i + 1 :])
        result.append(float(sum(term / math.comb(n - 1, s) for s, term in enumerate(e)) / n))
    return np.array(result)


def inclusion_esp(p: Sequence[float]) -> np.ndarray:
    """q(i in T) = p_i Z_i / sum_{t >= 1} e_t(p) / (t C(n, t))."""
    n = len(p)
    e = elementary([Fraction(float(number)) for number in p])
    total = float(sum(e[t] / (t * math.comb(n, t)) for t in range(1, n + 1)))
    return np.asarray(p) * normaliser_esp(p) / total


# ---- Definition 1, Algorithm 1, the endpoint form


def gradients(model: Model, points: np.ndarray) -> np.ndarray:
    """dF/dx at every row."""
    z = torch.tensor(points, dtype=torch.float64, requires_grad=True)
    (grad,) = torch.autograd.grad(model(z).sum(), z)
    return grad.numpy()


def gauss_panels(n_nodes: int = 20, n_panels: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Gauss-Legendre on equal panels of [0, 1]; many panels for a function with kinks."""
    node, weight = np.polynomial.legendre.leggauss(n_nodes)
    left = np.arange(n_panels)[:, None] / n_panels
    return (left + (node + 1) / (2 * n_panels)).ravel(), np.tile(weight / (2 * n_panels), n_panels)


def midpoints(k: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes (j - 0.5) / k for j = 1 .. k, weights 1 / k."""
    return np.array([(j - 0.5) / k for j in range(1, k + 1)]), np.full(k, 1 / k)


def conditioned_ig(
    model: Model,
    x: np.ndarray,
    base: np.ndarray,
    s: Coalition,
    i: int,
    rule: tuple[np.ndarray, np.ndarray],
) -> float:
    """(x_i - x'_i) * integral over a of dF/dx_i at x~: x'_j + a (x_j - x'_j) if j in S u {i}, x'_j otherwise."""
    nodes, weights = rule
    points = np.tile(np.asarray(base, dtype=np.float64), (len(nodes), 1))
    for j in s | {i}:
        points[:, j] = base[j] + nodes * (x[j] - base[j])
    return float((x[i] - base[i]) * (weights @ gradients(model, points)[:, i]))


def definition_1(
    model: Model,
    x: np.ndarray,
    base: np.ndarray,
    kernel: Kernel,
    rule: tuple[np.ndarray, np.ndarray] | None = None,
) -> np.ndarray:
    """GRALIS_i = (1 / Z_i) sum over S without i of w(|S|) pi(S) IG_i(S)."""
    n, rule = len(x), rule or gauss_panels()
    phi = np.zeros(n)
    for i in range(n):
        terms = [
            float(shapley_weight(n, len(s))) * kernel(s) * conditioned_ig(model, x, base, s, i, rule)
            for s in without(n, i)
        ]
        z = math.fsum(float(shapley_weight(n, len(s))) * kernel(s) for s in without(n, i))
        phi[i] = math.fsum(terms) / z
    return phi


def algorithm_1(
    model: Model, x: np.ndarray, base: np.ndarray, kernel: Kernel, orders: Iterable[Sequence[int]], k: int
) -> np.ndarray:
    """GRALIS-MC for these permutations: phi[i] / Z[i], or phi[i] if Z[i] = 0."""
    phi, z = np.zeros(len(x)), np.zeros(len(x))
    for order in orders:
        s: Coalition = frozenset()
        for i in order:
            ig_val = conditioned_ig(model, x, base, s, int(i), midpoints(k))
            pi_w = kernel(s)
            phi[i] += pi_w * ig_val
            z[i] += pi_w
            s = s | {int(i)}
    return np.array([phi[i] / z[i] if z[i] != 0 else phi[i] for i in range(len(x))])


def game(model: Model, x: np.ndarray, base: np.ndarray) -> Value:
    """v(T) = F(x_T) - F(x')."""
    n = len(x)
    every = subsets(range(n))
    points = np.array([[x[j] if j in t else base[j] for j in range(n)] for t in every])
    values = model(torch.tensor(points, dtype=torch.float64)).detach().numpy()
    table = {t: float(v - values[0]) for t, v in zip(every, values, strict=True)}
    return table.__getitem__


def endpoint(value: Value, n: int, kernel: Kernel) -> np.ndarray:
    """(1 / Z_i) sum over S without i of w(|S|) pi(S) (v(S u i) - v(S))."""
    phi = np.zeros(n)
    for i in range(n):
        weight = {s: float(shapley_weight(n, len(s))) * kernel(s) for s in without(n, i)}
        total = math.fsum(w * (value(s | {i}) - value(s)) for s, w in weight.items())
        phi[i] = total / math.fsum(weight.values())
    return phi


def shapley_by_orders(value: Value, n: int) -> np.ndarray:
    """The mean marginal contribution over all n! orders: Shapley's own words, not his weights."""
    total = np.zeros(n)
    for order in itertools.permutations(range(n)):
        s: Coalition = frozenset()
        for i in order:
            total[i] += value(s | {i}) - value(s)
            s = s | {i}
    return total / math.factorial(n)


# ---- multilinear polynomials in exact arithmetic

Polynomial = Mapping[Coalition, Fraction]  # F = sum over T of c_T prod_{j in T} x_j

#: Appendix E: F = 2a + 3b + c + 4ab - ac + 2bc.
APPENDIX_E: Polynomial = {
    frozenset(t): Fraction(c) for t, c in (((0,), 2), ((1,), 3), ((2,), 1), ((0, 1), 4), ((0, 2), -1), ((1, 2), 2))
}


def exact_ig(f: Polynomial, x: Sequence[Fraction], base: Sequence[Fraction], s: Coalition, i: int) -> Fraction:
    """IG_i(S): the derivative along the segment is a polynomial in a, integrated term by term."""
    total = Fraction(0)
    for t, coefficient in f.items():
        if i not in t:
            continue
        along = [coefficient]  # coefficients of 1, a, a^2, ...
        for j in t - {i}:
            step = x[j] - base[j] if j in s else Fraction(0)
            shifted = [Fraction(0), *(step * c for c in along)]
            along = [base[j] * c + d for c, d in zip([*along, Fraction(0)], shifted, strict=True)]
        total += sum((c / (power + 1) for power, c in enumerate(along)), Fraction(0))
    return (x[i] - base[i]) * total


def exact_gralis(
    f: Polynomial,
    x: Sequence[Fraction],
    base: Sequence[Fraction],
    kernel: Callable[[Coalition], Fraction] = lambda s: Fraction(1),
) -> list[Fraction]:
    """Definition 1 without rounding."""
    n = len(x)
    phi = []
    for i in range(n):
        weight = {s: shapley_weight(n, len(s)) * kernel(s) for s in without(n, i)}
        total = sum(w * exact_ig(f, x, base, s, i) for s, w in weight.items())
        phi.append(Fraction(total) / sum(weight.values()))
    return phi


def exact_value(f: Polynomial, point: Sequence[Fraction]) -> Fraction:
    """F at a point."""
    return sum((c * math.prod((point[j] for j in t), start=Fraction(1)) for t, c in f.items()), Fraction(0))


def torch_polynomial(f: Polynomial) -> Model:
    """The same polynomial as a torch function."""

    def model(z: torch.Tensor) -> torch.Tensor:
        terms = [float(c) * z[:, sorted(t)].prod(dim=1) for t, c in f.items()]
        return torch.stack(terms).sum(0)

    return model


# ---- small networks

_ACTIVATIONS = {"softplus": torch.nn.functional.softplus, "tanh": torch.tanh, "relu": torch.relu}


def network(kind: str, n: int, seed: int, hidden: int = 8, gain: float = 1.0) -> Model:
    """A random two-layer network of n features in float64; no global generator is touched."""
    rng = np.random.default_rng([seed, n])

    def matrix(rows: int, columns: int) -> torch.Tensor:
        return torch.from_numpy(gain * rng.standard_normal((rows, columns)) / math.sqrt(rows) * 1.5)

    first, second, last = matrix(n, hidden), matrix(hidden, hidden), matrix(hidden, 1)
    shift = torch.from_numpy(0.5 * rng.standard_normal(hidden))
    activation = _ACTIVATIONS[kind]

    def model(z: torch.Tensor) -> torch.Tensor:
        return (activation(activation(z @ first + shift) @ second) @ last)[:, 0]

    return model


def point(n: int, seed: int) -> np.ndarray:
    """An input whose features all move, by different amounts."""
    rng = np.random.default_rng([seed, n, 1])
    return rng.choice([-1.0, 1.0], size=n) * rng.uniform(0.5, 2.0, size=n)
