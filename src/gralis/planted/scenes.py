"""A scene: where marks stand, of which kind they are, and which class follows from them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gralis.arrays import Array

__all__ = ["Rule", "Scene"]

Rule = Literal["one", "together", "distractor"]
_AGREES = 0.8  # how often the distractor goes with the class
_THERE = 2 / 3  # how often there is a distractor, so that a network also sees examples without one
_BLANK = 0.15  # how often the deciding mark is missing; the class is then random, so that absence says nothing


@dataclass(frozen=True, eq=False)
class Scene:
    """Several examples of one rule: the class is y = kind of the mark ("one", "distractor") or y = kind_1 and kind_2.

    In some examples of "one" and "distractor" the deciding mark is missing, and the class is random. A network then
    learns that absence says nothing; otherwise it may take the absence of one kind for the other kind.

    Attributes
    ----------
    rule : {"one", "together", "distractor"}
        What decides the class. "one": a single mark, by its kind. "together": two marks, of which both must be of kind
        1. "distractor": a single mark, and in two of three examples another one, which agrees with the class in 80% of
        them and decides nothing.
    noise : array of shape (n, n_features)
        A number per feature, from which the background is made.
    places : array of shape (n, n_marks)
        The feature in which each deciding mark stands.
    kinds : array of shape (n, n_marks)
        The kind of each deciding mark, 0 or 1.
    shown : array of shape (n,)
        Whether the deciding marks are there.
    y : array of shape (n,)
        The class.
    distractor_place, distractor_kind : array of shape (n,)
        The feature and the kind of the distractor; the place is -1 if there is none.
    seed : int
        The seed of the background.
    """

    rule: Rule
    noise: Array
    places: NDArray[np.int64]
    kinds: NDArray[np.int64]
    shown: NDArray[np.bool_]
    y: NDArray[np.int64]
    distractor_place: NDArray[np.int64]
    distractor_kind: NDArray[np.int64]
    seed: int

    @classmethod
    def draw(cls, rule: Rule, n: int, n_features: int, seed: int, fixed: bool = False) -> Scene:
        """n random examples. The marks stand in random features, or always in the same ones if `fixed`."""
        rng = np.random.default_rng(seed)
        n_marks = 2 if rule == "together" else 1
        order = np.tile(np.arange(n_features), (n, 1))
        if not fixed:
            order = rng.permuted(order, axis=1)
        kinds = rng.integers(0, 2, (n, n_marks))
        if rule == "together":  # both classes alike: half of the examples have both marks
            kinds[rng.random(n) < 1 / 3] = 1
        shown = (rng.random(n) >= _BLANK) | (rule == "together")
        y = np.where(shown, kinds.all(1), rng.integers(0, 2, n))
        there = (rng.random(n) < _THERE) & (rule == "distractor")
        return cls(
            rule,
            rng.standard_normal((n, n_features)),
            places=order[:, :n_marks],
            kinds=kinds,
            shown=shown,
            y=y,
            distractor_place=np.where(there, order[:, n_marks], -1),
            distractor_kind=np.where(rng.random(n) < _AGREES, y, 1 - y),
            seed=seed,
        )

    @property
    def evidence(self) -> NDArray[np.bool_]:
        """Which features decide the class, (n, n_features)."""
        return self._at(self.places)

    @property
    def distractor(self) -> NDArray[np.bool_]:
        """Which feature holds the distractor, (n, n_features)."""
        return self._at(np.maximum(self.distractor_place, 0)[:, None]) & (self.distractor_place >= 0)[:, None]

    @property
    def telling(self) -> NDArray[np.int64]:
        """The examples that say something about a method: the marks are there, both of them, and the distractor too."""
        told = self.shown.copy()
        if self.rule == "together":
            told &= self.y == 1
        if self.rule == "distractor":
            told &= self.distractor_place >= 0
        return np.flatnonzero(told)

    def take(self, rows: NDArray[np.int64]) -> Scene:
        """Some of the examples."""
        per_example = ("noise", "places", "kinds", "shown", "y", "distractor_place", "distractor_kind")
        return replace(self, **{name: getattr(self, name)[rows] for name in per_example})

    def with_other_evidence(self) -> Scene:
        """The same examples with the first deciding mark of the other kind."""
        kinds = self.kinds.copy()
        kinds[:, 0] = 1 - kinds[:, 0]
        return replace(self, kinds=kinds)

    def with_other_distractor(self) -> Scene:
        """The same examples with the distractor of the other kind."""
        return replace(self, distractor_kind=1 - self.distractor_kind)

    def without_distractor(self) -> Scene:
        """The same examples with an ordinary background in place of the distractor."""
        return replace(self, distractor_place=np.full_like(self.distractor_place, -1))

    def _at(self, places: NDArray[np.int64]) -> NDArray[np.bool_]:
        marked = np.zeros(self.noise.shape, dtype=bool)
        np.put_along_axis(marked, places, True, axis=1)
        return marked
