"""What is explained, one input at a time: a picture or a row, with its baseline and its features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from gralis.arrays import Array
from gralis.baselines import sample
from gralis.baselines.recipes import RECIPES
from gralis.cli.tables import Table
from gralis.errors import GralisError
from gralis.features import Features, columns, grid, slic
from gralis.files.images import Preprocessing
from gralis.models.layer import Layer

_COLUMNS = "columns"  # the baseline of a table: the mean of every column


@dataclass(frozen=True)
class Subject:
    """One input, ready to be explained."""

    x: Any
    baseline: Any
    features: Features | None
    picture: Array | None = None  # (height, width, 3), for heat map and report
    preprocessing: dict[str, Any] | None = None  # what made x of the picture


@dataclass(frozen=True)
class Pictures:
    """Image files, cut into superpixels; at a layer, one feature per place of its output."""

    files: Sequence[Path]
    preprocessing: Preprocessing
    segments: int
    compactness: float
    baseline: str

    def names(self) -> list[str]:
        return [str(path) for path in self.files]

    def subject(self, index: int, model: Any, layer: str | None) -> Subject:
        picture = self.preprocessing.picture(self.files[index])
        x = self.preprocessing.tensor(picture)
        features: Features | None
        if layer is None:
            features = slic(picture, self.segments, self.compactness, channel_axis=2, shape=tuple(x.shape))
        else:
            features = _places(model, layer, x)
        baseline, how = number_or_name(self.baseline, tuple(RECIPES)), asdict(self.preprocessing)
        return Subject(x, baseline, features, None if layer else self.preprocessing.shown(x.numpy()), how)


@dataclass(frozen=True)
class Rows:
    """Rows of a table; one feature per column."""

    table: Table
    numbers: Sequence[int]
    baseline: str

    def names(self) -> list[str]:
        return [f"{self.table.path.stem} row {number}" for number in self.numbers]

    def subject(self, index: int, model: Any, layer: str | None) -> Subject:
        features = None if layer else columns(self.table.names)
        return Subject(self.table.row(self.numbers[index]), self._baseline(), features)

    def _baseline(self) -> Any:
        if self.baseline == _COLUMNS:
            return self.table.rows.mean(0)
        kind, _, count = self.baseline.partition(":")
        if kind == "sample" and count.isdecimal():
            return sample(self.table.rows, min(int(count), self.table.n_rows))
        return number_or_name(self.baseline, (_COLUMNS, "sample:N (N rows of the table)"))


def number_or_name(text: str, names: tuple[str, ...]) -> float | str:
    """A baseline as it stands on the command line."""
    if text in names:
        return text
    try:
        number = float(text)
    except ValueError:
        number = np.nan
    if not np.isfinite(number):
        raise GralisError(f"--baseline must be a number or one of {', '.join(names)}. Got {text!r}.")
    return number


def _places(model: Any, layer: str, x: torch.Tensor) -> Features | None:
    """One feature per place of a layer that keeps a map (channels, height, width); else each coordinate."""
    shape = tuple(Layer.find(model, layer).output(x[None]).shape[1:])
    return grid(shape, 1) if len(shape) == 3 else None
