"""Worlds: how a scene becomes pictures, rows of a table or sentences, and what a feature is in each of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from gralis.arrays import Array
from gralis.features import Features, columns, grid, tokens
from gralis.planted.scenes import Scene

__all__ = ["PlantedPictures", "PlantedSentences", "PlantedTable", "World"]

Mark = Literal["shape", "colour", "texture"]


class World(Protocol):
    """What a world must have: features, places that are fixed or not, and a way to draw a scene."""

    @property
    def n_features(self) -> int:
        """The number of features."""

    @property
    def fixed(self) -> bool:
        """Whether the marks always stand in the same features."""

    def draw(self, scene: Scene) -> NDArray[np.generic]:
        """The inputs of a network, one per example."""

    def features(self) -> Features:
        """What is explained."""


@dataclass(frozen=True)
class PlantedPictures:
    """Pictures of 3 x 24 x 24 on noisy grey; a feature is one of 4 x 4 cells, and a mark fills a cell.

    Parameters
    ----------
    mark : {"shape", "colour", "texture"}, default="shape"
        How the two kinds of a deciding mark differ: a cross or a ring, red or blue, lying or standing stripes.
    """

    mark: Mark = "shape"
    n_features: int = 16
    fixed: bool = False
    cell: int = 6

    def draw(self, scene: Scene) -> Array:
        rng = np.random.default_rng([scene.seed, 1])
        n, size = len(scene.noise), 4 * self.cell
        pictures = 0.5 + 0.06 * rng.standard_normal((n, 3, size, size))
        pictures += 0.03 * self._spread(scene.noise)[:, None]  # cells differ in brightness
        for mark in range(scene.places.shape[1]):
            kinds = scene.kinds[:, mark]
            shown = kinds == 1 if scene.rule == "together" else scene.shown
            # Of two marks that count together the kind says whether the mark is there, and each has its own look.
            look = np.full(n, mark) if scene.rule == "together" else kinds
            self._stamp(pictures, scene.places[:, mark], _looks(self.mark, self.cell)[look], shown)
        beside = _looks("shape" if self.mark == "texture" else "texture", self.cell)
        self._stamp(pictures, scene.distractor_place, beside[scene.distractor_kind], scene.distractor_place >= 0)
        return np.asarray(pictures, dtype=np.float32)

    def features(self) -> Features:
        return grid((3, 4 * self.cell, 4 * self.cell), self.cell)

    def _spread(self, cells: Array) -> Array:
        return cells.reshape(-1, 4, 4).repeat(self.cell, 1).repeat(self.cell, 2)

    def _stamp(self, pictures: Array, places: NDArray[np.int64], looks: Array, shown: NDArray[np.bool_]) -> None:
        for row in np.flatnonzero(shown):
            top, left = (self.cell * int(place) for place in divmod(int(places[row]), 4))
            pictures[row, :, top : top + self.cell, left : left + self.cell] += looks[row]


def _looks(mark: Mark, size: int) -> Array:
    """What the two kinds of a mark add to a cell, (2, 3, size, size). Both have the same mean."""
    down, across = np.mgrid[:size, :size]
    if mark == "colour":
        red, blue = np.zeros((3, size, size)), np.zeros((3, size, size))
        red[0], blue[2] = 0.35, 0.35
        return np.stack([red, blue])
    if mark == "texture":
        kinds = [(down // 2 % 2) * 2 - 1, (across // 2 % 2) * 2 - 1]
    else:
        from_middle = np.hypot(down - (size - 1) / 2, across - (size - 1) / 2)
        kinds = [(down == across) | (down + across == size - 1), (from_middle > 1.5) & (from_middle < 2.8)]
    planes = [np.asarray(kind, dtype=float) for kind in kinds]
    return np.stack([np.broadcast_to(0.3 * (plane - plane.mean()) / plane.std(), (3, size, size)) for plane in planes])


@dataclass(frozen=True)
class PlantedTable:
    """Rows of 12 normal columns; a mark is the sign of a column, and its column is always the same."""

    n_features: int = 12
    fixed: bool = True

    def draw(self, scene: Scene) -> Array:
        rows = np.array(scene.noise)
        for mark in range(scene.places.shape[1]):
            _set_sign(rows, scene.places[:, mark], scene.kinds[:, mark])
            rows[~scene.shown, scene.places[~scene.shown, mark]] = 0.0
        there = np.flatnonzero(scene.distractor_place >= 0)
        signed = rows[there]
        _set_sign(signed, scene.distractor_place[there], scene.distractor_kind[there])
        rows[there] = signed
        return np.asarray(rows, dtype=np.float32)

    def features(self) -> Features:
        return columns([f"column {number}" for number in range(self.n_features)])


def _set_sign(rows: Array, places: NDArray[np.int64], kinds: NDArray[np.int64]) -> None:
    at = places[:, None]
    size = np.abs(np.take_along_axis(rows, at, axis=1)) + 0.1
    np.put_along_axis(rows, at, size * (2 * kinds[:, None] - 1), axis=1)


@dataclass(frozen=True)
class PlantedSentences:
    """Sentences of 10 words out of 40; words 0 and 1 are the kinds of a mark, 2 and 3 those of a second one."""

    n_features: int = 10
    fixed: bool = False
    n_words: int = 40

    def draw(self, scene: Scene) -> NDArray[np.int64]:
        rng = np.random.default_rng([scene.seed, 1])
        words = rng.integers(6, self.n_words, scene.noise.shape)
        for mark in range(scene.places.shape[1]):
            there = np.flatnonzero(scene.shown)
            words[there, scene.places[there, mark]] = 2 * mark + scene.kinds[there, mark]
        there = np.flatnonzero(scene.distractor_place >= 0)
        words[there, scene.distractor_place[there]] = 4 + scene.distractor_kind[there]
        return np.asarray(words, dtype=np.int64)

    def features(self) -> Features:
        return tokens(range(self.n_features), names=[f"word {number}" for number in range(self.n_features)])
