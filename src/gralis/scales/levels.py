"""A level of `multiscale`: what is explained at it, and how its values are brought to the common features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import nn

from gralis.api.explain import explain
from gralis.arrays import Array, Shape
from gralis.checks import is_whole
from gralis.errors import GralisError, bad
from gralis.features import Features, coordinates, grid, slic
from gralis.features.overlap import carried
from gralis.features.transformer import picture_tokens
from gralis.models.layer import activation_shape
from gralis.results.explanation import Explanation

_ALLOWED = (
    "Features of the input, a number of superpixels, a layer (module or name), a pair (layer, Features of its output), "
    "an Explanation, or one of the last two with a matrix of shares behind it"
)
_STRETCH = 2.0  # how far the strides of a layer along the two axes of an image may differ


@dataclass(frozen=True, eq=False)
class Level:
    """What one explanation is made of."""

    name: str
    features: Features | None  # None: the spatial cells or the units of the layer
    layer: object = None  # None: the input
    known: Explanation | None = None  # an explanation that exists already
    shares: object = None  # the user's way to the common features; None: by area

    @classmethod
    def of(cls, level: object, x: object) -> Level:
        """The level that the user described."""
        if isinstance(level, Explanation):
            layer = level.provenance.get("layer")
            name = f"layer {layer}, {level.features.kind}" if layer else repr(level.features)
            return cls(name, level.features, layer, known=level)
        if isinstance(level, Features):
            return cls(f"{level.kind}, {level.n_features} regions", level)
        if is_whole(level, 1):
            return cls.of(slic(x, n_segments=int(level)), x)  # type: ignore[call-overload]
        if isinstance(level, str | nn.Module):
            return cls(f"layer {_name(level)}", None, level)
        if isinstance(level, tuple) and len(level) == 2 and isinstance(level[1], Features):
            return cls(f"layer {_name(level[0])}, {level[1].kind}", level[1], level[0])
        if isinstance(level, tuple) and len(level) == 2 and isinstance(level[0], Explanation):
            own = cls.of(level[0], x)
            return cls(own.name, own.features, own.layer, own.known, level[1])
        if isinstance(level, tuple) and len(level) == 3 and isinstance(level[1], Features):
            own = cls.of(level[:2], x)
            return cls(own.name, own.features, own.layer, shares=level[2])
        raise bad("levels", "multiscale", f"a list of: {_ALLOWED}", repr(level))

    def explain(self, model: object, x: object, options: dict[str, Any]) -> Explanation:
        """phi of the features of this level."""
        if self.known is not None:
            return self.known
        features = self.features
        if self.layer is not None and features is None:
            shape, of_x = activation_shape(model, self.layer, x), tuple(getattr(x, "shape", ()))
            placed = picture_tokens(getattr(model, "config", None), shape, of_x)  # of a vision transformer
            features = placed or _of_layer(_name(self.layer), shape, of_x)
        explanation: Explanation = explain(model, x, features=features, layer=self.layer, **options)
        return explanation

    def carried(self, explained: Explanation, common: Features) -> tuple[Array, tuple[str, ...]]:
        """The rows that bring values to the common features, and the names of those without a place among them."""
        rows, own = carried(explained.features, common, at_layer=self.layer is not None, shares=self.shares)
        return rows, tuple(f"{self.name}: {name}" for name in own)


def _of_layer(name: str, shape: Shape, of_x: Shape) -> Features:
    """The features of a layer that was given without any: the units of a dense layer, the cells of a feature map."""
    if len(shape) == 1:
        return coordinates(shape, [f"unit {i}" for i in range(shape[0])])
    if len(shape) > 2 and len(shape) == len(of_x):
        strides = [there / here for there, here in zip(of_x[1:], shape[1:], strict=True)]
        if max(strides) <= _STRETCH * min(strides):
            return grid(shape, (1,) * (len(shape) - 1))
    raise GralisError(
        f"The layer {name} returns the shape {shape} for x of shape {of_x}, which does not say where its parts lie; "
        f"give a pair (layer, Features of its output) with features.patches or tokens for tokens, features.heads or "
        f"channels for parts without a place, or features.grid for spatial cells."
    )


def _name(layer: object) -> str:
    return layer if isinstance(layer, str) else type(layer).__name__
