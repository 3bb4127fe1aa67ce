"""Blocks: consecutive items that are explained together, written together, and explained again together.

Which items share a block depends on the items alone, not on the number of workers or on what was done before. All
random draws depend on the seed and the ids. A block that is computed again is therefore the same block.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count, islice

from gralis.many.items import PendingItem

__all__ = ["ItemBlock", "blocks_of", "seed_of"]


@dataclass(frozen=True)
class ItemBlock:
    """The items number * size, number * size + 1, ... of a stream."""

    number: int
    items: tuple[PendingItem, ...]

    @property
    def ids(self) -> list[str]:
        """The ids of the items, in order."""
        return [item.id for item in self.items]


def blocks_of(items: Iterable[PendingItem], size: int) -> Iterator[ItemBlock]:
    """The stream in blocks of `size`; the last one may be smaller.

    >>> [block.ids for block in blocks_of((PendingItem(name, lambda: None) for name in "abc"), 2)]
    [['a', 'b'], ['c']]
    """
    stream = iter(items)
    for number in count():
        part = tuple(islice(stream, size))
        if not part:
            return
        yield ItemBlock(number, part)


def seed_of(seed: int, ids: Sequence[str]) -> int:
    """The seed of a block: a hash of the run's seed and all ids, including those of inputs that fail.

    >>> seed_of(0, ["a"]) == seed_of(0, ["a"]), seed_of(0, ["a"]) == seed_of(0, ["b"]), seed_of(0, ["a"]) < 2**63
    (True, False, True)
    """
    digest = hashlib.sha256(json.dumps([seed, *ids]).encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1
