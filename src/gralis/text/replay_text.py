"""`text.replay`: a text or a generation computed again with a model at hand, and compared with the saved numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace as changed
from typing import Any

from torch import nn

from gralis import targets
from gralis.api.replay import replay as replay_point
from gralis.api.replay import replay_together
from gralis.checks import non_negative
from gralis.errors import GralisError, bad
from gralis.results.explanation import Explanation
from gralis.results.replay import Difference, Replay
from gralis.targets import Target
from gralis.text.answer import Answer, prompt_of
from gralis.text.explain_answer import Question
from gralis.text.explain_text import labelled
from gralis.text.generation import Generation
from gralis.text.reading import Reading
from gralis.text.spans import Span

__all__ = ["replay"]

_OWNER = "text.replay"


def replay(
    result: Explanation | Generation,
    model: nn.Module,
    tokenizer: Any,
    *,
    target: Target | str = "saved",
    tolerance: float | None = None,
    progress: bool | None = False,
) -> Replay:
    """Compute a text or a generation again with this model, and say which hashes and numbers differ.

    Parameters
    ----------
    result : Explanation or Generation
        What `text.explain` or `text.explain_generation` returned; `gralis.load` and `gralis.text.load` read files.
    model : transformers model
        The model that should give the same numbers.
    tokenizer : transformers tokenizer
        Its tokenizer.
    target : int, tuple, callable or str, default="saved"
        The output that was explained. It is needed only if it was a Python function, which a file cannot hold.
    tolerance : float, optional
        The largest deviation that counts as equal, as in `gralis.replay`. The default allows for rounding.
    progress : bool or None, default=False
        Whether to show a progress bar. None shows it only on a terminal.

    Returns
    -------
    Replay
        The verdict; it prints as a sentence. That of a generation is about the whole answer and every token of it.
    """
    if not isinstance(result, Explanation | Generation):
        allowed = "an Explanation or a Generation (gralis.load and gralis.text.load read them)"
        raise bad("result", _OWNER, allowed, f"a {type(result).__name__}")
    explanations = [result] if isinstance(result, Explanation) else [result.total, *result.each]
    about = explanations[0].provenance.get("text")
    if about is None:
        raise GralisError(
            "These numbers were not made by gralis.text with a model at hand: use gralis.replay for other inputs, and "
            "for a model behind an API explain again with the same cache, which pays for no prompt twice."
        )
    given = [_target(each, target) for each in explanations]
    module = _module(explanations[0], about, model, tokenizer, given[0])
    if isinstance(result, Explanation):
        return replay_point(result, module, target=given[0], tolerance=tolerance, progress=progress)
    allowed_gap = None if tolerance is None else non_negative(tolerance, "tolerance", _OWNER)
    each = replay_together(explanations, module, given, allowed_gap, progress)
    return _all(each, ("whole answer", *result.tokens))


def _module(e: Explanation, about: Any, model: nn.Module, tokenizer: Any, target: Target) -> Any:
    """The model as a function of the presence of the same features."""
    meta: Any = e.features.meta
    reading = Reading.of(model, tokenizer, meta["text"], about["absent"], _OWNER)
    answer = about.get("answer")
    if answer is not None:
        reading = changed(reading, encoded=prompt_of(model, reading.encoded))
    spans = [Span(int(a), int(b), name) for (a, b), name in zip(meta["spans"], e.names, strict=True)]
    text = reading.encoded.with_spans(spans, meta["grain"])
    if answer is None:
        return labelled(reading, text, target)
    leads = about.get("leads", [[], []])  # older files have none
    ours, theirs = (
        None if ids is None else Answer(tuple(ids), (), "", tuple(lead))
        for ids, lead in zip((answer, about["alternative"]), leads, strict=True)
    )
    assert ours is not None
    return Question(reading, ours, theirs, about["score"], {}).scores(text)


def _target(e: Explanation, given: Target | str) -> Target:
    saved = e.provenance["target"]
    if not isinstance(given, str):
        return targets.check(given, _OWNER)
    if given == "saved" and saved == targets.describe(targets.total):
        return targets.total
    try:
        return targets.parse(saved if given == "saved" else given)
    except GralisError:
        raise GralisError(
            f"The target {saved!r} was a Python function, which a file cannot hold; give it again as target."
        ) from None


def _all(each: Sequence[Replay], names: Sequence[str]) -> Replay:
    """One verdict about all rows of a matrix; the worst differences come first."""
    differences = [
        Difference(f"{d.name} of {name.strip()!r}", d.then, d.now, d.tolerance)
        for one, name in zip(each, names, strict=True)
        for d in one.differences
    ]
    return changed(
        each[0],
        hashes=tuple(dict.fromkeys(h for one in each for h in one.hashes)),
        differences=tuple(sorted(differences, key=lambda d: -abs(d.now - d.then))),
        n_numbers=sum(one.n_numbers for one in each),
        tolerance=max(one.tolerance for one in each),
        largest=max(one.largest for one in each),
    )
