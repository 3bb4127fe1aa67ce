"""A closer look: one feature of a text is split into its parts, and what is known of the others stays known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from gralis.arrays import Masks
from gralis.errors import GralisError, bad
from gralis.ledger import Ledger
from gralis.rays import CENSUS
from gralis.results.explanation import Explanation
from gralis.text.encoded import TextFeatures
from gralis.text.spans import GRAINS, Span, checked_spans, within

__all__ = ["drill_budget", "lifted", "opened", "require_model"]

_INTO = ("sentences", "words", "tokens")
_ONE = {"tokens": "token", "words": "word", "sentences": "sentence", "passages": "passage"}
_SHARE = 3  # a closer look may cost this part of the first look


def drill_budget(first: int | None, given: int | None, n_features: int) -> int | None:
    """What a closer look may cost: what the user gave, or a third of the first look, with which the plan must work."""
    return given if given is not None or first is None else max(first // _SHARE, 4 * n_features + 20)


def require_model(deeper: object) -> None:
    """A result that was read from a file has no model to evaluate."""
    if deeper is None:
        raise GralisError("This result was loaded from a file, so there is no model to drill with; explain again.")


def opened(
    text: str,
    spans: Sequence[Span],
    feature: int | str,
    into: str | Sequence[object] | None,
    tokens: Sequence[Span] = (),
    absent: object = None,
) -> tuple[Span, ...]:
    """The features with one of them, by number or name, split into its parts; `tokens` are those of the text."""
    number = _number(feature, [span.name for span in spans])
    if isinstance(absent, Mapping) and (name := spans[number].name) in absent:
        raise GralisError(
            f"The feature {name!r} has a text that replaces it as a whole, and its parts have none; explain the parts "
            f"from the start, with absent={{...}} for each of them."
        )
    return (*spans[:number], *_parts(text, spans[number], into, tokens), *spans[number + 1 :])


def lifted(known: Sequence[Explanation], coarse: TextFeatures, fine: TextFeatures) -> list[Ledger]:
    """The coalition values of coarser features as values of finer ones: a part is there if its whole is.

    Nothing is known if a token of the coarser features is fixed among the finer ones, because it was absent in some of
    these values and never is now.
    """
    if not np.array_equal(coarse.owner >= 0, fine.owner >= 0):
        return []
    inside = [int(coarse.owner[fine.owner == part][0]) for part in range(fine.n_features)]
    ledgers = []
    for explanation in known:
        rows = explanation.ledger.require_rows("A closer look")
        masks: Masks = rows.masks[:, inside]
        empty = np.zeros((0, fine.n_features))
        nothing = {name: getattr(rows, name)[:0] for name in ("ray", "node", "place", "stretch", "weight")}
        replicate = np.full(rows.n_rays, CENSUS)
        ledgers.append(replace(rows, masks=masks, replicate=replicate, gradient=empty, **nothing))
    return ledgers


def _number(feature: int | str, names: Sequence[str]) -> int:
    if isinstance(feature, str) and feature in names:
        return names.index(feature)
    if isinstance(feature, int | np.integer) and not isinstance(feature, bool) and 0 <= int(feature) < len(names):
        return int(feature)
    allowed = f"a number below {len(names)} or one of {', '.join(map(repr, names[:6]))}"
    raise bad("feature", "drill", allowed, repr(feature))


def _parts(text: str, span: Span, into: str | Sequence[object] | None, tokens: Sequence[Span]) -> tuple[Span, ...]:
    if into is not None and not isinstance(into, str):
        return checked_spans(text, into, "drill", "into", inside=span)
    grains = GRAINS if tokens else GRAINS[1:]  # an API does not say what its tokens are
    if into is not None and into not in grains:
        raise bad("into", "drill", f"one of {', '.join(map(repr, grains))}, or a list of spans", repr(into))
    smallest = grains[0] if tokens else "words"
    for grain in _INTO if into is None else (into,):
        parts = _tokens_within(text, span, tokens) if grain == "tokens" else within(text, span, grain)
        if len(parts) > 1:
            return _with_blanks(text, parts, tokens)
    raise GralisError(
        f"The feature {span.name!r} cannot be split any further; it is a single {_ONE[into or smallest]}."
    )


def _with_blanks(text: str, parts: Sequence[Span], tokens: Sequence[Span]) -> tuple[Span, ...]:
    """The parts with the tokens that are blanks behind them, so that no token of the whole is left out."""
    ends = [part.stop for part in parts]
    for token in tokens:
        if not token.of(text).strip():
            for number, (part, following) in enumerate(pairwise(parts)):
                if part.stop <= token.start < following.start:
                    ends[number] = max(ends[number], min(token.stop, following.start))
    return tuple(replace(part, stop=end) for part, end in zip(parts, ends, strict=True))


def _tokens_within(text: str, span: Span, tokens: Sequence[Span]) -> tuple[Span, ...]:
    """The tokens that begin in a span, after their blank, named after it; what reaches beyond its ends is cut off."""
    blanks = [len(token.of(text)) - len(token.of(text).lstrip()) for token in tokens]
    begins = [
        token.start + (blank if token.of(text).strip() else 0) for token, blank in zip(tokens, blanks, strict=True)
    ]
    inside = [token for token, begin in zip(tokens, begins, strict=True) if span.start <= begin < span.stop]
    return tuple(
        Span(max(token.start, span.start), min(token.stop, span.stop), f"{span.name}: {token.name.strip()}")
        for token in inside
    )
