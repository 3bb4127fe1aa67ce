"""Whether a network reads embeddings as it reads token ids: some multiply only the embeddings of ids by a factor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from gralis.errors import ModelError
from gralis.models.frozen import frozen

__all__ = ["embedding_factor"]

_NAMES = ("embed_scale", "embedding_multiplier")  # as Pegasus and Marian, and as Falcon-H1 call the factor
_SEEN = 1e-4  # relative to the largest output: smaller changes are rounding


def embedding_factor(network: nn.Module, ids: Tensor, embeddings: Tensor, others: Mapping[str, Any]) -> float:
    """By what to multiply embeddings so that the network answers as it does to the token ids.

    Parameters
    ----------
    network : nn.Module
        A network with `input_ids` and `inputs_embeds`.
    ids : Tensor of shape (1, length)
        The token ids of one text.
    embeddings : Tensor of shape (1, length, dims)
        Their embeddings.
    others : mapping of str to object
        The other arguments of the network.

    Returns
    -------
    float
        1 for nearly all networks.
    """
    limit = max(_SEEN, 8 * float(torch.finfo(embeddings.dtype).eps))

    def answer(**text: Tensor) -> Tensor | None:
        return _first_numbers(network(**text, **others))

    try:
        with torch.no_grad(), frozen(network):
            wanted = answer(input_ids=ids)
            if wanted is None or not bool(wanted.isfinite().all()):
                return 1.0  # the run says what is wrong
            for factor in (1.0, *_candidates(network)):
                if _near(answer(inputs_embeds=embeddings * factor), wanted, limit):
                    return factor
            if not _near(answer(input_ids=ids), wanted, limit):
                return 1.0  # the network answers at random, and a doubt of the result says so
    except Exception:  # whatever fails here fails in the run, which says what and where
        return 1.0
    raise ModelError(
        f"This {type(network).__name__} answers the embeddings of a text otherwise than its token ids, so its numbers "
        f"would mean nothing; leave out padding, or explain with gralis.text and absent='removed', which needs no "
        f"embeddings."
    )


def _candidates(network: nn.Module) -> list[float]:
    """The factors that the parts of the network hold, each once."""
    found = (getattr(part, name, None) for part in network.modules() for name in _NAMES)
    return [factor for factor in dict.fromkeys(each for each in found if isinstance(each, float)) if factor != 1.0]


def _first_numbers(outputs: Any) -> Tensor | None:
    """The first tensor of numbers in what a network returned."""
    if isinstance(outputs, Mapping):
        outputs = tuple(outputs.values())
    parts = outputs if isinstance(outputs, tuple | list) else (outputs,)
    return next((part for part in parts if isinstance(part, Tensor) and part.is_floating_point()), None)


def _near(one: Tensor | None, other: Tensor, limit: float) -> bool:
    if one is None or one.shape != other.shape:
        return False
    return bool((one - other).abs().max() <= limit * other.abs().max())
