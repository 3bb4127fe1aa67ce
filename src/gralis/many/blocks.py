"""Blocks: consecutive items that are explained together, written together, and redone together.

Which items share a block depends on the items alone, never on how many workers there are or what was done before; and
all that is drawn at random depends on the seed and the ids. So a block computed again is the same block.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count, islice

from gralis.many.items import Item


@dataclass(frozen=True)
class Block:
    """The items number * size ... of the stream."""

    number: int
    items: tuple[Item, ...]

    @property
    def ids(self) -> list[str]:
        return [item.id for item in self.items]


def blocks(items: Iterable[Item], size: int) -> Iterator[Block]:
    """The stream in blocks of `size`; the last one may be smaller.

    >>> [block.ids for block in blocks((Item(name, lambda: None) for name in "abc"), 2)]
    [['a', 'b'], ['c']]
    """
    stream = iter(items)
    for number in count():
        part = tuple(islice(stream, size))
        if not part:
            return
        yield Block(number, part)


def seed_of(seed: int, ids: Sequence[str]) -> int:
    """The seed of a block: a hash of the run's seed and all its ids, also of inputs that turn out to fail.

    >>> seed_of(0, ["a"]) == seed_of(0, ["a"]), seed_of(0, ["a"]) == seed_of(0, ["b"]), seed_of(0, ["a"]) < 2**63
    (True, False, True)
    """
    digest = hashlib.sha256(json.dumps([seed, *ids]).encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1
