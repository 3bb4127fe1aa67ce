"""How the questions of one run are numbered: every target at every input; and the pairs of inputs and baselines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from gralis.arrays import Array

Numbers = TypeVar("Numbers", int, NDArray[np.int64], Tensor)
Rows = TypeVar("Rows", NDArray[np.bool_], NDArray[np.uint8])

__all__ = ["Questions"]


@dataclass(frozen=True)
class Questions:
    """One question is one target at one input; questions are numbered input by input, then target by target.

    A pair is one input with one of its baselines; pairs are numbered input by input, then baseline by baseline. All
    inputs are evaluated on the same rows, and rows of several inputs follow one another input by input. The targets of
    an input share its forwards and its rays; every question has its own gradients.

    >>> questions = Questions(n_inputs=2, n_targets=3)
    >>> len(questions), questions.input_of(4), questions.target_of(4)
    (6, 1, 1)
    """

    n_inputs: int = 1
    n_targets: int = 1
    n_baselines: int = 1

    def __len__(self) -> int:
        return self.n_inputs * self.n_targets

    @property
    def n_pairs(self) -> int:
        return self.n_inputs * self.n_baselines

    def number(self, input: int, target: int) -> int:
        """The question about this target at this input."""
        return input * self.n_targets + target

    def input_of(self, question: int) -> int:
        """The input of a question."""
        return question // self.n_targets

    def target_of(self, question: int) -> int:
        """The target of a question."""
        return question % self.n_targets

    def input_of_pair(self, pair: Numbers) -> Numbers:
        """The input of every pair."""
        return pair // self.n_baselines

    def pairs(self, baseline: NDArray[np.int64]) -> NDArray[np.int64]:
        """The pairs of rows with these baselines, at every input."""
        if self.n_inputs == 1:
            return baseline
        return np.concatenate([baseline + k * self.n_baselines for k in range(self.n_inputs)])

    def at_every_input(self, rows: Rows) -> Rows:
        """The same rows for every input, (n_inputs * n_rows, ...)."""
        return rows if self.n_inputs == 1 else np.concatenate([rows] * self.n_inputs)

    def by_question(self, values: Array) -> Array:
        """(n_inputs * n_rows, n_targets) -> (n_questions, n_rows)."""
        return values.reshape(self.n_inputs, -1, self.n_targets).swapaxes(1, 2).reshape(len(self), -1)

    def by_row(self, values: Sequence[Array] | Array) -> Array:
        """(n_questions, n_rows) -> (n_inputs * n_rows, n_targets), the inverse of `by_question`."""
        shape = (self.n_inputs, self.n_targets, -1)
        return np.stack(list(values)).reshape(shape).swapaxes(1, 2).reshape(-1, self.n_targets)

    def cut(self, part: slice, n_rows: int) -> Iterator[tuple[int, slice, slice]]:
        """Cut a slice of the rows of all inputs where an input ends: (input, slice of its rows, slice of the part).

        >>> list(Questions(n_inputs=2).cut(slice(2, 6), n_rows=4))
        [(0, slice(2, 4, None), slice(0, 2, None)), (1, slice(0, 2, None), slice(2, 4, None))]
        """
        for number in range(part.start // n_rows, -(-part.stop // n_rows)):
            first = number * n_rows
            start, stop = max(part.start, first), min(part.stop, first + n_rows)
            yield number, slice(start - first, stop - first), slice(start - part.start, stop - part.start)
