"""The local engine: one block after the other, in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from gralis.many.block_worker import BlockResult, ManyOptions, explain_block
from gralis.many.blocks import ItemBlock
from gralis.models import adapt
from gralis.models.protocol import session_of

__all__ = ["run_locally"]


def run_locally(
    model: object, options: ManyOptions, blocks: Iterable[ItemBlock], keep: Callable[[BlockResult], None]
) -> None:
    """Explain every block and pass the result to `keep`."""
    with session_of(adapt(model, None)):  # eval mode once for all blocks, and at most one warning
        for block in blocks:
            keep(explain_block(model, block, options))
