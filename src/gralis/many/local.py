"""The local engine: one block after the other, in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext

from gralis.many.blocks import Block
from gralis.many.work import Done, Question, explain_block
from gralis.models import adapt
from gralis.models.protocol import Guarded


def run(model: object, question: Question, todo: Iterable[Block], keep: Callable[[Done], None]) -> None:
    """Explain every block and hand it to `keep`."""
    with _session(model):
        for block in todo:
            keep(explain_block(model, block, question))


def _session(model: object) -> AbstractContextManager[None]:
    """The model is put in eval mode once for all blocks, and warned about once."""
    adapted = adapt(model, None)
    return adapted.session() if isinstance(adapted, Guarded) else nullcontext()
