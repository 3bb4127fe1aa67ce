"""A closer look: one feature of a text is split into its parts, and what is known of the others stays known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from gralis.arrays import Masks
from gralis.errors import GralisError, bad
from gralis.ledger import Ledger
from gralis.rays import CENSUS
from gralis.results.explanation import Explanation
from gralis.text.spans import GRAINS, Span, checked_spans, within

__all__ = ["drill_budget", "lifted", "opened", "require_model"]

_INTO = ("sentences", "words")
_SHARE = 3  # a closer look may cost this part of the first look


def drill_budget(first: int | None, given: int | None, n_features: int) -> int | None:
    """What a closer look may cost: what the user gave, or a third of the first look, with which the plan must work."""
    return given if given is not None or first is None else max(first // _SHARE, 4 * n_features + 20)


def require_model(deeper: object) -> None:
    """A result that was read from a file has no model to evaluate."""
    if deeper is None:
        raise GralisError("This result was loaded from a file, so there is no model to drill with; explain again.")


def opened(
    text: str, spans: Sequence[Span], feature: int | str, into: str | Sequence[object] | None
) -> tuple[Span, ...]:
    """The features with one of them, by number or name, split into its parts."""
    number = _number(feature, [span.name for span in spans])
    return (*spans[:number], *_parts(text, spans[number], into), *spans[number + 1 :])


def lifted(known: Sequence[Explanation], whole: Sequence[Span], spans: Sequence[Span]) -> list[Ledger]:
    """The coalition values of coarser features as values of finer ones: a part is there if its whole is."""
    inside = [next(i for i, span in enumerate(whole) if span.start <= part.start < span.stop) for part in spans]
    ledgers = []
    for explanation in known:
        rows = explanation.ledger.require_rows("A closer look")
        masks: Masks = rows.masks[:, inside]
        empty = np.zeros((0, len(spans)))
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


def _parts(text: str, span: Span, into: str | Sequence[object] | None) -> tuple[Span, ...]:
    if into is not None and not isinstance(into, str):
        return checked_spans(text, into, "drill", "into", inside=span)
    if into is not None and into not in GRAINS[1:]:
        raise bad("into", "drill", f"one of {', '.join(map(repr, GRAINS[1:]))}, or a list of spans", repr(into))
    for grain in _INTO if into is None else (into,):
        parts = within(text, span, grain)
        if len(parts) > 1:
            return parts
    raise GralisError(f"The feature {span.name!r} cannot be split any further; it is a single {into or 'word'}.")
