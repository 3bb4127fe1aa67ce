"""A text as its tokens: ids, where each stands in the text, and which of them the tokenizer added or reserves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gralis.errors import GralisError, bad
from gralis.features import Features
from gralis.features.sequences import distinct_names
from gralis.text.prompt import Prompt
from gralis.text.spans import GRAINS, Span, cut, given_spans, named, visible

__all__ = ["Encoded", "TextFeatures", "encode", "reserved_ids", "spans_for"]

_ROLES = ("bos", "eos", "mask", "cls", "sep")  # not "pad": many give it the token of unknown words


@dataclass(frozen=True)
class Encoded:
    """The tokens of a text.

    Attributes
    ----------
    text : str
        The text.
    ids : tuple of int
        The token ids, special tokens included.
    offsets : tuple of (int, int)
        The first character of every token and the one after its last; equal for a token without characters.
    special : tuple of bool
        Whether a token is special; special tokens are never part of a feature.
    types : tuple of int or None
        The token_type_ids, if the tokenizer makes them.
    """

    text: str
    ids: tuple[int, ...]
    offsets: tuple[tuple[int, int], ...]
    special: tuple[bool, ...]
    types: tuple[int, ...] | None = None

    def token_spans(self) -> tuple[Span, ...]:
        """One span per token that is not special; the tokens that share a character, as its bytes do, share a span."""
        found: list[tuple[int, int]] = []
        for (a, b), special in zip(self.offsets, self.special, strict=True):
            if special or a == b:
                continue
            if found and a < found[-1][1]:
                found[-1] = found[-1][0], max(b, found[-1][1])
            else:
                found.append((a, b))
        parts = [self.text[a:b] for a, b in found]
        names = distinct_names([part if part.strip() else visible(part) for part in parts])
        return tuple(Span(a, b, name) for (a, b), name in zip(found, names, strict=True))

    def written(self, place: int) -> bool:
        """Whether the token stands in the text itself; the tokenizer adds others, which have no characters."""
        start, stop = self.offsets[place]
        return start < stop

    def owners(self, spans: Sequence[Span]) -> NDArray[np.int64]:
        """The number of the span of every token, (length,); -1 for special tokens and those outside all spans."""
        owner = np.full(len(self.ids), -1, dtype=np.int64)
        order = sorted(range(len(spans)), key=lambda number: spans[number].start)
        starts = np.array([spans[number].start for number in order])
        for place, special in enumerate(self.special):
            at = self._begin(place)
            before = int(np.searchsorted(starts, at, side="right")) - 1
            if not special and self.written(place) and before >= 0 and at < spans[order[before]].stop:
                owner[place] = order[before]
        for number, span in enumerate(spans):
            self._check(span, np.flatnonzero(owner == number), owner)
        return owner

    def ids_within(self, start: int, stop: int) -> list[int]:
        """The ids of the tokens that begin in text[start:stop], special ones among them."""
        places = range(len(self.ids))
        return [self.ids[place] for place in places if self.written(place) and start <= self._begin(place) < stop]

    def _begin(self, place: int) -> int:
        """The first character of a token that is no blank: many tokens begin with the space before their word."""
        a, b = self.offsets[place]
        blank = len(self.text[a:b]) - len(self.text[a:b].lstrip())
        return a + blank if a + blank < b else a

    def with_spans(self, spans: Sequence[Span], grain: str) -> TextFeatures:
        """The tokens with these spans as features."""
        return TextFeatures(self, tuple(spans), grain, self.owners(spans))

    def _check(self, span: Span, places: NDArray[np.int64], owner: NDArray[np.int64]) -> None:
        if not len(places):
            raise GralisError(
                f"The feature {span.name!r} covers no token: its characters {span.start} to {span.stop} belong to "
                f"tokens of other features or to special tokens; give a span that begins at least one token."
            )
        inside = [p for p in range(places[0], places[-1]) if self.special[p]]
        if inside:
            a, b = self.offsets[inside[0]]
            raise GralisError(
                f"The feature {span.name!r} has the special token {self.text[a:b]!r} in its middle, and special tokens "
                f"are never features; end the feature before it, or take the special token out of the text."
            )


@dataclass(frozen=True)
class TextFeatures:
    """The features of one text: its tokens, its spans, and which tokens belong to which span."""

    encoded: Encoded
    spans: tuple[Span, ...]
    grain: str
    owner: NDArray[np.int64] = field(repr=False)

    @property
    def n_features(self) -> int:
        return len(self.spans)

    def features(self) -> Features:
        """One coordinate per feature, with the text and its spans for the views."""
        meta = {
            "text": self.encoded.text,
            "spans": [[span.start, span.stop] for span in self.spans],
            "grain": self.grain,
        }
        return Features((np.arange(self.n_features),), [span.name for span in self.spans], "tokens", meta)


def encode(tokenizer: Any, text: str, owner: str) -> Encoded:
    """The tokens of the text with their places; a tokenizer that does not know the places is refused."""
    if not callable(tokenizer):
        raise bad("tokenizer", owner, "a transformers tokenizer", f"a {type(tokenizer).__name__}")
    try:
        encoding = tokenizer(text, return_offsets_mapping=True, return_special_tokens_mask=True)
        ids, offsets = encoding["input_ids"], encoding["offset_mapping"]
    except (NotImplementedError, TypeError, ValueError, KeyError):
        raise bad(
            "tokenizer",
            owner,
            "one that says where its tokens stand in the text (a fast tokenizer of transformers)",
            f"a {type(tokenizer).__name__} without offsets",
            "Load it with AutoTokenizer.from_pretrained(..., use_fast=True).",
        ) from None
    reserved = reserved_ids(tokenizer)
    added = encoding.get("special_tokens_mask", [0] * len(ids))
    special = tuple(bool(mark) or token in reserved for mark, token in zip(added, ids, strict=True))
    types = encoding.get("token_type_ids")
    if all(special):
        raise bad("text" if owner == "text.explain" else "prompt", owner, "a text with at least one token", repr(text))
    kept = _without_twice(ids, offsets, special)
    return Encoded(
        text,
        tuple(map(int, ids[kept])),
        tuple((int(a), int(b)) for a, b in offsets[kept]),
        special[kept],
        None if types is None else tuple(map(int, types[kept])),
    )


def reserved_ids(tokenizer: Any) -> set[int]:
    """The ids of special tokens: not that of unknown words, unless it also begins or ends texts, as that of GPT-2."""
    roles = {getattr(tokenizer, f"{role}_token_id", None) for role in _ROLES}
    return set(getattr(tokenizer, "all_special_ids", ())) - ({getattr(tokenizer, "unk_token_id", None)} - roles)


def _without_twice(ids: Sequence[int], offsets: Sequence[Sequence[int]], special: Sequence[bool]) -> slice:
    """The tokens without a first or last special token that the tokenizer adds although the text has it already.

    Chat templates write the token that begins a text, and many tokenizers add it once more.
    """
    written = [a < b for a, b in offsets]

    def twice(end: int, next_to_it: int) -> bool:
        same = len(ids) > 1 and special[end] and ids[end] == ids[next_to_it]
        return same and not written[end] and written[next_to_it]

    return slice(int(twice(0, 1)), len(ids) - int(twice(-1, -2)))


def spans_for(encoded: Encoded, prompt: Prompt | str, features: object, owner: str) -> TextFeatures:
    """The features argument as spans over the tokens: a grain, spans of the caller, or the parts of a Prompt."""
    text, grain = encoded.text, "spans"
    if features is None and isinstance(prompt, Prompt):
        spans, grain = prompt.spans, "parts"
    elif features is None or (isinstance(features, str) and features in GRAINS):
        grain = "words" if features is None else features
        spans = encoded.token_spans() if grain == "tokens" else _without_special(encoded, prompt, grain)
    else:
        spans = given_spans(text, features, owner)
    return encoded.with_spans(spans, grain)


def _without_special(encoded: Encoded, prompt: Prompt | str, grain: str) -> tuple[Span, ...]:
    """The parts of the text at this grain, or of each part of a Prompt; what is only special tokens is left out."""
    text = encoded.text
    whole = prompt.spans if isinstance(prompt, Prompt) else (Span(0, len(text), ""),)
    places = [place for span in whole for place in cut(text, grain, span.start, span.stop)]
    tokens = list(zip(encoded.offsets, encoded.special, strict=True))
    if grain == "words":
        marks = [place for place, special in tokens if special]
        places = [piece for place in places for piece in _around(place, marks)]
    starts = np.array([a + len(text[a:b]) - len(text[a:b].lstrip()) for (a, b), special in tokens if not special])
    kept = [(a, b) for a, b in places if ((starts >= a) & (starts < b)).any()]
    return named(text, kept, grain)


def _around(place: tuple[int, int], marks: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """A word without the special tokens that are written into it."""
    inside = [edge for a, b in marks if place[0] <= a < b <= place[1] for edge in (a, b)]
    edges = [place[0], *inside, place[1]]
    return [(a, b) for a, b in zip(edges[::2], edges[1::2], strict=True) if a < b]
