"""The canonical form of an attribution: an index set, weights, marginal contributions."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from gralis.arrays import Array
from gralis.errors import bad

__all__ = ["Index", "Triple"]

Index = tuple[Hashable, ...]


@dataclass(frozen=True, eq=False)
class Triple:
    """phi_i = sum over q in Q_i of w_i(q) Delta_i(q), where every feature i has its own index set Q_i.

    Parameters
    ----------
    index : tuple of tuple
        The index sets: index[i] lists the entries q of Q_i. All sets have the same size n_index.
    weights : array of shape (n_features, n_index)
        w_i(q), which does not depend on F.
    marginals : array of shape (n_features, n_index)
        Delta_i(q), which is linear in F.
    method : str, default=""
        The name of the method.

    Examples
    --------
    >>> half = Triple(index=((0, 1),), weights=np.array([[0.5, 0.5]]), marginals=np.array([[2.0, 4.0]]))
    >>> half.attribution().tolist(), half.normalised
    ([3.0], True)
    """

    index: tuple[Index, ...]
    weights: Array
    marginals: Array
    method: str = ""

    def __post_init__(self) -> None:
        sizes = {len(entries) for entries in self.index}
        shape = (len(self.index), sizes.pop() if len(sizes) == 1 else -1)
        for name in ("weights", "marginals"):
            table = np.asarray(getattr(self, name), dtype=np.float64)
            if table.shape != shape:
                shown = "/".join(str(len(entries)) for entries in self.index[:6])
                allowed = "of shape (n_features, n_index), with as many entries as every feature's index"
                raise bad(name, "Triple", allowed, f"shape {table.shape} beside {shown} indices")
            object.__setattr__(self, name, table)

    @property
    def n_features(self) -> int:
        """The number of features."""
        return len(self.index)

    @property
    def total_weight(self) -> Array:
        """sum over q of w_i(q), (n_features,)."""
        return np.asarray(self.weights.sum(1))

    @property
    def normalised(self) -> bool:
        """Whether the weights of every feature are probabilities, as Definition 2 requires and Theorem 1 does not."""
        return bool((self.weights >= 0).all() and np.allclose(self.total_weight, 1.0, rtol=0, atol=1e-12))

    def attribution(self) -> Array:
        """phi_i = sum over q of w_i(q) Delta_i(q).

        Returns
        -------
        array of shape (n_features,)
        """
        return np.asarray((self.weights * self.marginals).sum(1))

    def __repr__(self) -> str:
        low, high = float(self.total_weight.min()), float(self.total_weight.max())
        sums = "are probabilities" if self.normalised else f"sum to {low:.4g} .. {high:.4g}"
        lines = [f"{self.method or 'canonical'} triple, {self.n_features} features, weights {sums}"]
        for i, phi in enumerate(self.attribution()[:15]):
            lines.append(f"feature {i:>2}  {len(self.index[i]):>6} indices  phi {phi:>11.5g}")
        return "\n".join(lines)
