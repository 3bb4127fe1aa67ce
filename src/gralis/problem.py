"""What is explained: a model, an input x, baselines x', features. Every check of the user's input happens here."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from gralis.arrays import Array, plain
from gralis.baselines import Baselines
from gralis.baselines.baselines import resolve as resolve_baseline
from gralis.baselines.endpoints import Endpoints
from gralis.errors import GralisError, bad
from gralis.features import Features
from gralis.features.given import resolve as resolve_features
from gralis.models import Model, Points, adapt
from gralis.models.fingerprint import bytes_of
from gralis.models.layer import Tail, descend
from gralis.models.outputs import every_target, predicted, readable
from gralis.targets import Target, Targets, listed, total

_DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


@dataclass(frozen=True, eq=False)
class Problem:
    """One prediction F(x) to be explained against baselines x'; x is a tuple of leaves inside."""

    model: Model
    x: tuple[Tensor, ...]
    baselines: Baselines
    features: Features
    form: type | tuple[str, ...]  # how the user packs the leaves: Tensor, tuple, or the keys of a dict
    targets: tuple[Target, ...]  # what is asked of the outputs; the model itself answers the first
    dtypes: tuple[torch.dtype, ...]  # in which each leaf is evaluated
    layer: str | None = None  # x is the output of this layer

    @classmethod
    def build(
        cls,
        model: object,
        x: object,
        *,
        baseline: object = 0.0,
        target: Target | Targets = None,
        features: object = None,
        layer: object = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> Problem:
        """Check everything and bring it into one form."""
        asked = listed(target)
        if layer is not None:
            model, x, baseline = _below(model, x, baseline, asked[0] if asked else total, layer)
        form, leaves = _leaves(x)
        keys = form if isinstance(form, tuple) else None
        adapted = adapt(model, asked[0] if asked else None, device=device, dtype=dtype)
        floats = [leaf.is_floating_point() for leaf in leaves]
        if not all(floats):
            found = leaves[floats.index(False)].dtype
            raise bad(
                "x",
                "explain",
                "floating point",
                str(found).removeprefix("torch."),
                "Integers cannot move along a ray: convert them with x.float(), or explain token ids from their "
                "embedding with layer=...",
            )
        for number, leaf in enumerate(leaves):
            if leaf.dtype not in _DTYPES:
                got = str(leaf.dtype).removeprefix("torch.")
                raise bad("x", "explain", "float16, bfloat16, float32 or float64", got)
            _require_finite(leaf, f"x[{keys[number]}]" if keys else "x" if len(leaves) == 1 else f"x[{number}]")
        working = dtype or getattr(adapted, "dtype", None)
        if not asked:
            asked = every_target(adapted, _packed(form, [leaf[None] for leaf in leaves]))
        return cls(
            adapted if len(asked) == 1 else replace(readable(adapted), target=asked[0]),
            leaves,
            resolve_baseline(baseline, leaves, keys=keys, x_user=x),
            resolve_features(features, tuple(tuple(leaf.shape) for leaf in leaves), keys),
            form,
            asked,
            tuple(working or leaf.dtype for leaf in leaves),
            model.name if isinstance(model, Tail) else None,
        )

    @property
    def n_features(self) -> int:
        return self.features.n_features

    def only(self, target: int) -> Problem:
        """The same with one of its targets, by number."""
        if len(self.targets) == 1:
            return self
        own = self.targets[target]
        return replace(self, model=replace(readable(self.model), target=own), targets=(own,))

    def predicted(self) -> int | None:
        """The class with the largest output at x, by one forward; None where the model gives one number."""
        return predicted(self.model, self.pack([leaf[None] for leaf in self.x]))

    @property
    def device(self) -> torch.device:
        """Where points are built: where the model is, else where x is."""
        return getattr(self.model, "device", None) or self.x[0].device

    @cached_property
    def squared_distance(self) -> Array:
        """||x_i - x'_i||^2 of every feature for every baseline, (n_baselines, n_features)."""
        total = self.endpoints.squared_distance(self.features)
        if not np.isfinite(total.sum(1)).all():
            raise GralisError("x is so far from the baseline that their squared distance overflows; rescale the input.")
        return total

    @cached_property
    def endpoints(self) -> Endpoints:
        """x and its baselines as arrays."""
        return Endpoints.of(self.x, self.baselines.points, self.baselines.weights)

    def pack(self, leaves: list[Tensor]) -> Points:
        """The leaves as the model expects them."""
        return _packed(self.form, leaves)

    def fingerprints(self) -> dict[str, str]:
        """sha256 of input, baselines and features."""
        return {
            "x": _digest(self.x),
            "baseline": _digest(self.baselines.points),
            "features": self.features.fingerprint(),
        }

    def model_fingerprint(self) -> str:
        """The model's own fingerprint, or the name of its kind."""
        fingerprint = getattr(self.model, "fingerprint", None)
        return str(fingerprint()) if fingerprint else type(self.model).__qualname__


def _below(model: object, x: object, baseline: object, target: Target, layer: object) -> tuple[Tail, Tensor, Baselines]:
    """The same question asked at a layer: the rest of the network, and the activations of x and its baselines."""
    form, leaves = _leaves(x)
    keys = form if isinstance(form, tuple) else None
    found = resolve_baseline(baseline, leaves, keys=keys, x_user=x, as_given=True)

    one = tuple(leaf[None] for leaf in leaves)
    descent = descend(model, layer, _packed(form, one), _packed(form, found.points), target)
    return descent.tail, descent.activation, Baselines((descent.baselines,), found.weights, found.name)


def _packed(form: type | tuple[str, ...], leaves: Sequence[Tensor]) -> Points:
    if isinstance(form, tuple):
        return dict(zip(form, leaves, strict=True))
    return tuple(leaves) if form is tuple else leaves[0]


def _leaves(x: object) -> tuple[type | tuple[str, ...], tuple[Tensor, ...]]:
    if isinstance(x, Mapping | tuple) and not x:
        raise bad("x", "explain", "a tensor, an array, or a non-empty tuple or dict of them", repr(x))
    if isinstance(x, Mapping):
        if not all(isinstance(key, str) for key in x):
            raise bad("x", "explain", "a dict whose keys are the names of the model's arguments", f"keys {list(x)}")
        return tuple(x), tuple(_tensor(leaf) for leaf in x.values())
    if isinstance(x, tuple):
        return tuple, tuple(_tensor(leaf) for leaf in x)
    return Tensor, (_tensor(x),)


def _tensor(leaf: object) -> Tensor:
    try:
        tensor = leaf.detach().to_dense() if isinstance(leaf, Tensor) else torch.from_numpy(plain(leaf))
    except (TypeError, ValueError, RuntimeError):
        raise bad(
            "x", "explain", "a tensor, an array, or a tuple or dict of them", f"a {type(leaf).__name__}"
        ) from None
    if tensor.numel() == 0:
        raise bad("x", "explain", "one input with at least one number", f"shape {tuple(tensor.shape)}")
    return tensor


def _require_finite(leaf: Tensor, name: str) -> None:
    wrong = ~torch.isfinite(leaf)
    if wrong.any():
        place = tuple(int(i) for i in torch.nonzero(wrong)[0])
        raise GralisError(
            f"The input {name} is {leaf[place].item()} at index {place if len(place) != 1 else place[0]} "
            f"({int(wrong.sum())} such entries in all); every entry must be finite. A missing value is given as what "
            f"the model sees in its place, with a column that marks it in the same feature."
        )


def _digest(tensors: tuple[Tensor, ...]) -> str:
    digest = hashlib.sha256()
    for tensor in tensors:
        digest.update(f"{tuple(tensor.shape)}|{tensor.dtype}|".encode())
        digest.update(bytes_of(tensor))
    return digest.hexdigest()
