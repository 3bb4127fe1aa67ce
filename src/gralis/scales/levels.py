"""A level: the input divided into regions of some size, or the cells of a layer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import nn

from gralis.api.explain import explain
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
    """Where one explanation is made: `layer` None is the input, `features` None of a layer are its spatial cells."""

    name: str
    features: Features | None
    layer: object = None
    known: Explanation | None = None

    @classmethod
    def of(cls, given: object, x: object) -> Level:
        """A level from what the user wrote."""
        if isinstance(given, Explanation):
            return cls(repr(given.features), given.features, known=given)
        if isinstance(given, Features):
            return cls(f"{given.kind}, {given.n_features} regions", given)
        if isinstance(given, int) and not isinstance(given, bool) and given > 0:
            return cls.of(slic(x, n_segments=given), x)
        if isinstance(given, str | nn.Module):
            return cls(f"layer {_name(given)}", None, given)
        if isinstance(given, tuple) and len(given) == 2 and isinstance(given[1], Features):
            return cls(f"layer {_name(given[0])}, {given[1].n_features} regions", given[1], given[0])
        raise bad("levels", "multiscale", f"a list of: {_ALLOWED}", repr(given))

    def explain(self, model: object, x: object, options: dict[str, Any]) -> Explanation:
        """phi of this level's own features."""
        if self.known is not None:
            return self.known
        features = self.features
        if self.layer is not None and features is None:
            features = grid(activation_shape(model, self.layer, x), 1)
        found: Explanation = explain(model, x, features=features, layer=self.layer, **options)
        return found


def _name(layer: object) -> str:
    return layer if isinstance(layer, str) else type(layer).__name__
