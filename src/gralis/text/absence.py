"""What an absent word is: another token in its place, or nothing.

An embedding in its place ("pad", "mask", "eos", "unk", "mean", "zero", a token or its id, or a text of as many tokens)
allows rays: the embedding moves from absent to present. Removal ("removed": the text becomes shorter; "hidden": the
attention mask excludes the tokens) and a text of another length have no points between, so they allow coalition values
only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor, nn

from gralis.checks import is_whole
from gralis.errors import bad
from gralis.models.spliced_tokens import SplicedTokens
from gralis.models.token_inputs import (
    PresentTokens,
    TokenSequence,
    embedded,
    embedding_of,
    mean_embedding,
)
from gralis.text.encoded import TextFeatures, encode
from gralis.text.spans import Span

__all__ = ["Absent", "absence_in_words", "is_values_only", "presence", "require_replacements"]

#: What stands in the place of an absent feature.
Absent: TypeAlias = str | int | Mapping[str, str] | None

_NAMED = ("pad", "mask", "eos", "unk", "bos")
_ALLOWED = (
    "'auto', 'pad', 'mask', 'eos', 'unk', 'bos', 'mean', 'zero', 'removed', 'hidden', a token id, or a dict from names "
    "of features to the texts that replace them"
)


def is_values_only(module: nn.Module) -> bool:
    """Whether the module has coalition values but no rays."""
    return isinstance(getattr(module, "answer", module), SplicedTokens)


def absence_in_words(tokenizer: Any, absent: Absent) -> str:
    """What stands in the place of absent features, for tables and reports."""
    if isinstance(absent, Mapping):
        return "a text in which other texts replace the features"
    if absent in ("removed", "hidden"):
        return f"a text {'without' if absent == 'removed' else 'in which the attention mask hides'} the features"
    named = _first_named(tokenizer) if absent is None or absent == "auto" else absent
    if named in ("mean", "zero"):
        return f"a text with {'the mean embedding' if named == 'mean' else 'zeros'} in the place of every feature"
    token = _id(tokenizer, named) if isinstance(named, str) else named
    shown = tokenizer.convert_ids_to_tokens(token) if hasattr(tokenizer, "convert_ids_to_tokens") else named
    return f"a text with the token {shown} in the place of every feature"


def presence(
    network: nn.Module,
    tokenizer: Any,
    text: TextFeatures,
    sequence: TokenSequence,
    absent: Absent,
    read: Callable[[Any], Any],
    owner: str,
    *,
    causal: bool = False,
) -> PresentTokens | SplicedTokens:
    """The network as a function of the presence of features, with this meaning of absence."""
    n = text.n_features
    if absent in ("removed", "hidden"):
        hide = absent == "hidden"
        _require_rest(text, hide, causal, owner)
        return _blind(SplicedTokens(network, sequence, [()] * n, read, hide=hide, left=causal and not hide), owner)
    if isinstance(absent, Mapping):
        instead = _replacements(tokenizer, text, absent, owner)
        lengths = [int((text.owner == number).sum()) for number in range(n)]
        if [len(ids) for ids in instead] != lengths:
            return _blind(SplicedTokens(network, sequence, instead, read, left=causal), owner)
        ids = sequence.ids.clone()
        for number, new in enumerate(instead):
            ids[sequence.owner == number] = torch.tensor(new)
        return PresentTokens(network, sequence, embedded(network, ids), read)
    return PresentTokens(network, sequence, _embedding(network, tokenizer, absent, owner), read)


def _blind(module: SplicedTokens, owner: str) -> SplicedTokens:
    """The module, if its outputs show neither hidden tokens nor padding; otherwise its numbers would mean nothing."""
    traces = module.traces()
    if traces == "moved":
        allowed = "'hidden' or a token in the place of each feature for a model with outputs at every place of a text"
        advice = "In a text that becomes shorter or longer a place is another word; or give a function as target."
        raise bad("absent", owner, allowed, "a text that becomes shorter or longer", advice)
    if traces == "none":
        return module
    if module.hides:
        seen, got = "tokens that the attention mask hides", "'hidden'"
        advice = "Where the answer is read off the last token, fixed text behind the features helps."
    else:
        seen, got = "the padding of shorter texts", "a text that becomes shorter or longer"
        advice = "Where the answer is read off the last token, set model.config.pad_token_id."
    raise bad("absent", owner, f"a token in the place of each feature for a model that sees {seen}", got, advice)


def _embedding(network: nn.Module, tokenizer: Any, absent: object, owner: str) -> Tensor:
    """The embedding that stands for an absent token, (dims,)."""
    size, width = next(embedding_of(network, owner).parameters()).shape
    if absent is None or absent == "auto":
        absent = _first_named(tokenizer)
    if absent == "mean":
        return mean_embedding(network, owner)
    if absent == "zero":
        return torch.zeros(width)
    token = absent
    if isinstance(absent, str):
        if absent not in _NAMED:
            raise bad("absent", owner, _ALLOWED, repr(absent))
        token = _id(tokenizer, absent)
        if token is None:
            raise bad("absent", owner, _ALLOWED, f"{absent!r}, and this tokenizer has no {absent} token")
    if not is_whole(token, 0, size - 1):
        raise bad("absent", owner, f"{_ALLOWED}; ids are below {size}", repr(token))
    return embedded(network, torch.tensor([int(token)]))[0]  # type: ignore[call-overload]


def _first_named(tokenizer: Any) -> str:
    """The first of mask, pad, eos and unk that the tokenizer has."""
    return next((name for name in ("mask", "pad", "eos", "unk") if _id(tokenizer, name) is not None), "mean")


def _id(tokenizer: Any, name: str) -> int | None:
    return getattr(tokenizer, f"{name}_token_id", None)


def _replacements(tokenizer: Any, text: TextFeatures, texts: Mapping[str, str], owner: str) -> list[Sequence[int]]:
    """The tokens that replace each feature, as they are in its place; features that are not named are removed."""
    require_replacements(texts, text.spans, owner)
    source = text.encoded.text
    ids: list[Sequence[int]] = []
    for span in text.spans:
        new = texts.get(span.name, "")
        replaced = source[: span.start] + new + source[span.stop :]
        found = encode(tokenizer, replaced, owner).ids_within(span.start, span.start + len(new)) if new else []
        if new.strip() and not found:
            allowed = "a dict of texts that begin a token of their own in their place"
            raise bad("absent", owner, allowed, f"{span.name!r}: {new!r}, which joins the token before it")
        ids.append(found)
    return ids


def require_replacements(texts: Mapping[str, str], spans: Sequence[Span], owner: str) -> None:
    """A dict of replacements names features, and holds a text for each."""
    names = [span.name for span in spans]
    for name, new in texts.items():
        if name not in names or not isinstance(new, str):
            shown = f"{', '.join(names[:5])}{', ...' if len(names) > 5 else ''}"
            raise bad("absent", owner, f"a dict from names of features ({shown}) to texts", f"{name!r}: {new!r}")


def _require_rest(text: TextFeatures, hide: bool, causal: bool, owner: str) -> None:
    """When all features are absent, something must be left for the network to read."""
    fixed = np.flatnonzero(text.owner < 0)
    if not len(fixed) or (hide and causal and fixed[0] > 0):
        advice = "Keep a fixed part, such as the rest of a template or a token that begins every text."
        got = "a text whose tokens are all features" if not len(fixed) else "a text that begins with a feature"
        raise bad("absent", owner, f"a token in the place of each feature when {got} is explained", "removal", advice)
