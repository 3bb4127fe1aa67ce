"""F of how present each feature of a text is: the embeddings of its tokens move from absent to present.

A point holds one number per feature, between 0 (absent) and `scale` (present). scale_j is the distance between the two
embeddings of feature j, so that distances between points are distances in embedding space, and a ray of points is a ray
of embeddings. Tokens without a feature (special tokens, fixed text, the answer) stay as they are.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from gralis.errors import GralisError, bad
from gralis.models.device_map import input_device
from gralis.models.failures import kind

__all__ = [
    "PresentTokens",
    "SplicedTokens",
    "TokenSequence",
    "accepts",
    "embedded",
    "embedding_of",
    "logits_in",
    "mean_embedding",
]

_VECTORS = 48  # that a layer needs for one token, each as wide as an embedding
_TOKENS = 4096  # that are embedded at a time


@dataclass(frozen=True, eq=False)
class TokenSequence:
    """The tokens of one text, and the feature to which each belongs.

    Attributes
    ----------
    ids : Tensor of shape (length,)
        The token ids.
    owner : Tensor of shape (length,)
        The number of the feature of every token; -1 for tokens without a feature.
    n_features : int
        The number of features.
    constants : mapping of str to Tensor
        Further inputs with one number per token, (length,), such as token_type_ids.
    others : mapping of str to object
        Further arguments of the network. A tensor (1, ...) is repeated for every row, other values are passed on.
    """

    ids: Tensor
    owner: Tensor
    n_features: int
    constants: Mapping[str, Tensor] = field(default_factory=dict)
    others: Mapping[str, Any] = field(default_factory=dict)


def accepts(network: nn.Module, argument: str) -> bool:
    """Whether the forward of the network has this argument."""
    return argument in inspect.signature(network.forward).parameters


def embedding_of(network: object, owner: str) -> nn.Module:
    """The module that turns token ids into embeddings; a network without one is refused."""
    advice = "Explain another network with gralis.explain(layer=...), or from its text with gralis.text.remote."
    allowed = "a transformers model with get_input_embeddings() and an inputs_embeds argument"
    if not isinstance(network, nn.Module):
        raise bad("model", owner, allowed, kind(network), advice)
    find = getattr(network, "get_input_embeddings", None)
    try:
        found = find() if callable(find) else None
    except (NotImplementedError, AttributeError):
        found = None
    if not isinstance(found, nn.Module) or not accepts(network, "inputs_embeds"):
        raise bad("model", owner, allowed, f"a {type(network).__name__} without input embeddings", advice)
    return found


def embedded(network: nn.Module, ids: Tensor) -> Tensor:
    """The embeddings of token ids in float32, on the device of the input embeddings."""
    with torch.no_grad():
        found: Tensor = network.get_input_embeddings()(ids.to(input_device(network)))  # type: ignore[operator]
    return found.float()


def mean_embedding(network: nn.Module, owner: str) -> Tensor:
    """The mean of the embeddings of all tokens, (dims,)."""
    size = len(next(embedding_of(network, owner).parameters()))
    parts = [embedded(network, torch.arange(size)[start : start + _TOKENS]).sum(0) for start in range(0, size, _TOKENS)]
    return torch.stack(parts).sum(0) / size


def logits_in(outputs: Any) -> Tensor:
    """The logits in what a network returned: a tensor, an object or dict with logits, or the first of a tuple."""
    found = outputs
    if isinstance(outputs, Mapping):
        found = outputs.get("logits")
    elif hasattr(outputs, "logits"):
        found = outputs.logits
    elif isinstance(outputs, tuple | list) and outputs:
        found = next((part for part in outputs if isinstance(part, Tensor) and part.ndim >= 2), None)
    if not isinstance(found, Tensor):
        raise GralisError(
            f"The model returned {kind(outputs)} without logits; give a function as target, for example "
            "target=lambda outputs: outputs.last_hidden_state[:, 0].sum(1)."
        )
    return found


class _Wrapped(nn.Module):
    """A network with fixed inputs, as a function of the presence of features; `read` turns its outputs into F."""

    ids: Tensor
    owner: Tensor
    scale: Tensor

    def __init__(self, network: nn.Module, sequence: TokenSequence, read: Callable[[Any], Any]) -> None:
        super().__init__()
        self.network = network
        self.training = network.training  # only this flag: the network keeps its flags
        self._sequence, self._read = sequence, read
        self.register_buffer("ids", sequence.ids.to(self.input_device))
        owner = sequence.owner.to(self.input_device)
        self.register_buffer("owner", torch.where(owner < 0, sequence.n_features, owner))

    @property
    def _embedding(self) -> nn.Module:
        return self.network.get_input_embeddings()  # type: ignore[operator,no-any-return]

    @property
    def input_device(self) -> torch.device | None:
        """Where the input embeddings are; a network that is split over devices moves what follows by itself."""
        return input_device(self.network)

    @property
    def shown_as(self) -> str:
        """The class of the network, which error texts name."""
        return type(self.network).__name__

    @property
    def rounding(self) -> float:
        """The relative rounding error of the type in which the network computes."""
        return float(torch.finfo(next(self._embedding.parameters()).dtype).eps)

    @property
    def row_bytes(self) -> tuple[int, int]:
        """About how many bytes one text needs: for a forward, and for a forward with its backward.

        A layer holds some dozens of vectors per token, and all pairs of tokens unless the attention is fused. A forward
        keeps two layers at a time, and a backward needs what every layer left.
        """
        config = getattr(self.network, "config", None)
        length, width = len(self.ids), next(self._embedding.parameters()).shape[-1]
        size = next(self._embedding.parameters()).element_size()
        heads, layers = (int(getattr(config, name, None) or 1) for name in ("num_attention_heads", "num_hidden_layers"))
        pairs = 0 if getattr(config, "_attn_implementation", "eager") != "eager" else 3 * heads * length**2
        layer = size * (_VECTORS * length * width + pairs)
        kept = self._sequence.others.get("logits_to_keep")
        logits = 12 * int(getattr(config, "vocab_size", 0) or 0) * (kept if isinstance(kept, int) else length)
        return 2 * layer + logits, (layers + 1) * layer + 2 * logits

    def _others(self, rows: int) -> dict[str, Any]:
        others = {}
        for name, value in self._sequence.others.items():
            tensor = isinstance(value, Tensor) and value.ndim > 1
            others[name] = value.to(self.ids.device).expand(rows, *value.shape[1:]) if tensor else value
        return others

    def _by_token(self, presence: Tensor) -> Tensor:
        """(rows, n_features) -> (rows, length), with 1 for tokens without a feature."""
        return torch.cat([presence, torch.ones_like(presence[:, :1])], dim=1)[:, self.owner]


class PresentTokens(_Wrapped):
    """The network at embeddings between absent and present."""

    absent: Tensor
    present: Tensor

    def __init__(
        self, network: nn.Module, sequence: TokenSequence, absent: Tensor, read: Callable[[Any], Any] = lambda z: z
    ) -> None:
        super().__init__(network, sequence, read)
        present = embedded(network, self.ids)
        absent = absent.to(present)
        squared = (present - absent).square().flatten(1).sum(1).double()
        total = squared.new_zeros(sequence.n_features + 1).index_add(0, self.owner, squared)
        self.register_buffer("present", present)
        self.register_buffer("absent", absent)
        self.register_buffer("scale", total[:-1].sqrt().float())

    def forward(self, points: Tensor) -> Any:
        """What `read` makes of the outputs at points (rows, n_features)."""
        weights = self._by_token(points / torch.where(self.scale > 0, self.scale, 1.0))
        embeddings = torch.lerp(self.absent, self.present, weights[..., None])
        dtype = next(self._embedding.parameters()).dtype
        constants = {name: each.to(points.device).expand(len(points), -1) for name, each in self._constants.items()}
        outputs = self.network(inputs_embeds=embeddings.to(dtype), **constants, **self._others(len(points)))
        return self._read(outputs)

    @property
    def _constants(self) -> dict[str, Tensor]:
        return {name: value[None] for name, value in self._sequence.constants.items()}


class SplicedTokens(_Wrapped):
    """The network at texts from which absent features were removed, hidden, or replaced by other tokens.

    Only coalitions make sense here, not points between them: the presence of a feature is 0 or 1, and there is no
    gradient. `instead` holds the tokens that stand for each absent feature. With `hide` the tokens stay in their place
    and the attention mask excludes them. `left` pads on the left, so that the end of every row is aligned.
    """

    def __init__(
        self,
        network: nn.Module,
        sequence: TokenSequence,
        instead: Sequence[Sequence[int]],
        read: Callable[[Any], Any] = lambda z: z,
        *,
        hide: bool = False,
        left: bool = False,
    ) -> None:
        super().__init__(network, sequence, read)
        self._instead, self._hide, self._left = [list(ids) for ids in instead], hide, left
        self.register_buffer("scale", torch.ones(sequence.n_features))

    def forward(self, points: Tensor) -> Any:
        """What `read` makes of the outputs at coalitions (rows, n_features) of zeros and ones."""
        present = points > 0.5
        if self._hide:
            ids, mask = self.ids.expand(len(points), -1), self._by_token(present.long())
            constants = {name: value.to(ids).expand(len(ids), -1) for name, value in self._sequence.constants.items()}
            if accepts(self.network, "position_ids"):
                constants["position_ids"] = torch.arange(len(self.ids), device=ids.device).expand(len(ids), -1)
        else:
            ids, mask, constants = self._spliced(present)
        constants["attention_mask"] = mask
        return self._read(self.network(input_ids=ids, **constants, **self._others(len(points))))

    def _spliced(self, present: Tensor) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
        """The ids of every row, padded, with the mask that excludes the padding."""
        owners, ids = self.owner.tolist(), self.ids.tolist()
        typed = {name: value.tolist() for name, value in self._sequence.constants.items() if name == "token_type_ids"}
        rows, types = [], []
        for row in present.tolist():
            chosen: list[int] = []
            kinds: list[int] = []
            for place, (token, owner) in enumerate(zip(ids, owners, strict=True)):
                if owner == len(row) or row[owner]:
                    new = [token]
                else:  # the tokens that stand for an absent feature come where it begins
                    new = self._instead[owner] if place == owners.index(owner) else []
                chosen += new
                kinds += [typed["token_type_ids"][place]] * len(new) if typed else []
            rows.append(chosen)
            types.append(kinds)
        longest = max(map(len, rows))
        padded = torch.tensor([self._padded(row, longest) for row in rows], device=self.ids.device)
        mask = torch.tensor([self._padded([1] * len(row), longest) for row in rows], device=self.ids.device)
        constants = {}
        if typed:
            constants["token_type_ids"] = torch.tensor([self._padded(row, longest) for row in types]).to(padded)
        if self._left and accepts(self.network, "position_ids"):
            constants["position_ids"] = (mask.cumsum(1) - 1).clamp(min=0)
        return padded, mask, constants

    def _padded(self, row: list[int], longest: int) -> list[int]:
        room = [0] * (longest - len(row))
        return room + row if self._left else row + room
