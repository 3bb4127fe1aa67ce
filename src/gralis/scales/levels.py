"""A level of `multiscale`: the input divided into regions of some size, or the spatial cells of a layer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import nn

from gralis.api.explain import explain
from gralis.checks import is_whole
from gralis.errors import bad
from gralis.features import Features, grid, slic
from gralis.models.layer import activation_shape
from gralis.results.explanation import Explanation

_ALLOWED = (
    "Features of the input, a number of superpixels, a layer (module or name), a pair (layer, Features of its output), "
    "or an Explanation"
)


@dataclass(frozen=True, eq=False)
class Level:
    """What one explanation is made of."""

    name: str
    features: Features | None  # None: the spatial cells of the layer
    layer: object = None  # None: the input
    known: Explanation | None = None  # an explanation that exists already

    @classmethod
    def of(cls, level: object, x: object) -> Level:
        """The level that the user described."""
        if isinstance(level, Explanation):
            return cls(repr(level.features), level.features, known=level)
        if isinstance(level, Features):
            return cls(f"{level.kind}, {level.n_features} regions", level)
        if is_whole(level, 1):
            return cls.of(slic(x, n_segments=int(level)), x)  # type: ignore[call-overload]
        if isinstance(level, str | nn.Module):
            return cls(f"layer {_name(level)}", None, level)
        if isinstance(level, tuple) and len(level) == 2 and isinstance(level[1], Features):
            return cls(f"layer {_name(level[0])}, {level[1].n_features} regions", level[1], level[0])
        raise bad("levels", "multiscale", f"a list of: {_ALLOWED}", repr(level))

    def explain(self, model: object, x: object, options: dict[str, Any]) -> Explanation:
        """phi of the features of this level."""
        if self.known is not None:
            return self.known
        features = self.features
        if self.layer is not None and features is None:
            features = grid(activation_shape(model, self.layer, x), 1)
        explanation: Explanation = explain(model, x, features=features, layer=self.layer, **options)
        return explanation


def _name(layer: object) -> str:
    return layer if isinstance(layer, str) else type(layer).__name__
