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
from gralis.text.absence import Absent, require_replacements
from gralis.text.answer import paired
from gralis.text.closer_look import drill_budget, opened
from gralis.text.generation import Generation
from gralis.text.prompt import Prompt
from gralis.text.remote_model import RemoteModel, Reply
from gralis.text.spans import GRAINS, Span, given_spans, split

__all__ = ["RemoteQuestion", "remote_spans"]

_NEVER = {"tolerance": 1e-12, "max_seconds": 1e9}  # limits that a run on noise does not reach


@dataclass(frozen=True, eq=False)
class RemoteQuestion:
    """Why this answer, asked of an API: everything but the features."""

    model: RemoteModel
    text: str
    continuations: tuple[str, ...]
    absent: Absent
    options: Mapping[str, Any]
    owner: str

    def explained(self, spans: Sequence[Span], budget: int | None) -> Generation:
        """The matrix for these features. A dry run first says which prompts are needed."""
        if isinstance(self.absent, Mapping):
            require_replacements(self.absent, spans, self.owner)
        self._require_rest(spans)
        self.model.check(self._needed(spans, budget), *self.continuations)
        replies = [self.model.ask([self.text], each)[0] for each in self.continuations]
        lengths = [len(reply.logprobs) for reply in replies]
        tokens = paired([reply.tokens or _numbered(len(reply.logprobs)) for reply in replies])
        run = self._run(lambda masks: self._scores(masks, spans, lengths), spans, len(tokens), self.options, budget)
        answer, *against = (
            text.strip() or "".join(reply.tokens) for text, reply in zip(self.continuations, replies, strict=True)
        )
        score = f"logprob against {against[0]!r}" if against else "logprob"
        return Generation.of(run.results(), tokens, self.text, spans, answer, score, self._deeper)

    def _needed(self, spans: Sequence[Span], budget: int | None) -> list[str]:
        """The prompts of a run that neither time nor a tolerance ends early, from a run on noise without the API."""
        asked = [self.text]
        noise = np.random.default_rng(0)

        def noted(masks: Array) -> Array:
            asked.extend(self._prompt(row > 0.5, spans) for row in masks)
            return noise.normal(size=(len(masks), 1))

        limits = {name: each for name, each in _NEVER.items() if self.options[name] is not None}
        self._run(noted, spans, 1, {**self.options, **limits, "progress": False}, budget).results()
        return asked

    def _run(
        self, scores: Any, spans: Sequence[Span], n_tokens: int, options: Mapping[str, Any], budget: int | None
    ) -> Any:
        meta = {"text": self.text, "spans": [[span.start, span.stop] for span in spans], "grain": "parts"}
        features = Features((np.arange(len(spans)),), [span.name for span in spans], "tokens", meta)
        chosen = {**options, "budget": budget, "target": [total, *range(n_tokens)], "features": features}
        return prepare(blackbox(scores), np.ones(len(spans)), chosen, self.owner)

    def _scores(self, masks: Array, spans: Sequence[Span], lengths: Sequence[int]) -> Array:
        """(rows, n_tokens), one prompt per row; the scores of the answer, perhaps minus those of the alternative."""
        prompts = [self._prompt(row > 0.5, spans) for row in masks]
        scores = np.zeros((len(prompts), max(lengths)))
        for sign, continuation, n_tokens in zip((1, -1), self.continuations, lengths, strict=False):
            replies = self.model.ask(prompts, continuation)
            for reply in replies:
                _require_length(reply, n_tokens)
            scores[:, :n_tokens] += sign * np.array([reply.logprobs for reply in replies])
        return scores

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

    def _deeper(
        self, known: Generation, feature: int | str, into: str | Sequence[object] | None, budget: int | None
    ) -> Generation:
        """A closer look; prompts that were asked before are in the cache."""
        spans = opened(known.text, known.spans, feature, into, absent=self.absent)
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


def _numbered(n_tokens: int) -> tuple[str, ...]:
    return tuple(f"token {number}" for number in range(1, n_tokens + 1))


def _require_length(reply: Reply, n_tokens: int) -> None:
    if len(reply.logprobs) != n_tokens:
        raise ModelError(
            f"The API returned {len(reply.logprobs)} log-probabilities for one prompt and {n_tokens} for another; it "
            f"must return one for every token of the same continuation."
        )
