"""w_i(S) = q(S u i | i in T): where the kernel puts the weight of a feature, over its predecessor sets (Appendix D).

For few features the numbers are exact, by enumeration. For many features the heaviest sets and the effective number
come from draws of the law, without the model, and `exact` is False.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gralis.arrays import Array, Masks
from gralis.errors import GralisError
from gralis.laws import Law
from gralis.laws.law import all_masks
from gralis.notebook import InNotebooks, more, n_shown

_MOST_ENUMERATED = 14
_N_DRAWS = 4096
_MOST_FEATURES = 2000
_HANDFUL = 8.0


@dataclass(frozen=True, eq=False)
class WeightMass(InNotebooks):
    """The weight of every feature's predecessor sets.

    Attributes
    ----------
    sizes : array of shape (n_features, n_features)
        sizes[i, s] is the probability that the predecessor set of feature i has s members.
    effective : array of shape (n_features,)
        exp(entropy): the number of equally weighted predecessor sets to which the weight amounts.
    heaviest : tuple
        For every feature its heaviest sets as ((S, w_i(S)), ...), the heaviest first.
    names : sequence of str
        The names of the features.
    exact : bool
        Whether the numbers come from enumeration and not from draws.
    """

    sizes: Array
    effective: Array
    heaviest: tuple[tuple[tuple[tuple[int, ...], float], ...], ...]
    names: Sequence[str]
    exact: bool

    def _frame_columns(self) -> Mapping[str, Any]:
        mean_size = self.sizes @ np.arange(self.sizes.shape[1])
        return {"feature": list(self.names), "effective": self.effective, "mean_size": mean_size}

    def __repr__(self) -> str:
        n = len(self.effective)
        lines = [f"weight over predecessor sets ({'exact' if self.exact else 'from draws of the law'})"]
        shown = n_shown(n)
        width = max([7, *(len(name) for name in self.names[:shown])])
        lines.append(f"{'feature':<{width}}  {'effective':>9}  {'mean |S|':>8}  heaviest")
        for i in range(shown):
            mean = float(self.sizes[i] @ np.arange(n))
            first, weight = self.heaviest[i][0]
            members = "{" + ", ".join(self.names[j] for j in first[:4]) + (", ..." if len(first) > 4 else "") + "}"
            lines.append(
                f"{self.names[i]:<{width}}  {self.effective[i]:>9.4g}  {mean:>8.3g}  {members} holds {weight:.1%}"
            )
        return "\n".join([*lines, *more(n, shown)])


def weight_mass(laws: Sequence[Law], baseline_weights: Array, names: Sequence[str], top: int = 3) -> WeightMass:
    """The weight averaged over the baselines. Warns if the kernel concentrates on a handful of coalitions."""
    n = laws[0].n_features
    if n > _MOST_FEATURES:
        raise GralisError(f"weight_mass is a table for up to {_MOST_FEATURES} features; here n_features = {n}.")
    exact = n <= _MOST_ENUMERATED
    pairs = list(zip(laws, baseline_weights, strict=True))
    masks, counted = _all(pairs) if exact else _draws(pairs)
    weights = np.sum([share * np.exp(law.log_conditional(masks)) for law, share in pairs], axis=0)
    counted /= counted.sum(0)
    sizes = np.stack([np.bincount(masks.sum(1) - 1, counted[:, i], n) for i in range(n)]).astype(np.float64)
    log_weights = np.log(weights, out=np.zeros_like(weights), where=weights > 0)
    effective = np.exp(-(counted * log_weights).sum(0))
    mass = WeightMass(sizes, effective, _heaviest(masks, weights, top), names, exact)
    few = np.flatnonzero(effective < min(_HANDFUL, 2 ** (n - 1) / 2))
    if len(few):
        i = int(few[np.argmin(effective[few])])
        warnings.warn(
            f"The kernel concentrates on a handful of coalitions for {len(few)} of {n} features (feature {names[i]}: "
            f"{effective[i]:.3g} effective coalitions); their values say little about the rest. Use a larger sigma.",
            UserWarning,
            stacklevel=3,
        )
    return mass


def _all(pairs: Sequence[tuple[Law, float]]) -> tuple[Masks, Array]:
    masks = all_masks(pairs[0][0].n_features)
    return masks, np.sum([share * np.exp(law.log_conditional(masks)) for law, share in pairs], axis=0)


def _draws(pairs: Sequence[tuple[Law, float]]) -> tuple[Masks, Array]:
    """Coalitions drawn from the proposal of each law, which reaches every feature, and the weight of each draw."""
    rng, masks, counted = np.random.default_rng(0), [], []
    n_draws = max(_N_DRAWS // len(pairs), 64)
    for law, share in pairs:
        drawn, log_rate = law.propose(rng, n_draws)
        masks.append(drawn)
        counted.append(share / n_draws * np.exp(law.log_conditional(drawn) - log_rate[:, None]))
    return np.concatenate(masks), np.concatenate(counted)


def _heaviest(masks: Masks, weights: Array, top: int) -> tuple[tuple[tuple[tuple[int, ...], float], ...], ...]:
    table = []
    for i in range(masks.shape[1]):
        seen: dict[tuple[int, ...], float] = {}
        for row in np.argsort(-weights[:, i], kind="stable"):
            members = tuple(int(j) for j in np.flatnonzero(masks[row]) if j != i)
            seen[members] = float(weights[row, i])
            if len(seen) == top:
                break
        table.append(tuple(seen.items()))
    return tuple(table)
