"""Multilinear polynomials F(z) = sum over T of c_T prod_{j in T} z_j: everything has a closed form, in exact rationals.

With baseline x' and input x, the coefficients around x' times prod (x_j - x'_j) are the Moebius coefficients of
the game v(T) = F(x_T) - F(x'); around the mean of the inputs they are the Hoeffding terms.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from math import prod
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from gralis.errors import bad
from gralis.games.anova import Anova
from gralis.games.exact import Coalition, Number, array, coalition, number, vector
from gralis.games.game import Game
from gralis.kernels import Kernel, Uniform

_ONE = Fraction(1)


@dataclass(frozen=True)
class Multilinear(Game, Anova):
    """F(z) = sum over T of c_T prod_{j in T} z_j, explained at x against the baseline, inputs uniform on bounds.

    Integers and fractions give exact answers; a single number for x, baseline or bounds stands for all features.

    >>> F = Multilinear({(0,): 2, (0, 1): 3}, 2, x=(1, 2))
    >>> F.moebius()
    {(0,): Fraction(2, 1), (0, 1): Fraction(6, 1)}
    >>> F.shapley().tolist() == [5, 3]
    True
    >>> F(torch.tensor([[1.0, 2.0]]))
    tensor([8.])
    """

    coefficients: Mapping[Any, Any]  # c_T keyed by the features of T; () is the constant
    n_features: int
    x: Any = 1
    baseline: Any = 0
    bounds: Any = (0, 1)

    def __post_init__(self) -> None:
        n, owner = self.n_features, "Multilinear"
        if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
            raise bad("n_features", owner, "an int >= 1", repr(n))
        if not isinstance(self.coefficients, Mapping):
            allowed = "a mapping from feature indices to numbers, such as {(0,): 2, (0, 1): 3}"
            raise bad("coefficients", owner, allowed, repr(self.coefficients))
        like: dict[Coalition, Number] = {}
        for members, c in self.coefficients.items():
            t = coalition(members, n, "coefficients", owner)
            like[t] = like.get(t, Fraction(0)) + number(c, "coefficients", owner)
        object.__setattr__(self, "coefficients", like)
        object.__setattr__(self, "n_features", int(n))
        for name in ("x", "baseline"):
            object.__setattr__(self, name, vector(getattr(self, name), n, name, owner))
        object.__setattr__(self, "bounds", _bounds(self.bounds, n))

    @classmethod
    def random(cls, n_features: int, max_order: int, seed: int = 0) -> Multilinear:
        """Integer coefficients from -3 to 3 for every T of 1 to max_order features, x = 1 and baseline = 0.

        >>> F = Multilinear.random(4, 2)
        >>> F.gralis().sum() + F.path_residual() == F.value(range(4))
        True
        """
        rng = np.random.default_rng(seed)
        sets = [t for size in range(1, max_order + 1) for t in combinations(range(n_features), size)]
        return cls({t: int(rng.integers(-3, 4)) for t in sets}, n_features)

    def at(self, x: object, baseline: object = 0) -> Multilinear:
        """The same function, explained at another x against another baseline."""
        return replace(self, x=x, baseline=baseline)

    def __call__(self, z: Any) -> Any:
        """F of every row of z (rows, n): a tensor (differentiable), a float64 array, or exact for an object array."""
        if not isinstance(z, torch.Tensor):
            z = np.asarray(z)
        if z.ndim != 2 or z.shape[1] != self.n_features:
            raise bad("z", "Multilinear", f"points of shape (rows, {self.n_features})", f"shape {tuple(z.shape)}")
        if not isinstance(z, torch.Tensor) and z.dtype == object:
            return array(sum((c * prod(row[list(t)]) for t, c in self.coefficients.items()), Fraction(0)) for row in z)
        total = z.sum(1) * 0.0
        for index, c in self._by_size:
            if isinstance(z, torch.Tensor):
                weights = torch.from_numpy(c).to(device=z.device, dtype=total.dtype)
                total = total + z.to(total.dtype)[:, torch.from_numpy(index).to(z.device)].prod(2) @ weights
            else:
                total = total + z[:, index].prod(2) @ c
        return total

    @cached_property
    def _by_size(self) -> list[tuple[NDArray[np.int64], NDArray[np.float64]]]:
        """The terms of each size: features (n_terms, size) and coefficients (n_terms,)."""
        by_size: dict[int, list[Coalition]] = {}
        for t in self.coefficients:
            by_size.setdefault(len(t), []).append(t)
        index = [np.array(sets, dtype=np.int64).reshape(len(sets), size) for size, sets in by_size.items()]
        numbers = [np.array([float(self.coefficients[t]) for t in sets]) for sets in by_size.values()]
        return list(zip(index, numbers, strict=True))

    # ---- the game at x

    def moebius(self) -> dict[Coalition, Number]:
        """m(T) = prod_{j in T} (x_j - x'_j) times the coefficient of F around x'."""
        around = self._around(self.baseline)
        found = {t: c * prod((self.x[j] - self.baseline[j] for j in t), start=_ONE) for t, c in around.items() if t}
        return {t: m for t, m in found.items() if m}

    def ray(self, members: object) -> NDArray[Any]:
        """ray_i(T) = sum over A within T, with i, of m(A) / |A|, for every i; zero outside T."""
        inside = set(coalition(members, self.n_features, "members", "Multilinear"))
        total: list[Number] = [Fraction(0)] * self.n_features
        for a, m in self.moebius().items():
            if inside.issuperset(a):
                for i in a:
                    total[i] += m * Fraction(1, len(a))
        return array(total)

    def integrated_gradients(self) -> NDArray[Any]:
        """IG_i = ray_i(F), the straight path; for a multilinear F it equals the Shapley value."""
        return self.ray(range(self.n_features))

    def gralis(self, kernel: Kernel = Uniform()) -> NDArray[Any]:
        """phi_i = sum over A with i of m(A) / |A| P(A within T | i in T); the probability is 1 / |A| if pi = 1.

        Exact rationals for the uniform kernel; floats, by the exact moments of its law, for any other.
        """
        if isinstance(kernel, Uniform):
            return self._shared(lambda size: Fraction(1, size**2))
        n = self.n_features
        distance = np.array([float(a - b) ** 2 for a, b in zip(self.x, self.baseline, strict=True)])
        entries = [(i, a, float(m) / len(a)) for a, m in self.moebius().items() for i in a]
        if not entries:
            return np.zeros(n)
        width = max(len(a) for _, a, _ in entries)
        sets = np.full((len(entries), width), n, dtype=np.int64)  # n pads a short row
        for row, (i, a, _) in enumerate(entries):
            sets[row, : len(a)] = [i, *(j for j in a if j != i)]
        shares = np.array([share for _, _, share in entries]) * kernel.bind(distance).subset_moments(sets)
        return np.bincount(sets[:, 0], shares, n)

    def path_residual(self) -> Number:
        """R_path = v(F) - sum_i phi_i(uniform) = sum over T of m(T) (1 - 1 / |T|)."""
        return sum((m * Fraction(len(t) - 1, len(t)) for t, m in self.moebius().items()), Fraction(0))

    # ---- independent inputs, uniform on the bounds

    def mean(self) -> Number:
        """E F = F(E X)."""
        return self._around(self._means).get((), Fraction(0))

    def parts(self) -> dict[Coalition, Number]:
        """Var f_T = (coefficient around E X)^2 prod_{j in T} Var X_j."""
        spread = [(high - low) ** 2 / 12 for low, high in self.bounds]
        around = self._around(self._means)
        found = {t: c**2 * prod((spread[j] for j in t), start=_ONE) for t, c in around.items() if t}
        return {t: var for t, var in found.items() if var}

    def hoeffding(self, x: object) -> dict[Coalition, Number]:
        """f_T(x) = (coefficient around E X) prod_{j in T} (x_j - E X_j)."""
        return replace(self, x=x, baseline=self._means).moebius()

    @property
    def _means(self) -> tuple[Number, ...]:
        return tuple((low + high) / 2 for low, high in self.bounds)

    def _around(self, centre: tuple[Number, ...]) -> dict[Coalition, Number]:
        """The coefficients of F in the variables z - centre: each product is multiplied out."""
        found: dict[Coalition, Number] = {}
        for t, c in self.coefficients.items():
            movable = [j for j in t if centre[j] != 0]
            for size in range(len(movable) + 1):
                for left_out in combinations(movable, size):
                    rest = tuple(j for j in t if j not in left_out)
                    term = c * prod((centre[j] for j in left_out), start=_ONE)
                    found[rest] = found.get(rest, Fraction(0)) + term
        return found


def unanimity(weights: Mapping[Any, Any], n_features: int) -> Multilinear:
    """v(S) = sum of w_T over the T within S; on masks, with x = ones and baseline = 0, m(T) = w_T.

    >>> unanimity({(0, 1): 6, (0, 1, 2): 3}, 3).shapley().tolist() == [4, 4, 1]
    True
    """
    game = Multilinear(weights, n_features)
    if () in game.coefficients:
        raise bad("weights", "unanimity", "keyed by non-empty coalitions", "the empty coalition")
    return game


def appendix_e() -> Multilinear:
    """F = 2a + 3b + c + 4ab - ac + 2bc at x = (1, 1, 1) against 0, inputs uniform on [0, 1]: the paper's toy.

    >>> F = appendix_e()
    >>> print(*F.gralis(), "|", *F.shapley(), "|", F.path_residual())
    11/4 9/2 5/4 | 7/2 6 3/2 | 5/2
    >>> print(F.mean(), F.variance(), "|", *F.first_order())
    17/4 209/48 | 49/209 144/209 9/209
    """
    return Multilinear({(0,): 2, (1,): 3, (2,): 1, (0, 1): 4, (0, 2): -1, (1, 2): 2}, 3)


def _bounds(bounds: Any, n: int) -> tuple[tuple[Number, Number], ...]:
    """One (low, high) per feature, from one pair for all of them or one pair each."""
    allowed = f"(low, high) with low < high, or one such pair per feature, {n} in all"
    if isinstance(bounds, np.ndarray | torch.Tensor):
        bounds = bounds.tolist()
    try:
        flat = not any(isinstance(part, tuple | list) for part in bounds)
        listed = [tuple(bounds)] * n if flat else [tuple(pair) for pair in bounds]
    except TypeError:
        raise bad("bounds", "Multilinear", allowed, repr(bounds)) from None
    if len(listed) != n or any(len(pair) != 2 for pair in listed):
        raise bad("bounds", "Multilinear", allowed, repr(bounds))
    pairs = tuple((number(low, "bounds", "Multilinear"), number(high, "bounds", "Multilinear")) for low, high in listed)
    if any(low >= high for low, high in pairs):
        raise bad("bounds", "Multilinear", allowed, repr(bounds))
    return pairs
