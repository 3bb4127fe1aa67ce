"""A generation behind an API: coalitions of features become prompts, and the prompts are asked for once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gralis.api.explain import prepare
from gralis.arrays import Array
from gralis.errors import ModelError, bad
from gralis.features import Features
from gralis.models import blackbox
from gralis.targets import total
from gralis.text.absence import Absent
from gralis.text.closer_look import drill_budget
from gralis.text.generation import Generation
from gralis.text.prompt import Prompt
from gralis.text.remote_model import RemoteModel, Reply
from gralis.text.spans import GRAINS, Span, given_spans, split

__all__ = ["RemoteQuestion", "remote_spans"]


@dataclass(frozen=True, eq=False)
class RemoteQuestion:
    """Why this answer, asked of an API: everything but the features."""

    model: RemoteModel
    text: str
    continuation: str
    absent: Absent
    options: Mapping[str, Any]
    owner: str

    def explained(self, spans: Sequence[Span], budget: int | None) -> Generation:
        """The matrix for these features. A dry run first says which prompts are needed."""
        self._require_rest(spans)
        (whole,) = self.model.ask([self.text], self.continuation)
        n_tokens = len(whole.logprobs)
        asked: list[str] = []
        self._run(lambda masks: self._noted(masks, spans, n_tokens, asked), spans, n_tokens, budget).results()
        self.model.check(asked, self.continuation)
        explanations = self._run(lambda masks: self._scores(masks, spans, n_tokens), spans, n_tokens, budget).results()
        tokens = whole.tokens or tuple(f"token {number}" for number in range(1, n_tokens + 1))
        answer = self.continuation.strip() or "".join(tokens)
        return Generation.of(explanations, tokens, self.text, spans, answer, "logprob", self._deeper)

    def _run(self, scores: Any, spans: Sequence[Span], n_tokens: int, budget: int | None) -> Any:
        meta = {"text": self.text, "spans": [[span.start, span.stop] for span in spans], "grain": "parts"}
        features = Features((np.arange(len(spans)),), [span.name for span in spans], "tokens", meta)
        options = {**self.options, "budget": budget, "target": [total, *range(n_tokens)], "features": features}
        return prepare(blackbox(scores), np.ones(len(spans)), options, self.owner)

    def _scores(self, masks: Array, spans: Sequence[Span], n_tokens: int) -> Array:
        """(rows, n_tokens), one prompt per row."""
        replies = self.model.ask([self._prompt(row > 0.5, spans) for row in masks], self.continuation)
        for reply in replies:
            _require_length(reply, n_tokens)
        return np.array([reply.logprobs for reply in replies])

    def _noted(self, masks: Array, spans: Sequence[Span], n_tokens: int, asked: list[str]) -> Array:
        asked += [self._prompt(row > 0.5, spans) for row in masks]
        return np.zeros((len(masks), n_tokens))

    def _prompt(self, present: Any, spans: Sequence[Span]) -> str:
        """The prompt with absent features left out or replaced."""
        texts = self.absent if isinstance(self.absent, Mapping) else {}
        pieces, end = [], 0
        for number in sorted(range(len(spans)), key=lambda number: spans[number].start):
            span = spans[number]
            words = span.of(self.text) if present[number] else texts.get(span.name, "")
            pieces += [self.text[end : span.start], words]
            end = span.stop
        return "".join([*pieces, self.text[end:]])

    def _require_rest(self, spans: Sequence[Span]) -> None:
        if not self._prompt(np.zeros(len(spans), dtype=bool), spans).strip():
            advice = "Keep a fixed part (gralis.text.fill), or replace features by other texts."
            allowed = "features that leave some text when all of them are absent"
            raise bad("features", self.owner, allowed, "features that cover the whole prompt", advice)

    def _deeper(self, spans: tuple[Span, ...], known: Generation, budget: int | None) -> Generation:
        """A closer look; prompts that were asked before are in the cache."""
        return self.explained(spans, drill_budget(self.options["budget"], budget, len(spans)))


def remote_spans(prompt: Prompt | str, features: object, owner: str) -> tuple[Span, ...]:
    """The features of a prompt without a tokenizer: any grain but tokens, spans, or the parts of a Prompt."""
    text = prompt if isinstance(prompt, str) else prompt.text
    if features is None and isinstance(prompt, Prompt):
        return prompt.spans
    if isinstance(features, str):
        if features not in GRAINS[1:]:
            allowed = f"one of {', '.join(map(repr, GRAINS[1:]))} or spans, for an API"
            raise bad("features", owner, allowed, repr(features))
        return split(text, features)
    return given_spans(text, features, owner)


def _require_length(reply: Reply, n_tokens: int) -> None:
    if len(reply.logprobs) != n_tokens:
        raise ModelError(
            f"The API returned {len(reply.logprobs)} log-probabilities for one prompt and {n_tokens} for another; it "
            f"must return one for every token of the same continuation."
        )
