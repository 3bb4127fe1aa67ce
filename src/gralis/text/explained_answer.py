"""What is known about an answer: the matrix, the prompt, the whole answer and every token of it."""

from __future__ import annotations

from dataclasses import dataclass

from gralis.arrays import Array
from gralis.evaluation.cost import Cost
from gralis.results.explanation import Explanation
from gralis.results.explanations import Explanations
from gralis.text.spans import Span
from gralis.text.token_matrix import TokenMatrix

__all__ = ["ExplainedAnswer"]


@dataclass(frozen=True, eq=False, repr=False)
class ExplainedAnswer(TokenMatrix):
    """The numbers of a generation with everything that pages and pictures show; see `Generation`."""

    text: str
    spans: tuple[Span, ...]
    total: Explanation
    each: Explanations
    answer: str
    score: str = "logprob"

    @property
    def scores(self) -> Array:
        """The score of every token with the whole prompt, (n_tokens,)."""
        return self.each.f_x

    @property
    def cost(self) -> Cost:
        """What all numbers cost together; one forward serves every token."""
        return self.total.cost

    @property
    def method(self) -> str:
        """The estimator that made the values."""
        return self.total.method

    @property
    def doubts(self) -> tuple[str, ...]:
        """Why the intervals may not hold, in sentences."""
        return tuple(dict.fromkeys([*self.total.doubts, *self.each.doubts]))
