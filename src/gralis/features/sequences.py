"""Features of a sequence: the tokens of a text, the windows of a time series."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gralis.arrays import to_numpy
from gralis.checks import is_whole
from gralis.errors import bad
from gralis.features.features import Features
from gralis.features.labels import integers, reasonable


def tokens(ids: object, tokenizer: object = None, names: Sequence[str] | None = None) -> Features:
    """One feature per token of a sequence, whatever the width of its embedding: for `layer=` on an embedding layer.

    Names come from `names`, from `tokenizer.convert_ids_to_tokens(ids)` (transformers), or are the ids themselves.

    >>> tokens([101, 7592, 102], names=["[CLS]", "hello", "[SEP]"])
    Features(tokens, 3 features over (3,))
    """
    try:
        shape = to_numpy(ids).shape
    except (TypeError, ValueError, RuntimeError):
        shape = None  # sequences of different lengths
    if shape is None or len(shape) != 1:
        got = "sequences of different lengths" if shape is None else f"shape {shape}"
        raise bad("ids", "tokens", "one sequence of token ids, (length,)", got, "Several are explained one by one.")
    numbers = integers(ids, "tokens")
    if names is None:
        convert = getattr(tokenizer, "convert_ids_to_tokens", None)
        if tokenizer is not None and not callable(convert):
            raise bad("tokenizer", "tokens", "one with convert_ids_to_tokens, or names=", type(tokenizer).__name__)
        names = list(map(str, numbers.tolist())) if convert is None else list(convert(numbers.tolist()))
    return Features((np.arange(len(numbers)),), names, "tokens")


def windows(length: int, width: int, channels: int | None = None) -> Features:
    """A time series (length,), or (channels, length): one feature per window of `width` steps, over all channels.

    >>> windows(10, 4).names, windows(10, 4, channels=2).sizes.tolist()
    (('t0-3', 't4-7', 't8-9'), [8, 8, 4])
    """
    for value, name in ((length, "length"), (width, "width"), (1 if channels is None else channels, "channels")):
        if not is_whole(value, 1):
            raise bad(name, "windows", "an int >= 1", repr(value))
    reasonable((int(channels or 1), int(length)), "windows")
    width = min(width, length)
    steps = np.arange(length) // width
    labels = steps if channels is None else np.broadcast_to(steps, (channels, length))
    starts = range(0, length, width)
    names = [f"t{start}-{min(start + width, length) - 1}" for start in starts]
    return Features((labels,), names, "windows", {"width": int(width)})
