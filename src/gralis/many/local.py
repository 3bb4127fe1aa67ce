"""The local engine: one block after the other, in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from gralis.many.blocks import Block
from gralis.many.work import Done, Question, explain_block
from gralis.models import adapt
from gralis.models.protocol import session_of


def run(model: object, question: Question, todo: Iterable[Block], keep: Callable[[Done], None]) -> None:
    """Explain every block and hand it to `keep`."""
    with session_of(adapt(model, None)):  # eval mode once for all blocks, and a warning once
        for block in todo:
            keep(explain_block(model, block, question))
