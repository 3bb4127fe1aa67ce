"""What is explained: a model, an input x, baselines x', features and targets, checked and brought into one form."""

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
from gralis.baselines.absent_tokens import is_encoding, one_text, presence_of_tokens
from gralis.baselines.background import CodedRows, coded_rows
from gralis.baselines.endpoints import Endpoints
from gralis.errors import GralisError, bad
from gralis.features import Features, columns
from gralis.features import resolve as resolve_features
from gralis.features.batch_axis import LEFT_OUT, is_batch_of_one, without_batch_axis
from gralis.features.pictures import cut_pictures
from gralis.features.transformer import picture_tokens
from gralis.features.whole_numbers import jumping_by_type
from gralis.models import Model, Points, adapt
from gralis.models.estimator_model import EstimatorModel, estimator, is_estimator
from gralis.models.fingerprint import bytes_of
from gralis.models.layer import Tail, descend
from gralis.models.outputs import every_target, predicted, with_outputs
from gralis.models.torch_module import TorchModel
from gralis.tables import TableCoding, is_table
from gralis.targets import Target, Targets, describe, listed, total

__all__ = ["Problem"]

_FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
_WHOLE = (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)


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
    whole_types: tuple[torch.dtype | None, ...] = ()  # in which a leaf of integers or booleans reaches the model
    choices: tuple[str, ...] = ()  # what was decided for the user, in sentences
    table: TableCoding | None = None  # how a row of a table became x

    @classmethod
    def build(
        cls,
        model: object,
        x: object,
        *,
        baseline: object = 0.0,
        target: Target | Targets | str = None,
        features: object = None,
        layer: object = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        cut: bool = False,
    ) -> Problem:
        """Check everything that the user passed, and bring it into one form.

        With `cut`, pictures that come without features are cut into regions.
        """
        if isinstance(target, str) and target == "predicted":
            places = {"features": features, "layer": layer, "cut": cut, "device": device, "dtype": dtype}
            return cls.build(model, x, baseline=baseline, target=0, **places)._of_predicted()  # type: ignore[arg-type]
        choices: list[str] = []
        if is_encoding(model, x):
            x = one_text(x)  # type: ignore[arg-type]
            if layer is None:
                tokens = presence_of_tokens(model, x, baseline, features, listed(target))  # type: ignore[arg-type]
                model, x, features, chosen = tokens.module, tokens.point, tokens.features, tokens.choice
                baseline, dtype = 0.0, dtype or torch.float32
                choices += [chosen] if chosen else []
        if is_estimator(model):
            model = estimator(model)
        row = row_of(model, x, baseline) if layer is None else None
        if row is not None:
            x, baseline = row.x[0], row.baseline
            model = model.at(row.coding) if isinstance(model, EstimatorModel) else model
            features = columns(row.coding.names) if features is None and row.named else features
        coding = model.table if isinstance(model, EstimatorModel) else None if row is None else row.coding
        targets = listed(_with_numbers(model, target))
        if coding is None:
            x, baseline, features, left_out = _one_input(model, targets, x, baseline, features, device, dtype)
            choices += [LEFT_OUT] if left_out else []
        if layer is not None:
            config, picture = getattr(model, "config", None), getattr(x, "shape", ())
            model, x, baseline = _at_layer(model, x, baseline, targets[0] if targets else total, layer)
            features = picture_tokens(config, x.shape, picture) if features is None else features
        form, given = _leaves(x)
        keys = form if isinstance(form, tuple) else None
        adapted = adapt(model, targets[0] if targets else None, device=device, dtype=dtype)
        regions = cut_pictures(given, keys) if cut and features is None and layer is None else None
        if regions is not None:
            features, sentences = regions
            choices += sentences
        partition = resolve_features(features, tuple(tuple(leaf.shape) for leaf in given), keys)
        _refuse_picture(given, partition)
        by_type = [np.full(tuple(leaf.shape), leaf.dtype in _WHOLE) for leaf in given]
        by_type = by_type if coding is None else [coding.jumping]
        partition = jumping_by_type(partition, by_type)
        jumps = [bool(partition.discrete[labels].all()) for labels in partition.labels]
        leaves = tuple(_floating(leaf, whole) for leaf, whole in zip(given, jumps, strict=True))
        types = tuple(g.dtype if g.dtype in _WHOLE and j else None for g, j in zip(given, jumps, strict=True))
        for number, leaf in enumerate(leaves):
            _require_finite(leaf, f"x[{keys[number]}]" if keys else "x" if len(leaves) == 1 else f"x[{number}]")
        whole_types = types if isinstance(adapted, TorchModel) else (None,) * len(types)
        if not targets:
            targets = every_target(adapted, _packed(form, [leaf[None] for leaf in leaves], whole_types))
        working = dtype or getattr(adapted, "dtype", None)
        return cls(
            adapted if len(targets) == 1 else with_outputs(adapted).with_target(targets[0]),
            leaves,
            _whole_baselines(resolve_baseline(baseline, leaves, keys=keys, x_user=x), types),
            partition,
            form,
            targets,
            tuple(torch.float64 if own else working or leaf.dtype for leaf, own in zip(leaves, types, strict=True)),
            model.name if isinstance(model, Tail) else None,
            whole_types,
            tuple(choices),
            coding,
        )

    @property
    def n_features(self) -> int:
        return self.features.n_features

    @property
    def input_dtypes(self) -> tuple[torch.dtype, ...]:
        """The type of every leaf as the user gave it."""
        types = self.whole_types or (None,) * len(self.x)
        return tuple(own or leaf.dtype for leaf, own in zip(self.x, types, strict=True))

    def only(self, target: int) -> Problem:
        """The same problem with one of its targets, by number."""
        if len(self.targets) == 1:
            return self
        chosen = self.targets[target]
        return replace(self, model=with_outputs(self.model).with_target(chosen), targets=(chosen,))

    def _of_predicted(self) -> Problem:
        """The same problem with the predicted class as its target; the only output of a model with one."""
        number = self.predicted()
        return replace(self, model=with_outputs(self.model).with_target(number), targets=(number,))

    @property
    def class_names(self) -> tuple[str, ...]:
        """The names of the classes that the model knows; empty if it knows none."""
        return tuple(getattr(self.model, "class_names", ()))

    @property
    def target_labels(self) -> tuple[str, ...]:
        """What every target is called: the name of its class, or its description."""
        return tuple(self.class_of(target) or describe(target) for target in self.targets)

    def class_of(self, target: Target) -> str | None:
        """The name of the class that a target belongs to; None if the model does not name its classes."""
        number = getattr(target, "k", target)
        if isinstance(number, int) and -len(self.class_names) <= number < len(self.class_names):
            return self.class_names[number]
        return None

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
        return _packed(self.form, leaves, self.whole_types)

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


def _one_input(
    model: object,
    targets: Sequence[Target],
    x: object,
    baseline: object,
    features: object,
    device: torch.device | str | None,
    dtype: torch.dtype | None,
) -> tuple[object, object, object, bool]:
    """x, baseline and features without the batch axis of x, if the model shows that x is a batch of one input."""
    form, leaves = _leaves(x)
    if not all(leaf.ndim > 1 and leaf.shape[0] == 1 for leaf in leaves):
        return x, baseline, features, False
    adapted = adapt(model, targets[0] if targets else None, device=device, dtype=dtype)
    if not is_batch_of_one(adapted, targets[0] if targets else total, leaves, lambda parts: _packed(form, parts)):
        return x, baseline, features, False
    names = form if isinstance(form, tuple) else [f"x{i}" for i in range(len(leaves))]
    shapes = {name: tuple(leaf.shape) for name, leaf in zip(names, leaves, strict=True)}
    return *(without_batch_axis(value, shapes) for value in (x, baseline, features)), True


def row_of(model: object, x: object, baseline: object) -> CodedRows | None:
    """One row of a table as numbers, if x is such a row; None for any other input, and for a row that is coded."""
    rows = rows_of(model, x, baseline)
    if rows is not None and len(rows.x) != 1:
        raise bad("x", "explain", "one row of a table, such as frame.iloc[[0]]", f"{len(rows.x)} rows")
    return rows


def rows_of(model: object, x: object, baseline: object) -> CodedRows | None:
    """Rows of a table as numbers, and their background; None for inputs of another kind, and for coded rows."""
    if isinstance(model, EstimatorModel):
        if model.table is not None:
            return None
        return coded_rows(x, baseline, model.column_names, model.n_columns, frames=model.takes_frames)
    if is_table(x) and not isinstance(x, Mapping):  # a dict holds the arguments of a network
        return coded_rows(x, baseline, frames=False, numbers_only=True)
    return None


def _with_numbers(model: object, target: Target | Targets | str) -> Target | Targets:
    """The targets, with the names of classes replaced by their numbers."""
    if isinstance(target, list):
        return [_number_of(model, each) for each in target]
    return "all" if isinstance(target, str) and target == "all" else _number_of(model, target)


def _number_of(model: object, target: Target | str) -> Target:
    if not isinstance(target, str):
        return target
    if isinstance(model, EstimatorModel):
        return model.named_target(target)
    allowed = "None, an int, a tuple of ints, a function of the outputs, a list of these, 'all' or 'predicted'"
    raise bad("target", "explain", allowed, f"{target!r}, and the model has no names of classes")


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


def _refuse_picture(leaves: Sequence[Tensor], features: Features) -> None:
    """An array of bytes with two or more axes is a picture, whose pixels move; a network expects them as floats."""
    for leaf in leaves:
        if leaf.dtype == torch.uint8 and leaf.ndim >= 2 and not features.chosen:
            advice = (
                "Convert a picture as the model expects it, for example with x.float() / 255. If the bytes are "
                "categories, say which features jump: features.jumping([...])."
            )
            raise bad(
                "x", "explain", "floating point if it is a picture", f"uint8 of shape {tuple(leaf.shape)}", advice
            )


def _floating(leaf: Tensor, jumps: bool) -> Tensor:
    """The leaf in floating point. Integers that jump fit into float64; those that move become what x.float() is."""
    if leaf.dtype in _WHOLE:
        return leaf.to(torch.float64 if jumps else torch.get_default_dtype())
    if leaf.dtype not in _FLOATS:
        allowed = "floating point (float16, bfloat16, float32 or float64), integers or booleans"
        raise bad("x", "explain", allowed, str(leaf.dtype).removeprefix("torch."))
    return leaf


def _whole_baselines(baselines: Baselines, types: Sequence[torch.dtype | None]) -> Baselines:
    """The baselines, checked to be values that the leaves of integers and booleans can have."""
    if not any(types):
        return baselines
    points = []
    for point, own in zip(baselines.points, types, strict=True):
        if own is not None and (point.double() != point.to(own).double()).any():
            wrong = point.double()[point.double() != point.to(own).double()][0].item()
            name = str(own).removeprefix("torch.")
            advice = "Choose such a baseline, or let x move: give it as x.float()."
            raise bad("baseline", "explain", f"made of values of type {name}, as x is", f"{wrong:g}", advice)
        points.append(point.double() if own is not None else point)
    return replace(baselines, points=tuple(points))


def _packed(form: type | tuple[str, ...], leaves: Sequence[Tensor], types: Sequence[torch.dtype | None] = ()) -> Points:
    leaves = [leaf.to(own) if own else leaf for leaf, own in zip(leaves, types or [None] * len(leaves), strict=True)]
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
    if tensor.is_meta:
        raise bad("x", "explain", "a tensor with numbers", "a tensor on the device 'meta', which has none")
    return tensor


def _require_finite(leaf: Tensor, name: str) -> None:
    finite = torch.isfinite(leaf)
    if not finite.all():
        wrong = ~finite
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
