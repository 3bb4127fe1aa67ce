"""The explanation of a text: an ordinary explanation that can look closer at one of its features."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

from gralis.results.explanation import Explanation
from gralis.text.closer_look import require_model
from gralis.text.spans import Span

__all__ = ["TextExplanation"]

#: Splits a feature of a text: (the explanation, feature, into, budget).
Deeper = Callable[["TextExplanation", int | str, str | Sequence[object] | None, int | None], "TextExplanation"]


@dataclass(frozen=True, eq=False, repr=False)
class TextExplanation(Explanation):
    """What `text.explain` returns: an `Explanation` whose features are parts of a text, with `drill`."""

    _deeper: Deeper | None = None

    @staticmethod
    def of(explanation: Explanation, deeper: Deeper | None) -> TextExplanation:
        """The same explanation, which can look closer."""
        own = {each.name: getattr(explanation, each.name) for each in fields(Explanation)}
        return TextExplanation(**own, _deeper=deeper)

    @property
    def spans(self) -> tuple[Span, ...]:
        """Where the features stand in the text."""
        places: Any = self.features.meta["spans"]
        return tuple(Span(int(a), int(b), name) for (a, b), name in zip(places, self.names, strict=True))

    def extend(self, budget: int) -> TextExplanation:
        """Add more replicates of the same plan to the same ledger.

        Parameters
        ----------
        budget : int
            How many more gradients to spend; forwards for a plan without rays.

        Returns
        -------
        TextExplanation
            The explanation from all rays together.
        """
        return TextExplanation.of(super().extend(budget), self._deeper)

    def drill(
        self, feature: int | str, into: str | Sequence[object] | None = None, budget: int | None = None
    ) -> TextExplanation:
        """Split one feature into its parts and keep the others whole, at a fraction of the cost.

        With a plan without rays, coalition values stay known in which the feature is wholly there or wholly absent.

        Parameters
        ----------
        feature : int or str
            The feature, by number or name.
        into : {"sentences", "words", "tokens", "passages"} or list of (start, stop, name), optional
            Its parts; by default sentences, or words if it has one sentence, or tokens if it has one word.
        budget : int, optional
            The gradients at most (forwards, for a plan without rays); by default a third of what this explanation may
            cost.

        Returns
        -------
        TextExplanation
            The same text and target, with the parts in the place of the feature.
        """
        require_model(self._deeper)
        assert self._deeper is not None
        return self._deeper(self, feature, into, budget)
