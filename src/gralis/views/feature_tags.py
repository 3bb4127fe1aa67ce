"""The short form of a feature's name, for pictures: the same on the report and on the heat map."""

from __future__ import annotations

import re

__all__ = ["tag"]

_LONGEST = 12  # characters


def tag(name: str) -> str:
    """The number in a name such as "region 12", else the name itself, cut if it is long.

    No number is invented: a tag that is a number is the number in the feature's own name, whatever its rank.

    >>> tag("region 12"), tag("r0c1"), tag("the left ventricle")
    ('12', 'r0c1', 'the left ve…')
    """
    numbered = re.fullmatch(r"\w+ (\d+)", name)
    if numbered:
        return numbered[1]
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"
