"""Numbers for every token of an answer and every feature of a prompt, with intervals that hold for all together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gralis.arrays import Array
from gralis.certificates.simultaneous import half_widths
from gralis.estimators import Estimate
from gralis.results.result import Result
from gralis.results.tables import value_text
from gralis.text.spans import visible

__all__ = ["TokenMatrix"]

_MOST_TOKENS, _MOST_FEATURES = 60, 8


@dataclass(frozen=True, eq=False, repr=False)
class TokenMatrix(Result):
    """One number per token of an answer and feature of its prompt.

    Attributes
    ----------
    tokens : tuple of str
        The tokens of the answer, the rows.
    names : tuple of str
        The features of the prompt, the columns.
    estimates : tuple of Estimate
        The values of every row with their errors.
    """

    tokens: tuple[str, ...]
    names: tuple[str, ...]
    estimates: tuple[Estimate, ...]

    @property
    def values(self) -> Array:
        """The numbers, (n_tokens, n_features)."""
        return np.stack([estimate.values for estimate in self.estimates])

    @property
    def _numbers(self) -> Array:
        return self.values

    @property
    def stderr(self) -> Array:
        """The standard error of every number, (n_tokens, n_features)."""
        return np.stack([estimate.stderr for estimate in self.estimates])

    @property
    def exact(self) -> bool:
        """Whether no number has an error above rounding."""
        return all(estimate.exact for estimate in self.estimates)

    @property
    def _exact_numbers(self) -> NDArray[np.bool_]:
        return np.repeat([[estimate.exact] for estimate in self.estimates], len(self.names), axis=1)

    def _half_widths(self, level: float) -> Array:
        """Each row holds with an equal share of 1 - level, so that all rows hold together (Bonferroni)."""
        shares = max(sum(not estimate.exact for estimate in self.estimates), 1)
        return np.stack([half_widths(estimate, 1 - (1 - level) / shares) for estimate in self.estimates])

    def combined(self, groups: Sequence[Sequence[int]], names: Sequence[str]) -> TokenMatrix:
        """The sums over groups of features, with the errors of sums."""
        rows = np.zeros((len(groups), len(self.names)))
        for row, members in zip(rows, groups, strict=True):
            row[list(members)] = 1.0
        return TokenMatrix(self.tokens, tuple(names), tuple(estimate.combined(rows) for estimate in self.estimates))

    def to_frame(self) -> Any:
        """A pandas table with one row per token and feature: token, position, feature, value, stderr, low, high."""
        import pandas

        intervals, values, errors = self.interval(), self.values, self.stderr
        lines = [
            {
                "token": token,
                "position": row,
                "feature": name,
                "value": values[row, column],
                "stderr": errors[row, column],
                "low": intervals[row, column, 0],
                "high": intervals[row, column, 1],
            }
            for row, token in enumerate(self.tokens)
            for column, name in enumerate(self.names)
        ]
        return pandas.DataFrame(lines)

    def __repr__(self) -> str:
        return "\n".join(self._table())

    def _table(self) -> list[str]:
        """One line per token, one column per feature; the features with the largest values come first."""
        values, half = self.values, self.printed_half_widths
        order = np.argsort(-np.abs(values).max(0), kind="stable")[:_MOST_FEATURES]
        heads = [_short(self.names[i]) for i in order]
        cells = [[value_text(values[row, i], half[row, i], 3) for i in order] for row in range(len(self.tokens))][
            :_MOST_TOKENS
        ]
        widths = [max(len(head), *(len(row[k]) for row in cells)) for k, head in enumerate(heads)]
        first = max(5, *(len(visible(token)) for token in self.tokens[:_MOST_TOKENS]))
        lines = [f"{'token':<{first}}  " + "  ".join(f"{h:>{w}}" for h, w in zip(heads, widths, strict=True))]
        for token, row in zip(self.tokens, cells, strict=False):
            lines.append(
                f"{visible(token):<{first}}  " + "  ".join(f"{c:>{w}}" for c, w in zip(row, widths, strict=True))
            )
        if len(self.tokens) > _MOST_TOKENS:
            lines.append(f"({len(self.tokens) - _MOST_TOKENS} more tokens)")
        if len(self.names) > len(order):
            lines.append(f"({len(self.names) - len(order)} more features)")
        return [line.rstrip() for line in lines]


def _short(name: str) -> str:
    return name if len(name) <= 24 else f"{name[:23]}…"
