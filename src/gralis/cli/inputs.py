"""What is explained, one input at a time: a picture or a row of a table, with its baseline and its features."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
from gralis.models.estimator_model import is_estimator
from gralis.models.layer import Layer

__all__ = ["PictureInputs", "PreparedInput", "RowInputs", "background", "baseline_from_text"]

_COLUMNS = "columns"  # the baseline of a table: the mean of every column
_BACKGROUND = 100  # rows of a table with which a row for an estimator is compared


@dataclass(frozen=True)
class PreparedInput:
    """One input, ready to be explained."""

    x: Any
    baseline: Any
    features: Features | None
    picture: Array | None = None  # (height, width, 3), for heat map and report
    preprocessing: dict[str, Any] | None = None  # how x was made from the picture


@dataclass(frozen=True)
class PictureInputs:
    """Image files, cut into superpixels. If a layer is explained, each position of its output is a feature."""

    files: Sequence[Path]
    preprocessing: Preprocessing
    segments: int
    compactness: float
    baseline: str

    def names(self) -> list[str]:
        return [str(path) for path in self.files]

    def prepare(self, index: int, model: Any, layer: str | None) -> PreparedInput:
        picture = self.preprocessing.picture(self.files[index])
        x = self.preprocessing.tensor(picture)
        features: Features | None
        if layer is None:
            features = slic(picture, self.segments, self.compactness, channel_axis=2, shape=tuple(x.shape))
        else:
            features = _positions(model, layer, x)
        baseline = baseline_from_text(self.baseline, tuple(RECIPES))
        shown = None if layer else self.preprocessing.shown(x.numpy())
        return PreparedInput(x, baseline, features, shown, asdict(self.preprocessing))


@dataclass(frozen=True)
class RowInputs:
    """Rows of a table; each column is a feature. Without a baseline a row is compared with the means of the columns.

    A row for an estimator is compared with rows of the table.
    """

    table: Table
    numbers: Sequence[int]
    baseline: str | None

    def names(self) -> list[str]:
        return [f"{self.table.path.stem} row {number}" for number in self.numbers]

    def prepare(self, index: int, model: Any, layer: str | None) -> PreparedInput:
        if is_estimator(model):
            return PreparedInput(self.table.frame_row(self.numbers[index]), background(self.table, self.baseline), None)
        features = None if layer else columns(self.table.names)
        baseline = row_baseline(self.baseline or _COLUMNS, lambda: self.table.rows, lambda: self.table.means)
        return PreparedInput(self.table.row(self.numbers[index]), baseline, features)


def background(table: Table, text: str | None) -> Any:
    """What a row for an estimator is compared with: by default up to 100 rows of the table."""
    text = text or f"sample:{_BACKGROUND}"
    return row_baseline(text, lambda: table.frame, lambda: table.frame.mean(numeric_only=True))


def row_baseline(text: str, rows: Callable[[], Any], means: Callable[[], Any]) -> Any:
    """The value of --baseline for a table: the means of its columns, rows of it, or a number."""
    if text == _COLUMNS:
        return means()
    kind, _, count = text.partition(":")
    if kind == "sample" and count.isdecimal():
        every = rows()
        return sample(every, min(int(count), len(every)))
    return baseline_from_text(text, (_COLUMNS, "sample:N (N rows of the table)"))


def baseline_from_text(text: str, names: tuple[str, ...]) -> float | str:
    """The value of --baseline: a number, or one of these names.

    >>> baseline_from_text("0.5", ("blur",)), baseline_from_text("blur", ("blur",))
    (0.5, 'blur')
    """
    if text in names:
        return text
    try:
        number = float(text)
    except ValueError:
        number = np.nan
    if not np.isfinite(number):
        raise GralisError(f"--baseline must be a number or one of {', '.join(names)}. Got {text!r}.")
    return number


def _positions(model: Any, layer: str, x: torch.Tensor) -> Features | None:
    """One feature per position if the layer has a map (channels, height, width); else one per coordinate."""
    shape = tuple(Layer.find(model, layer).output(x[None]).shape[1:])
    return grid(shape, 1) if len(shape) == 3 else None
