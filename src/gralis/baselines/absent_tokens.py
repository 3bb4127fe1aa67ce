"""What a tokenizer returned, as an input to explain: tokens are features, and absent tokens are another embedding.

`explain(model, tokenizer("some text", return_tensors="pt"))` needs no layer, no baseline and no features: the model
says where its embeddings are, the encoding says which tokens are special, and the configuration names a token for
absence.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from gralis.checks import is_whole
from gralis.errors import bad
from gralis.features import Features
from gralis.features.sequences import distinct_names
from gralis.models.device_map import input_device
from gralis.models.frozen import frozen
from gralis.models.token_inputs import (
    PresentTokens,
    TokenSequence,
    accepts,
    embedded,
    embedding_of,
    first_position,
    logits_in,
    mean_embedding,
)
from gralis.targets import Target

__all__ = ["OneText", "TokenPresence", "is_encoding", "one_text", "presence_of_tokens"]

_BY_TOKEN = ("attention_mask", "token_type_ids", "position_ids")
_DROPPED = ("input_ids", "labels", "special_tokens_mask", "offset_mapping", "length", "overflow_to_sample_mapping")
_ALLOWED = (
    "0.0 (the model's own token for padding or the end), 'pad', 'eos', 'bos', 'mean', 'zero', a token id, or ids or "
    "embeddings for every token"
)


def is_encoding(model: object, x: object) -> bool:
    """Whether x is what a tokenizer returned, for a model with input embeddings."""
    return (
        isinstance(x, Mapping)
        and "input_ids" in x
        and isinstance(model, nn.Module)
        and callable(getattr(model, "get_input_embeddings", None))
    )


class OneText(dict[str, Tensor]):
    """The tensors of one text, with the tokenizer's own encoding if there is one."""

    encoding: Any = None


@dataclass(frozen=True, eq=False)
class TokenPresence:
    """The model as a function of the presence of its tokens.

    Attributes
    ----------
    module : PresentTokens
        The model at embeddings between absent and present.
    point : Tensor of shape (n_features,)
        The point at which all tokens are there.
    features : Features
        The tokens that are not special.
    choice : str
        What was decided for the user, in a sentence; empty if nothing was.
    """

    module: PresentTokens
    point: Tensor
    features: Features
    choice: str


def one_text(x: Mapping[str, Any]) -> OneText:
    """The tensors of one text, without a batch axis of one."""
    leaves = OneText()
    leaves.encoding = next(iter(getattr(x, "encodings", None) or [None]))
    for name, value in x.items():
        tensor = torch.as_tensor(value)
        wanted = 2 if name == "input_ids" else tensor.ndim
        if tensor.ndim == wanted and tensor.ndim > 1:
            if tensor.shape[0] != 1:
                got = f"{name} of shape {tuple(tensor.shape)}"
                raise bad("x", "explain", "the encoding of one text", got, "Several are explained one by one.")
            tensor = tensor[0]
        leaves[name] = tensor
    if leaves["input_ids"].ndim != 1:
        raise bad("x", "explain", "the encoding of one text", f"input_ids of shape {tuple(leaves['input_ids'].shape)}")
    return leaves


def presence_of_tokens(
    model: nn.Module, leaves: OneText, baseline: object, features: object, targets: tuple[Target, ...]
) -> TokenPresence:
    """The model as a function of the presence of its tokens."""
    embedding_of(model, "explain")
    ids = leaves["input_ids"].long()
    special = _special(model, leaves)
    owner, names = _owners(leaves, ids, special, features)
    constants = {name: leaves[name] for name in _BY_TOKEN if name in leaves and accepts(model, name)}
    mask = constants.get("attention_mask")
    if mask is None and accepts(model, "attention_mask"):
        constants["attention_mask"] = torch.ones_like(ids)
    placed = "position_ids" in constants or not accepts(model, "position_ids")
    others = {n: v[None] for n, v in leaves.items() if n not in (*_BY_TOKEN, *_DROPPED) and accepts(model, n)}
    if mask is not None and int(mask[0]) == 0 and not placed:
        positions = (mask.cumsum(0) - 1).clamp(min=0) + first_position(model)  # positions begin with the text
        if _reads_the_text(model, ids, {**constants, "position_ids": positions}, others):
            constants["position_ids"] = positions
    sequence = TokenSequence(ids, owner, len(names), constants, others)
    read = _as_returned if any(map(callable, targets)) else logits_in
    chosen, choice = _chosen(model, baseline)
    module = PresentTokens(model, sequence, _absent(model, ids, chosen), read)
    by_token = Features((np.arange(len(names)),), names, "tokens")
    return TokenPresence(module, module.scale.detach().clone(), by_token, choice)


def _as_returned(outputs: Any) -> Any:
    return outputs


def _reads_the_text(model: nn.Module, ids: Tensor, by_token: Mapping[str, Tensor], others: Mapping[str, Any]) -> bool:
    """Whether a classifier says of the padded text what it says of the text alone; true for all other outputs.

    A classifier that reads the first token reads padding there, and with it every position counts.
    """
    there = by_token["attention_mask"] > 0
    device = input_device(model)

    def answer(chosen: Tensor) -> Tensor:
        rows = {name: values[chosen][None].to(device) for name, values in {"input_ids": ids, **by_token}.items()}
        return logits_in(model(**rows, **{name: value.to(device) for name, value in others.items()}))

    try:
        with torch.no_grad(), frozen(model):
            padded, alone = answer(torch.ones_like(there)), answer(there)
    except Exception:  # whatever fails here fails in the run, which says what and where
        return True
    return padded.ndim != 2 or torch.allclose(padded, alone, rtol=1e-2, atol=1e-2 * float(alone.abs().max()))


def _special(model: nn.Module, leaves: OneText) -> NDArray[np.bool_]:
    """Which tokens are special or padding, (length,)."""
    ids = leaves["input_ids"]
    found = np.zeros(len(ids), dtype=bool)
    if leaves.encoding is not None:
        added = np.array(leaves.encoding.special_tokens_mask, dtype=bool)
        padding = np.array(leaves.encoding.attention_mask) == 0
        found |= added | np.isin(ids.numpy(), ids.numpy()[added & ~padding])  # also where the text has one itself
    elif "special_tokens_mask" in leaves:
        found |= leaves["special_tokens_mask"].numpy().astype(bool)
    else:  # the tokens at both ends that the configuration names
        names = ("pad_token_id", "bos_token_id", "eos_token_id", "cls_token_id", "sep_token_id")
        config = getattr(model, "config", None)
        reserved = np.isin(ids.numpy(), [v for v in (getattr(config, n, None) for n in names) if isinstance(v, int)])
        inner = np.flatnonzero(~reserved)
        if len(inner):
            found[: inner[0]], found[inner[-1] + 1 :] = True, True
    if "attention_mask" in leaves:
        found |= leaves["attention_mask"].numpy() == 0
    if found.all():
        raise bad("x", "explain", "the encoding of a text with at least one token", "special tokens only")
    return found


def _owners(leaves: OneText, ids: Tensor, special: NDArray[np.bool_], features: object) -> tuple[Tensor, list[str]]:
    """The feature of every token, -1 for special ones, and the names of the features."""
    if features is None:
        tokens = ids.tolist() if leaves.encoding is None else leaves.encoding.tokens
        labels, names = np.arange(len(ids)), distinct_names([str(token) for token in tokens])
    elif isinstance(features, Features) and features.shapes == ((len(ids),),):
        labels, names = np.asarray(features.labels[0]), list(features.names)
    else:
        labels = np.zeros(0, dtype=np.int64) if isinstance(features, Features) else np.asarray(features)
        if labels.shape != (len(ids),) or labels.dtype.kind not in "iu":
            allowed = f"None, features.tokens(ids), or one label for each of the {len(ids)} tokens"
            raise bad("features", "explain", allowed, repr(features))
        names = [f"group {label}" for label in range(int(labels.max()) + 1)]
    kept = np.unique(labels[~special])
    number = {int(label): place for place, label in enumerate(kept)}
    owner = [-1 if is_special else number[int(label)] for label, is_special in zip(labels, special, strict=True)]
    return torch.tensor(owner), [names[int(label)] for label in kept]


def _chosen(model: nn.Module, baseline: object) -> tuple[object, str]:
    """What an absent token is, and the sentence that says so if the user left it open."""
    if not (isinstance(baseline, float) and baseline == 0.0):
        return baseline, ""
    weights, config = next(embedding_of(model, "explain").parameters()), getattr(model, "config", None)
    names = [name for name in ("pad", "eos", "bos") if _is_id(getattr(config, f"{name}_token_id", None), weights)]
    name = names[0] if names else "mean"
    what = f"the {name} token of the model's configuration" if names else "the mean of all embeddings"
    return (
        name,
        f"x is a text, so its tokens are the features, and an absent token is {what}; baseline= chooses another",
    )


def _absent(model: nn.Module, ids: Tensor, baseline: object) -> Tensor:
    """The embedding of an absent token, (dims,), or of each token, (length, dims)."""
    weights = next(embedding_of(model, "explain").parameters()).detach()
    config = getattr(model, "config", None)
    if isinstance(baseline, str) and baseline in ("mean", "zero"):
        return mean_embedding(model, "explain") if baseline == "mean" else torch.zeros(weights.shape[-1])
    if isinstance(baseline, str) and baseline in ("pad", "eos", "bos"):
        baseline = getattr(config, f"{baseline}_token_id", None)
    if isinstance(baseline, Mapping) and "input_ids" in baseline:
        given = baseline["input_ids"]
        baseline = given if _is_id(given, weights) else one_text(baseline)["input_ids"]
    if isinstance(baseline, Tensor) and baseline.is_floating_point() and baseline.shape[-1:] == weights.shape[-1:]:
        return baseline.detach().float()
    if _is_id(baseline, weights):
        chosen = torch.full_like(ids, int(baseline))  # type: ignore[call-overload]
    elif isinstance(baseline, Tensor | np.ndarray | list) and torch.as_tensor(baseline).shape == ids.shape:
        chosen = torch.as_tensor(baseline).long()
    else:
        raise bad("baseline", "explain", _ALLOWED, repr(baseline))
    return embedded(model, chosen)


def _is_id(value: object, weights: Tensor) -> bool:
    return is_whole(value, 0, len(weights) - 1)
