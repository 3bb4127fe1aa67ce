"""F of which features of a text are there: the text becomes shorter, or the attention mask hides what is absent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn

from gralis.models.frozen import frozen
from gralis.models.token_inputs import FixedText, TokenSequence, accepts, first_position

__all__ = ["SplicedTokens"]

_SEEN = 1e-4  # relative to the largest output: smaller changes are rounding


class SplicedTokens(FixedText):
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
        self._padding = int(getattr(getattr(network, "config", None), "pad_token_id", None) or 0)
        self._first = first_position(network) if accepts(network, "position_ids") else None
        self.register_buffer("scale", torch.ones(sequence.n_features))

    def forward(self, points: Tensor) -> Any:
        """What `read` makes of the outputs at coalitions (rows, n_features) of zeros and ones."""
        present = points > 0.5
        if self._hide:
            return self._masked(self.ids, self._by_token(present.long()))
        return self._shortened(present)

    @property
    def hides(self) -> bool:
        """Whether absent tokens stay in their places, behind the attention mask."""
        return self._hide

    def traces(self) -> Literal["none", "seen", "moved"]:
        """What the outputs show of hidden tokens or of padding.

        They may be "seen": a model that reads its answer off the last token sees it, whatever the attention mask says.
        Or the outputs, one for every place of the text, are "moved" to other places.
        """
        try:
            with torch.no_grad(), frozen(self.network):
                one, two = self._hidden_pair() if self._hide else self._padded_pair()
        except Exception:  # whatever fails here fails in the run, which says what and where
            return "none"
        if not isinstance(one, Tensor) or one.ndim < 2:
            return "none"  # what the target will read of it is not known here
        if one.shape != two.shape:
            return "moved"
        seen = one.ndim == 2 and (one - two).abs().max() > max(_SEEN, 8 * self.rounding) * one.abs().max()
        return "seen" if seen else "none"

    def _hidden_pair(self) -> tuple[Any, Any]:
        """The outputs with every feature hidden, for the tokens of the text and for others in their places."""
        fixed = self.owner == self._sequence.n_features
        others = torch.where(fixed, self.ids, (self.ids + 1) % len(next(self._embedding.parameters())))
        return self._masked(self.ids, fixed[None].long()), self._masked(others, fixed[None].long())

    def _padded_pair(self) -> tuple[Any, Any]:
        """The outputs without any feature, alone and beside the whole text."""
        nothing = torch.zeros(1, len(self.scale), dtype=torch.bool)
        length = self._spliced(nothing, 0)[0].shape[1]
        return self._shortened(nothing), self._shortened(nothing, max(len(self.ids), length + 1))

    def _masked(self, ids: Tensor, mask: Tensor) -> Any:
        """The outputs for these tokens in their places, (length,), under the mask of every row."""
        rows = len(mask)
        constants = {name: value.to(ids).expand(rows, -1) for name, value in self._sequence.constants.items()}
        if self._first is not None:
            places = torch.arange(self._first, self._first + len(ids), device=ids.device)
            constants["position_ids"] = places.expand(rows, -1)
        return self._answer(ids.expand(rows, -1), {**constants, "attention_mask": mask})

    def _shortened(self, present: Tensor, longest: int = 0) -> Any:
        """The outputs for the texts without what is absent, padded to the longest of them, or further."""
        ids, mask, constants = self._spliced(present, longest)
        return self._answer(ids, {**constants, "attention_mask": mask})

    def _answer(self, ids: Tensor, constants: dict[str, Tensor]) -> Any:
        return self._read(self.network(input_ids=ids, **constants, **self._others(len(ids))))

    def _spliced(self, present: Tensor, longest: int) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
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
        longest = max(longest, *map(len, rows))
        padded = torch.tensor([self._padded(row, longest, self._padding) for row in rows], device=self.ids.device)
        mask = torch.tensor([self._padded([1] * len(row), longest) for row in rows], device=self.ids.device)
        constants = {}
        if typed:
            constants["token_type_ids"] = torch.tensor([self._padded(row, longest) for row in types]).to(padded)
        if self._left and self._first is not None:
            constants["position_ids"] = (mask.cumsum(1) - 1).clamp(min=0) + self._first
        return padded, mask, constants

    def _padded(self, row: list[int], longest: int, padding: int = 0) -> list[int]:
        room = [padding] * (longest - len(row))
        return room + row if self._left else row + room
