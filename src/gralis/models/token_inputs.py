"""F of how present each feature of a text is: the embeddings of its tokens move from absent to present.

A point holds one number per feature, between 0 (absent) and `scale` (present). scale_j is the distance between the two
embeddings of feature j, so that distances between points are distances in embedding space, and a ray of points is a ray
of embeddings. Tokens without a feature (special tokens, fixed text, the answer) stay as they are.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from gralis.errors import GralisError, ModelError, bad
from gralis.models.device_map import input_device
from gralis.models.embedding_factor import embedding_factor
from gralis.models.failures import kind

__all__ = [
    "FixedText",
    "PresentTokens",
    "TokenSequence",
    "accepts",
    "embedded",
    "embedding_of",
    "first_position",
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


def first_position(network: nn.Module) -> int:
    """The position id of the first token: RoBERTa and its kin count from the one after their padding index."""
    parts = ((name.rpartition(".")[2], part) for name, part in network.named_modules())
    tables = (part for name, part in parts if name == "position_embeddings" and isinstance(part, nn.Embedding))
    return max((table.padding_idx + 1 for table in tables if table.padding_idx is not None), default=0)


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


class FixedText(nn.Module):
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


class PresentTokens(FixedText):
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
        given = {**self._constants, **self._others(1)}
        self._factor = embedding_factor(network, self.ids[None], present[None].to(self._dtype), given)

    def forward(self, points: Tensor) -> Any:
        """What `read` makes of the outputs at points (rows, n_features)."""
        weights = self._by_token(points / torch.where(self.scale > 0, self.scale, 1.0))
        embeddings = torch.lerp(self.absent, self.present, weights[..., None])
        embeddings = embeddings.to(self._dtype) * self._factor
        constants = {name: each.to(points.device).expand(len(points), -1) for name, each in self._constants.items()}
        try:
            outputs = self.network(inputs_embeds=embeddings, **constants, **self._others(len(points)))
        except NotImplementedError as error:
            raise ModelError(
                f"This {self.shown_as} takes no input embeddings ({error}); where absent words are left out it needs "
                f"none: absent='removed'."
            ) from error
        return self._read(outputs)

    @property
    def _constants(self) -> dict[str, Tensor]:
        return {name: value[None].to(self.ids.device) for name, value in self._sequence.constants.items()}

    @property
    def _dtype(self) -> torch.dtype:
        """The type in which the network computes."""
        return next(self._embedding.parameters()).dtype
