"""A text whose parts are known: a template with slots, or a conversation with turns."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gralis.checks import several
from gralis.errors import GralisError, bad
from gralis.text.spans import Span, checked_spans

__all__ = ["Prompt", "conversation", "fill", "readable"]

_SLOT = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True)
class Prompt:
    """A text together with its parts. The parts are the features; the characters between them are fixed.

    Parameters
    ----------
    text : str
        The whole text.
    spans : tuple of Span
        Its parts, in order and without overlap.

    Examples
    --------
    >>> Prompt("Paris is big. Why?", (Span(0, 13, "fact"),)).spans[0].of("Paris is big. Why?")
    'Paris is big.'
    """

    text: str
    spans: tuple[Span, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "spans", checked_spans(self.text, self.spans, "Prompt"))


def fill(template: str, slots: Mapping[str, str | Sequence[str]], separator: str = "\n") -> Prompt:
    """A prompt from a template with slots, such as "Read: {context} Then: {question}". What fills a slot is a feature.

    Parameters
    ----------
    template : str
        The text, with slots in braces.
    slots : mapping of str to str or list of str
        What fills each slot. A list fills one slot with several features, for example retrieved passages.
    separator : str, default="\\n"
        What stands between the items of a list.

    Returns
    -------
    Prompt

    Examples
    --------
    >>> prompt = fill("Read: {context} So {question}", {"context": ["A.", "B."], "question": "why?"}, separator=" ")
    >>> prompt.text, [span.name for span in prompt.spans]
    ('Read: A. B. So why?', ['context 1', 'context 2', 'question'])
    """
    if not isinstance(template, str) or not _SLOT.search(template):
        allowed = 'a text with slots in braces, such as "... {context} ... {question}"'
        raise bad("template", "text.fill", allowed, repr(template))
    if not isinstance(separator, str):
        raise bad("separator", "text.fill", "a text", repr(separator))
    wanted = _SLOT.findall(template)
    if not isinstance(slots, Mapping) or set(slots) != set(wanted) or len(wanted) != len(set(wanted)):
        got = f"the slots {sorted(map(str, slots))}" if isinstance(slots, Mapping) else f"a {type(slots).__name__}"
        raise bad("slots", "text.fill", f"a text or a list of texts for each of {wanted}, each slot once", got)
    text, spans, end = "", [], 0
    for match in _SLOT.finditer(template):
        text += template[end : match.start()]
        end = match.end()
        name, value = match[1], slots[match[1]]
        items = list(value) if isinstance(value, Sequence) and not isinstance(value, str) else [value]
        if not items or not all(isinstance(item, str) and item.strip() for item in items):
            raise bad(f"slots[{name!r}]", "text.fill", "a text, or a list of texts, none of them empty", repr(value))
        for number, item in enumerate(items, start=1):
            text += separator if number > 1 else ""
            label = name if len(items) == 1 else f"{name} {number}"
            spans.append(Span(len(text), len(text) + len(item), label))
            text += item
    return Prompt(text + template[end:], tuple(spans))


def conversation(tokenizer: Any, messages: Sequence[Mapping[str, str]], answering: bool = True) -> Prompt:
    """A conversation as the tokenizer's chat template writes it. Every turn is a feature; role marks are fixed.

    Parameters
    ----------
    tokenizer : transformers tokenizer
        One with a chat template.
    messages : sequence of dict
        The turns, each with "role" and "content".
    answering : bool, default=True
        Whether the text ends with the marks after which the assistant answers.

    Returns
    -------
    Prompt
    """
    allowed = 'a list of turns such as {"role": "user", "content": "..."}'
    turns = several(messages, "messages", "text.conversation", allowed)
    if not all(isinstance(t, Mapping) and {"role", "content"} <= set(t) for t in turns):
        raise bad("messages", "text.conversation", allowed, repr(messages))
    if not getattr(tokenizer, "chat_template", None):
        raise GralisError(
            "This tokenizer has no chat template, so it does not say how a conversation is written; set "
            "tokenizer.chat_template, or write the prompt yourself with gralis.text.fill."
        )
    text = tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=answering)
    spans, reached = [], 0
    for number, turn in enumerate(turns, start=1):
        pieces = _contents(turn["content"])
        places = []
        for piece in pieces:
            place = text.find(piece, reached)
            places += [] if place < 0 else [place]
            reached = max(reached, place + len(piece))
        if not pieces or len(places) < len(pieces):
            raise GralisError(
                f"Turn {number} of the conversation is empty, or the chat template does not write it as it is; every "
                f"turn needs a content that the template keeps."
            )
        spans.append(Span(places[0], reached, f"{turn['role']} {number}"))
    return Prompt(text, tuple(spans))


def _contents(content: object) -> list[str]:
    """The texts of one turn: a text, or a list of parts such as {"type": "text", "text": "..."}."""
    parts = [content] if isinstance(content, str) or not isinstance(content, Sequence) else list(content)
    texts = [part.get("text", "") if isinstance(part, Mapping) else part for part in parts]
    return [str(each).strip() for each in texts if str(each or "").strip()]


def readable(prompt: object, tokenizer: Any, owner: str) -> Prompt | str:
    """The prompt as a text or a Prompt: a list of turns goes through the chat template."""
    if isinstance(prompt, Prompt):
        return prompt
    if isinstance(prompt, Sequence) and not isinstance(prompt, str) and prompt and isinstance(prompt[0], Mapping):
        return conversation(tokenizer, prompt)
    if not isinstance(prompt, str) or not prompt.strip():
        name = "prompt" if owner.endswith("generation") else "text"
        raise bad(name, owner, "a text with at least one word, a Prompt, or a list of turns", repr(prompt))
    return prompt
