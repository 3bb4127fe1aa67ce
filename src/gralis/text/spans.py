"""Features of a text at any grain: parts of it, each a stretch of characters with a name."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from gralis.checks import is_whole, one_of, printable, whole
from gralis.errors import GralisError, bad
from gralis.features.sequences import distinct_names

__all__ = ["GRAINS", "Span", "checked_spans", "cut", "given_spans", "named", "split", "visible", "within"]

#: How `split` cuts a text. "tokens" is left to the tokenizer.
GRAINS = ("tokens", "words", "sentences", "passages")

_WORD = re.compile(r"\S+")
_SENTENCE = re.compile(r"\S.*?(?:[.!?…]+[\"')\]]*(?=\s|$)|(?=\n)|$)", re.DOTALL)
_PASSAGE = re.compile(r"\S(?:.*?)(?=\n[ \t\r]*\n|$)", re.DOTALL)
_LONGEST_NAME = 40


@dataclass(frozen=True)
class Span:
    """The characters text[start:stop], with a name.

    Attributes
    ----------
    start, stop : int
        The first character, and the one after the last.
    name : str
        What tables and pictures call this part of the text.

    Examples
    --------
    >>> Span(0, 5, "greeting").of("Hello there")
    'Hello'
    """

    start: int
    stop: int
    name: str

    def of(self, text: str) -> str:
        """The characters of this span."""
        return text[self.start : self.stop]


def split(text: str, grain: str, start: int = 0, stop: int | None = None) -> tuple[Span, ...]:
    """The words, sentences or passages of a text, or of a part of it.

    Passages are separated by blank lines. A sentence ends with a full stop, a question mark, an exclamation mark or
    the end of its line. Names that occur several times carry their position.

    Parameters
    ----------
    text : str
        The text.
    grain : {"words", "sentences", "passages"}
        What to cut it into.
    start : int, default=0
        The first character of the part.
    stop : int, optional
        The character after the last one of the part; by default the end of the text.

    Returns
    -------
    tuple of Span

    Examples
    --------
    >>> [span.name for span in split("No. Not the film, the book.", "sentences")]
    ['No.', 'Not the film, the book.']
    >>> [span.name for span in split("the film, the book", "words")]
    ['the [0]', 'film,', 'the [2]', 'book']
    """
    if not isinstance(text, str):
        raise bad("text", "text.split", "a text", repr(text)[:200])
    start = whole(start, "start", 0, "text.split", most=len(text))
    stop = len(text) if stop is None else whole(stop, "stop", start, "text.split", most=len(text))
    return named(text, cut(text, grain, start, stop), grain)


def cut(text: str, grain: str, start: int, stop: int) -> list[tuple[int, int]]:
    """Where the words, sentences or passages of text[start:stop] begin and end."""
    patterns = {"words": _WORD, "sentences": _SENTENCE, "passages": _PASSAGE}
    one_of(grain, tuple(patterns), "grain", "text.split")
    found = patterns[grain].finditer(text, start, stop)
    return [(match.start(), match.start() + len(match[0].rstrip())) for match in found]


def named(text: str, places: Sequence[tuple[int, int]], grain: str) -> tuple[Span, ...]:
    """Spans at these places: passages are numbered, other parts are named by their beginning."""
    names = [f"passage {n}" if grain == "passages" else _short(text[a:b]) for n, (a, b) in enumerate(places, start=1)]
    return tuple(Span(a, b, name) for (a, b), name in zip(places, distinct_names(names), strict=True))


def within(text: str, span: Span, grain: str) -> tuple[Span, ...]:
    """The parts of one span, named after it."""
    parts = split(text, grain, span.start, span.stop)
    return tuple(Span(part.start, part.stop, f"{span.name}: {part.name}") for part in parts)


def given_spans(text: str, features: object, owner: str) -> tuple[Span, ...]:
    """The features argument of the user where it is no grain: a dict from names to places, or a list of parts."""
    if isinstance(features, Mapping):
        return checked_spans(text, [(*_pair(where), str(name)) for name, where in features.items()], owner)
    if isinstance(features, np.ndarray):
        features = features.tolist()
    if isinstance(features, Sequence) and not isinstance(features, str):
        return checked_spans(text, features, owner)
    allowed = "a grain, or a list of spans or parts of the text"
    if isinstance(features, str):
        allowed = f"one of {', '.join(map(repr, GRAINS))}, or a list of spans or parts of the text"
    raise bad("features", owner, allowed, repr(features))


def checked_spans(
    text: str, given: Sequence[object], owner: str, name: str = "features", inside: Span | None = None
) -> tuple[Span, ...]:
    """Spans that the user gave: Span values, (start, stop) or (start, stop, name), or texts that occur in order.

    With `inside` they must lie inside this span.
    """
    spans: list[Span] = []
    low, high = (0, len(text)) if inside is None else (inside.start, inside.stop)
    reached = low
    allowed = "spans, (start, stop) or (start, stop, name), or parts of the text in their order"
    for number, part in enumerate(given, start=1):
        if isinstance(part, Span):
            span = part
        elif isinstance(part, str):
            place = text.find(part, reached, high) if part else -1
            if place < 0:
                advice = "The parts must follow one another in the text, letter by letter."
                raise bad(name, owner, allowed, f"{_short(part)!r}, which does not occur there", advice)
            span = Span(place, place + len(part), _short(part))
        elif isinstance(part, Sequence) and len(part) in (2, 3) and all(is_whole(p, 0) for p in part[:2]):
            called = str(part[2]) if len(part) == 3 else _short(text[part[0] : part[1]])
            span = Span(int(part[0]), int(part[1]), called or f"characters {part[0]} to {part[1]}")
        else:
            raise bad(name, owner, allowed, repr(part))
        if not span.start < span.stop:
            raise GralisError(
                f"The feature {span.name or number!r} covers no token: it reaches from character {span.start} to "
                f"{span.stop}; give spans with at least one character."
            )
        if span.start < low or span.stop > high:
            whole = f"a text of {high} characters" if inside is None else f"{inside.name!r} ({low} to {high})"
            raise GralisError(
                f"The feature {span.name!r} reaches from character {span.start} to {span.stop}, beyond {whole}; give "
                f"spans inside."
            )
        reached = span.stop
        spans.append(span)
    if not spans:
        raise bad(name, owner, allowed, "nothing")
    for first, second in pairwise(sorted(spans, key=lambda span: span.start)):
        if second.start < first.stop:
            raise bad(name, owner, "spans that do not overlap", f"{first.name!r} and {second.name!r}")
    names = distinct_names([span.name for span in spans])
    return tuple(Span(span.start, span.stop, name) for span, name in zip(spans, names, strict=True))


def visible(token: str) -> str:
    """A token that can be seen: line breaks, tabs and blanks have signs, and control characters are written out."""
    return printable(token.strip(" ").replace("\n", "⏎").replace("\t", "⇥")) or "␣"


def _pair(where: object) -> Sequence[object]:
    return where if isinstance(where, Sequence) and len(where) == 2 else (where,)


def _short(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= _LONGEST_NAME else f"{flat[: _LONGEST_NAME - 1].rstrip()}…"
