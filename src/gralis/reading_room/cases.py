"""The rows of the list, one per input, read from the tables of a run block by block."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gralis.many import Results
from gralis.reading_room.judgements import class_number, class_text, is_right, label_text

__all__ = ["COLUMNS", "CaseReader", "packed_floats"]

_N_TOP = 5  # features of a row
_ABOUT = ("input", "failure", "label", "target", "n_features", "f_x", "f_baseline", "residual", "certificate", "doubts")

#: The columns of a chunk of rows; `phi` is packed.
COLUMNS = ("id", "label", "class", "right", "output", "delta", "residual", "width", "sure", "doubts", "failure", "top",
           "opposed", "report", "thumb")  # fmt: skip


@dataclass(frozen=True)
class CaseReader:
    """Turns the tables of a run into rows.

    Attributes
    ----------
    results : Results
        The run.
    classes : tuple of str
        The names of the classes, or none.
    kept : array of int or None
        The features whose values all rows carry, for the statistics; None if the inputs have different features.
    """

    results: Results
    classes: tuple[str, ...]
    kept: NDArray[np.int64] | None

    @property
    def is_predicted(self) -> bool:
        """Whether the explained class is the predicted one, so that it can be right or wrong."""
        return self.results.settings.get("target") == "predicted"

    def blocks(self) -> Iterator[dict[str, list[Any]]]:
        """The columns of each block of the run, and `phi`, an array of shape (n_rows, n_kept)."""
        for values, inputs in zip(self.results.parts("values"), self.results.parts("inputs"), strict=True):
            yield self._block(values, inputs)

    def _block(self, values: Any, inputs: Any) -> dict[str, Any]:
        phi, half = (values[name].to_numpy() for name in ("phi", "half_width"))
        names, start = values["name"].to_pylist(), 0
        columns: dict[str, list[Any]] = {name: [] for name in COLUMNS}
        matrix = np.full((len(inputs), 0 if self.kept is None else len(self.kept)), np.nan, dtype=np.float32)
        for place, row in enumerate(inputs.select(_ABOUT).to_pylist()):
            stop = start + (row["n_features"] or 0)
            own = slice(start, stop)
            for name, value in self._row(row, names[own], phi[own], half[own]).items():
                columns[name].append(value)
            if self.kept is not None and stop > start:
                matrix[place] = phi[own][self.kept]
            start = stop
        return {**columns, "phi": matrix}

    def _row(self, row: dict[str, Any], names: Sequence[str], phi: Any, half: Any) -> dict[str, Any]:
        number = class_number(row["target"])
        order = np.argsort(-np.abs(phi), kind="stable")[:_N_TOP]
        failed = row["failure"] is not None
        return {
            "id": row["input"],
            "label": label_text(row["label"], self.classes),
            "class": class_text(number, self.classes),
            "right": is_right(number, row["label"], self.classes) if self.is_predicted else None,
            "output": row["f_x"],
            "delta": None if failed else row["f_x"] - row["f_baseline"],
            "residual": row["residual"],
            "width": row["certificate"],
            "sure": None if failed else bool(len(order) and abs(phi[order[0]]) > half[order[0]]),
            "doubts": row["doubts"].split("\n") if row["doubts"] else [],
            "failure": row["failure"],
            "top": [[names[i], float(phi[i]), float(half[i])] for i in order],
            "opposed": None,
            "report": None,
            "thumb": None,
        }


def packed_floats(matrix: NDArray[np.float32]) -> str:
    """The numbers of a matrix, row by row, as base64 of little-endian 32-bit floats.

    >>> packed_floats(np.ones((1, 1), dtype=np.float32))
    'AACAPw=='
    """
    return base64.b64encode(np.ascontiguousarray(matrix, dtype="<f4").tobytes()).decode()
