"""Multilinear polynomials F(z) = sum over T of c_T prod_{j in T} z_j: all answers are closed forms, in exact rationals.

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

from gralis.arrays import Array
from gralis.checks import whole
from gralis.errors import bad
from gralis.games.anova import Anova
from gralis.games.exact import Coalition, Number, array, by_feature, coalition, number, points, vector
from gralis.games.game import Game
from gralis.kernels import Kernel, Uniform

__all__ = ["Multilinear"]

_ONE = Fraction(1)


@dataclass(frozen=True)
class Multilinear(Game, Anova):
    """F(z) = sum over T of c_T prod_{j in T} z_j, explained at x against the baseline, inputs uniform on bounds.

    Integers and fractions give exact answers.

    Parameters
    ----------
    coefficients : mapping from iterable of int to number
        c_T by the features of T; the empty tuple stands for the constant.
    n_features : int
        The number of features.
    x : number or sequence of numbers, default=1
        The input that is explained. A single number stands for all features.
    baseline : number or sequence of numbers, default=0
        The baseline x' that it is explained against. A single number stands for all features.
    bounds : pair or sequence of pairs, default=(0, 1)
        The interval (low, high) of each feature for the Sobol indices. A single pair stands for all features.

    Examples
    --------
    >>> F = Multilinear({(0,): 2, (0, 1): 3}, 2, x=(1, 2))
    >>> F.moebius()
    {(0,): Fraction(2, 1), (0, 1): Fraction(6, 1)}
    >>> F.shapley().tolist() == [5, 3]
    True
    >>> F(torch.tensor([[1.0, 2.0]]))
    tensor([8.])
    """

    coefficients: Mapping[Any, Any]
    n_features: int
    x: Any = 1
    baseline: Any = 0
    bounds: Any = (0, 1)

    def __post_init__(self) -> None:
        owner = "Multilinear"
        n = whole(self.n_features, "n_features", 1, owner)
        if not isinstance(self.coefficients, Mapping):
            allowed = "a mapping from feature indices to numbers, such as {(0,): 2, (0, 1): 3}"
            raise bad("coefficients", owner, allowed, repr(self.coefficients))
        by_coalition: dict[Coalition, Number] = {}
        for members, c in self.coefficients.items():
            t = coalition(members, n, "coefficients", owner)
            by_coalition[t] = by_coalition.get(t, Fraction(0)) + number(c, "coefficients", owner)
        object.__setattr__(self, "coefficients", by_coalition)
        object.__setattr__(self, "n_features", n)
        for name in ("x", "baseline"):
            object.__setattr__(self, name, vector(getattr(self, name), n, name, owner))
        object.__setattr__(self, "bounds", _bounds(self.bounds, n))

    @classmethod
    def random(cls, n_features: int, max_order: int, seed: int = 0) -> Multilinear:
        """Random integer coefficients from -3 to 3 for every T of 1 to max_order features, x = 1 and baseline = 0.

        Parameters
        ----------
        n_features : int
            The number of features.
        max_order : int
            The size of the largest coalitions with a coefficient.
        seed : int, default=0
            The seed of the coefficients.

        Returns
        -------
        Multilinear

        Examples
        --------
        >>> F = Multilinear.random(4, 2)
        >>> F.gralis().sum() + F.path_residual() == F.value(range(4))
        True
        """
        rng = np.random.default_rng(seed)
        sets = [t for size in range(1, max_order + 1) for t in combinations(range(n_features), size)]
        return cls({t: int(rng.integers(-3, 4)) for t in sets}, n_features)

    def at(self, x: object, baseline: object = 0) -> Multilinear:
        """The same function, explained at another x against another baseline.

        Parameters
        ----------
        x : number or sequence of numbers
            The new input.
        baseline : number or sequence of numbers, default=0
            The new baseline.

        Returns
        -------
        Multilinear
        """
        return replace(self, x=x, baseline=baseline)

    def __call__(self, z: Any) -> Any:
        """F of every row of z.

        Parameters
        ----------
        z : tensor or array of shape (rows, n_features)
            The points.

        Returns
        -------
        tensor or array of shape (rows,)
            A differentiable tensor for a tensor, exact numbers for an array of objects, float64 otherwise.
        """
        z = points(z, self.n_features, "Multilinear")
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
    def _by_size(self) -> list[tuple[NDArray[np.int64], Array]]:
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
        steps = [a - b for a, b in zip(self.x, self.baseline, strict=True)]
        terms = {t: c * prod((steps[j] for j in t), start=_ONE) for t, c in self._around(self.baseline).items() if t}
        return {t: m for t, m in terms.items() if m}

    def ray(self, members: object) -> NDArray[Any]:
        """ray_i(T) = sum over A within T, with i, of m(A) / |A|, for every feature i; zero outside T.

        Parameters
        ----------
        members : iterable of int
            The features in T.

        Returns
        -------
        array of shape (n_features,)
        """
        inside = set(coalition(members, self.n_features, "members", "Multilinear"))
        within = {a: m * Fraction(1, len(a)) for a, m in self.moebius().items() if inside.issuperset(a)}
        return array(by_feature(((i, m) for a, m in within.items() for i in a), self.n_features))

    def integrated_gradients(self) -> NDArray[Any]:
        """IG_i = ray_i(all features), the straight path; for a multilinear F it equals the Shapley value."""
        return self.ray(range(self.n_features))

    def gralis(self, kernel: Kernel = Uniform()) -> NDArray[Any]:
        """phi_i = sum over A with i of m(A) / |A| P(A within T | i in T); the probability is 1 / |A| if pi = 1.

        Parameters
        ----------
        kernel : Kernel, default=Uniform()
            How coalitions are weighted.

        Returns
        -------
        array of shape (n_features,)
            Exact rationals for the uniform kernel. For any other kernel floats, from the exact moments of its law.
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
        variances = {t: c**2 * prod((spread[j] for j in t), start=_ONE) for t, c in around.items() if t}
        return {t: var for t, var in variances.items() if var}

    def hoeffding(self, x: object) -> dict[Coalition, Number]:
        """f_T(x) = (coefficient around E X) prod_{j in T} (x_j - E X_j).

        Parameters
        ----------
        x : number or sequence of numbers
            One point.

        Returns
        -------
        dict from tuple of int to number
        """
        return replace(self, x=x, baseline=self._means).moebius()

    @property
    def _means(self) -> tuple[Number, ...]:
        return tuple((low + high) / 2 for low, high in self.bounds)

    def _around(self, centre: tuple[Number, ...]) -> dict[Coalition, Number]:
        """The coefficients of F in the variables z - centre: each product is multiplied out."""
        around: dict[Coalition, Number] = {}
        for t, c in self.coefficients.items():
            movable = [j for j in t if centre[j] != 0]
            for size in range(len(movable) + 1):
                for left_out in combinations(movable, size):
                    rest = tuple(j for j in t if j not in left_out)
                    term = c * prod((centre[j] for j in left_out), start=_ONE)
                    around[rest] = around.get(rest, Fraction(0)) + term
        return around


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
