"""Features of a sequence: the tokens of a text, the windows of a time series."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from gralis.arrays import to_numpy
from gralis.checks import one_of, positive, whole
from gralis.errors import bad
from gralis.features.coordinate_names import checked_names
from gralis.features.features import Features
from gralis.features.labels import as_labels, check_size

_LAYOUTS = ("channels_first", "channels_last")

__all__ = ["distinct_names", "tokens", "windows"]


def tokens(ids: object, tokenizer: object = None, names: Sequence[str] | None = None) -> Features:
    """One feature per token of a sequence, whatever the width of its embedding.

    Use it together with `explain(layer=...)` on an embedding layer.

    Parameters
    ----------
    ids : sequence of int
        The token ids of one sequence, special tokens and padding included.
    tokenizer : object, optional
        A tokenizer with `convert_ids_to_tokens`, as in transformers, which names the tokens.
    names : sequence of str, optional
        One name per token. Without `names` and `tokenizer` the ids are the names. A name that occurs more than once
        gets its position in brackets, so that every name says where its token is.

    Returns
    -------
    Features

    Examples
    --------
    >>> tokens([101, 7592, 102], names=["[CLS]", "hello", "[SEP]"])
    Features(tokens, 3 features over (3,))
    >>> tokens([5, 8, 5], names=["the", "cat", "the"]).names
    ('the [0]', 'cat', 'the [2]')
    """
    try:
        shape = to_numpy(ids).shape
    except (TypeError, ValueError, RuntimeError):
        shape = None  # sequences of different lengths
    if shape is None or len(shape) != 1:
        got = "sequences of different lengths" if shape is None else f"shape {shape}"
        raise bad("ids", "tokens", "one sequence of token ids, (length,)", got, "Several are explained one by one.")
    numbers = as_labels(ids, "tokens")
    if names is None:
        convert = getattr(tokenizer, "convert_ids_to_tokens", None)
        if tokenizer is not None and not callable(convert):
            raise bad("tokenizer", "tokens", "one with convert_ids_to_tokens, or names=", type(tokenizer).__name__)
        names = list(map(str, numbers.tolist())) if convert is None else list(convert(numbers.tolist()))
    texts = checked_names(names, len(numbers))
    count = Counter(texts)
    meta = {"texts": list(texts)} if max(count.values()) > 1 else {}
    return Features((np.arange(len(numbers)),), distinct_names(texts), "tokens", meta)


def windows(
    length: int,
    width: int,
    channels: int | None = None,
    layout: str = "channels_first",
    *,
    rate: float | None = None,
    unit: str = "s",
) -> Features:
    """One feature per window of a time series; windows span all channels.

    x has the shape (length,), (channels, length), or (length, channels) with the layout "channels_last".

    Parameters
    ----------
    length : int
        The number of steps of the series.
    width : int
        The number of steps of a window; the last window may be shorter.
    channels : int, optional
        The number of channels, if x has several.
    layout : {"channels_first", "channels_last"}, default="channels_first"
        Which axis comes first if there are channels.
    rate : float, optional
        The number of steps in one unit of time. With it the names are times, otherwise they are steps.
    unit : str, default="s"
        The unit of time.

    Returns
    -------
    Features

    Examples
    --------
    >>> windows(10, 4).names, windows(10, 4, channels=2).sizes.tolist()
    (('t0-3', 't4-7', 't8-9'), [8, 8, 4])
    >>> windows(10, 4, channels=2, layout="channels_last").labels[0].shape
    (10, 2)
    >>> windows(10, 4, rate=16).names
    ('0-0.25 s', '0.25-0.5 s', '0.5-0.625 s')
    """
    length, width = whole(length, "length", 1, "windows"), whole(width, "width", 1, "windows")
    n_rows = 1 if channels is None else whole(channels, "channels", 1, "windows")
    check_size((n_rows, length), "windows")
    width = min(width, length)
    steps = np.arange(length) // width
    labels = steps if channels is None else np.broadcast_to(steps, (channels, length))
    if one_of(layout, _LAYOUTS, "layout", "windows") == "channels_last":
        labels = labels.T
    starts = range(0, length, width)
    names = [f"t{start}-{min(start + width, length) - 1}" for start in starts]
    if rate is not None:
        per_unit = positive(rate, "rate", "windows")
        ends = [(start / per_unit, min(start + width, length) / per_unit) for start in starts]
        names = [f"{begin:.6g}-{end:.6g} {unit}" for begin, end in ends]
    timing = {} if rate is None else {"rate": float(rate), "unit": unit}
    return Features((labels,), names, "windows", {"width": width, **timing})


def distinct_names(names: Sequence[str]) -> list[str]:
    """The names; one that occurs several times carries its position, counted from 0.

    >>> distinct_names(["the", "cat", "the"])
    ['the [0]', 'cat', 'the [2]']
    """
    count = Counter(names)
    return [f"{name} [{place}]" if count[name] > 1 else name for place, name in enumerate(names)]
