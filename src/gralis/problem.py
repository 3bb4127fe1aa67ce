"""What is explained: a model, an input x, baselines x', features. The user's input is checked here."""

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
from gralis.baselines import resolve as resolve_baseline
from gralis.baselines.endpoints import Endpoints
from gralis.errors import GralisError, bad
from gralis.features import Features
from gralis.features import resolve as resolve_features
from gralis.models import Model, Points, adapt
from gralis.models.fingerprint import bytes_of
from gralis.models.layer import Tail, descend
from gralis.models.outputs import every_target, predicted, with_outputs
from gralis.targets import Target, Targets, listed, total

__all__ = ["Problem"]

_DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


@dataclass(frozen=True, eq=False)
class Problem:
    """One prediction F(x) to be explained against baselines x'; x is always a tuple of leaves."""

    model: Model
    x: tuple[Tensor, ...]
    baselines: Baselines
    features: Features
    form: type | tuple[str, ...]  # how the user packs the leaves: Tensor, tuple, or the keys of a dict
    targets: tuple[Target, ...]  # what is read off the outputs; the first is also the target of the model
    dtypes: tuple[torch.dtype, ...]  # in which each leaf is evaluated
    layer: str | None = None  # x is the output of this layer; None if it is the input of the model

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
        """Check everything that the user passed, and bring it into one form."""
        targets = listed(target)
        if layer is not None:
            model, x, baseline = _at_layer(model, x, baseline, targets[0] if targets else total, layer)
        form, leaves = _leaves(x)
        keys = form if isinstance(form, tuple) else None
        adapted = adapt(model, targets[0] if targets else None, device=device, dtype=dtype)
        integers = [leaf for leaf in leaves if not leaf.is_floating_point()]
        if integers:
            raise bad(
                "x",
                "explain",
                "floating point",
                str(integers[0].dtype).removeprefix("torch."),
                "Integers cannot move along a ray: convert them with x.float(), or explain token ids from their "
                "embedding with layer=...",
            )
        for number, leaf in enumerate(leaves):
            if leaf.dtype not in _DTYPES:
                got = str(leaf.dtype).removeprefix("torch.")
                raise bad("x", "explain", "float16, bfloat16, float32 or float64", got)
            _require_finite(leaf, f"x[{keys[number]}]" if keys else "x" if len(leaves) == 1 else f"x[{number}]")
        if not targets:
            targets = every_target(adapted, _packed(form, [leaf[None] for leaf in leaves]))
        working = dtype or getattr(adapted, "dtype", None)
        return cls(
            adapted if len(targets) == 1 else with_outputs(adapted).with_target(targets[0]),
            leaves,
            resolve_baseline(baseline, leaves, keys=keys, x_user=x),
            resolve_features(features, tuple(tuple(leaf.shape) for leaf in leaves), keys),
            form,
            targets,
            tuple(working or leaf.dtype for leaf in leaves),
            model.name if isinstance(model, Tail) else None,
        )

    @property
    def n_features(self) -> int:
        return self.features.n_features

    def only(self, target: int) -> Problem:
        """The same problem with one of its targets, by number."""
        if len(self.targets) == 1:
            return self
        chosen = self.targets[target]
        return replace(self, model=with_outputs(self.model).with_target(chosen), targets=(chosen,))

    def predicted(self) -> int | None:
        """The class with the largest output at x, by one forward; None if the model returns one number."""
        return predicted(self.model, self.pack([leaf[None] for leaf in self.x]))

    @property
    def device(self) -> torch.device:
        """Where points are built: the device of the model, or that of x if the model does not say."""
        return getattr(self.model, "device", None) or self.x[0].device

    @cached_property
    def squared_distance(self) -> Array:
        """||x_i - x'_i||^2 of every feature for every baseline, (n_baselines, n_features)."""
        squared = self.endpoints.squared_distance(self.features)
        if not np.isfinite(squared.sum(1)).all():
            raise GralisError("x is so far from the baseline that their squared distance overflows; rescale the input.")
        return squared

    @cached_property
    def endpoints(self) -> Endpoints:
        """x and its baselines as arrays."""
        return Endpoints.of(self.x, self.baselines.points, self.baselines.weights)

    def pack(self, leaves: list[Tensor]) -> Points:
        """The leaves as the model expects them."""
        return _packed(self.form, leaves)

    def fingerprints(self) -> dict[str, str]:
        """The sha256 of the input, of the baselines and of the features."""
        return {
            "x": _digest(self.x),
            "baseline": _digest(self.baselines.points),
            "features": self.features.fingerprint(),
        }

    def model_fingerprint(self) -> str:
        """The fingerprint that the model provides, or the name of its class."""
        fingerprint = getattr(self.model, "fingerprint", None)
        return str(fingerprint()) if fingerprint else type(self.model).__qualname__


def _at_layer(
    model: object, x: object, baseline: object, target: Target, layer: object
) -> tuple[Tail, Tensor, Baselines]:
    """What is explained at a layer: the rest of the network, and the activations of x and of its baselines."""
    form, leaves = _leaves(x)
    keys = form if isinstance(form, tuple) else None
    baselines = resolve_baseline(baseline, leaves, keys=keys, x_user=x, as_given=True)
    batch_of_one = _packed(form, [leaf[None] for leaf in leaves])
    descent = descend(model, layer, batch_of_one, _packed(form, baselines.points), target)
    return descent.tail, descent.activation, Baselines((descent.baselines,), baselines.weights, baselines.name)


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
            f"({int(wrong.sum())} such entries in all); every entry must be finite. Replace a missing value by the "
            f"number that the model receives in its place, and put a column that marks it into the same feature."
        )


def _digest(tensors: tuple[Tensor, ...]) -> str:
    digest = hashlib.sha256()
    for tensor in tensors:
        digest.update(f"{tuple(tensor.shape)}|{tensor.dtype}|".encode())
        digest.update(bytes_of(tensor))
    return digest.hexdigest()
