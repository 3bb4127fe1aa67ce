"""An explanation in one `.gralis` file: arrays and JSON, no pickle; it comes back bit for bit, without the model."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from gralis.arrays import Array, Masks
from gralis.baselines.endpoints import Endpoints
from gralis.errors import GralisError
from gralis.estimators import Estimate
from gralis.evaluation.cost import Cost
from gralis.features import Features
from gralis.features.coordinate_names import CoordinateNames
from gralis.kernels import Gaussian, Kernel, MaskKernel, SizeKernel, Uniform
from gralis.laws import Law
from gralis.ledger import FoldedLedger, Ledger
from gralis.results.explanation import Explanation
from gralis.storage.container import put_arrays, read_arrays, write_arrays

KIND = "explanation"
_SHOWN = 4  # weights in the repr of a table of sizes

Arrays = dict[str, NDArray[Any]]
Meta = dict[str, Any]


@dataclass(frozen=True, repr=False)
class TableOfSizes:
    """The function of a SizeKernel after loading: its weights on the sizes 0 .. n - 1.

    >>> table = TableOfSizes((1.0, 0.5, 0.25))
    >>> table(2), SizeKernel(table)
    (0.25, SizeKernel(fn=TableOfSizes(1, 0.5, 0.25)))
    """

    weights: tuple[float, ...]

    def __call__(self, size: int) -> float:
        if not 0 <= size < len(self.weights):
            raise GralisError(
                f"This size kernel was loaded from a file, which holds its weights for the sizes "
                f"0 .. {len(self.weights) - 1} only; size {size} is not among them."
            )
        return self.weights[size]

    def __repr__(self) -> str:
        shown = [f"{weight:g}" for weight in self.weights[:_SHOWN]]
        rest = [f"... {len(self.weights)} sizes"] if len(self.weights) > _SHOWN else []
        return f"TableOfSizes({', '.join(shown + rest)})"


@dataclass(frozen=True)
class Forgotten:
    """A kernel that was Python code, which no file can hold: the values stay, new weights need the kernel itself.

    >>> Forgotten("my_kernel")
    Forgotten(name='my_kernel')
    """

    name: str

    def bind(self, squared_distance: Array) -> Law:
        self._refuse()

    def log_weight(self, masks: Masks, squared_distance: Array) -> Array:
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise GralisError(
            f"The kernel {self.name} was Python code, which a file cannot hold; give it again: "
            f"explanation.with_kernel(kernel)."
        )


def save(explanation: Explanation, path: str | Path) -> Path:
    """Write everything but the model to one file, atomically; `load` reads it back."""
    return write_arrays(path, *_contents(explanation))


def to_bytes(explanation: Explanation) -> bytes:
    """What `save` would write."""
    stream = io.BytesIO()
    put_arrays(stream, *_contents(explanation))
    return stream.getvalue()


def _contents(e: Explanation) -> tuple[Arrays, Meta]:
    arrays: Arrays = {
        "values": e.values,
        "departures": e.estimate.departures,
        "carriers": np.full(e.n_features, np.inf) if e.estimate.carriers is None else e.estimate.carriers,
        "f_baselines": e.f_baselines,
        "baseline_weights": e.baseline_weights,
        "squared_distance": e.squared_distance,
    }
    smallest = np.min_scalar_type(e.n_features)  # 30 regions of 150 528 pixels: one byte each, not eight
    arrays |= {f"x.{i}": leaf for i, leaf in enumerate(e.endpoints.x)}
    arrays |= {f"baselines.{i}": leaf for i, leaf in enumerate(e.endpoints.baselines)}
    arrays |= {f"labels.{i}": leaf.astype(smallest) for i, leaf in enumerate(e.features.labels)}
    meta: Meta = {
        "kind": KIND,
        "method": e.method,
        "exact": e.estimate.exact,
        "f_x": e.f_x,
        "features": _describe_features(e.features),
        "kernel": _describe_kernel(e.kernel, e.n_features, "kernel", arrays),
        "cost": asdict(e.cost),
        "plan": e.plan,
        "provenance": e.provenance,
        "complete": e.complete,
        "reached": e.reached,
        "price": e.price,
        "leaf_keys": e.leaf_keys,
        "several_leaves": e.several_leaves,
    }
    if isinstance(e.ledger, FoldedLedger):
        arrays |= {f"folded.{name}": getattr(e.ledger, name) for name in ("rays", "weights", "blocks")}
        meta["folded_kernels"] = [
            _describe_kernel(kernel, e.n_features, f"folded.kernel.{i}", arrays)
            for i, kernel in enumerate(e.ledger.kernels)
        ]
    else:
        arrays |= {f"ledger.{name}": column for name, column in e.ledger.arrays().items()}
    return arrays, plain(meta)


def load(path: str | Path) -> Explanation:
    """The explanation in a file, as it was saved; the ledger stays on disk until it is used, the model is not there.

    A report (HTML, or its JSON) will do as well: it holds the saved explanation.

    >>> import gralis, tempfile, torch
    >>> explanation = gralis.explain(lambda z: z.prod(1), torch.ones(3))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     again = load(explanation.save(f"{folder}/why.gralis"))
    >>> repr(again) == repr(explanation), again.sweep([0.5, 1.0]).values.shape
    (True, (2, 3))
    """
    arrays, meta = _inside_report(path) if _is_text(path) else read_arrays(path, KIND)
    try:
        return _explanation(arrays, meta)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise GralisError(f"{path} is not a whole gralis explanation ({error}); it may be altered.") from error


def _is_text(path: str | Path) -> bool:
    """Whether the file begins like HTML or JSON."""
    try:
        with Path(path).open("rb") as stream:
            return stream.read(64).lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"<", b"{")
    except OSError:
        return False


def _inside_report(path: str | Path) -> tuple[Arrays, Meta]:
    """The explanation inside a report, in memory."""
    from gralis.storage.embedded import archive_of  # here, because a report is made of explanations

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "explanation.gralis"
        file.write_bytes(archive_of(path))
        arrays, meta = read_arrays(file, KIND)
        return {name: np.array(array) for name, array in arrays.items()}, meta


def _explanation(arrays: Arrays, meta: Meta) -> Explanation:
    own = {name: np.array(array) for name, array in arrays.items() if not name.startswith(("ledger.", "folded."))}
    leaf_keys = meta["leaf_keys"]
    return Explanation(
        estimate=Estimate(own["values"], own["departures"], meta["method"], meta["exact"], own["carriers"]),
        kernel=_kernel(meta["kernel"], "kernel", own),
        ledger=_ledger(arrays, meta),
        features=_features(meta["features"], own),
        f_x=meta["f_x"],
        f_baselines=own["f_baselines"],
        endpoints=_endpoints(own, len(meta["features"]["shapes"])),
        squared_distance=own["squared_distance"],
        cost=Cost(**meta["cost"]),
        plan=meta["plan"],
        provenance=meta["provenance"],
        complete=meta["complete"],
        reached=meta["reached"],
        price=meta["price"],
        leaf_keys=None if leaf_keys is None else tuple(leaf_keys),
        several_leaves=meta["several_leaves"],
    )


def _endpoints(arrays: Arrays, n_leaves: int) -> Endpoints:
    x, baselines = (tuple(arrays[f"{end}.{i}"] for i in range(n_leaves)) for end in ("x", "baselines"))
    return Endpoints(x, baselines, arrays["baseline_weights"])


def _ledger(arrays: Arrays, meta: Meta) -> Ledger | FoldedLedger:
    if "folded_kernels" not in meta:
        return Ledger(**{f.name: arrays[f"ledger.{f.name}"] for f in fields(Ledger)})
    kernels = [_kernel(known, f"folded.kernel.{i}", arrays) for i, known in enumerate(meta["folded_kernels"])]
    return FoldedLedger(tuple(kernels), arrays["folded.rays"], arrays["folded.weights"], arrays["folded.blocks"])


def _describe_features(features: Features) -> Meta:
    names = features.names
    return {
        "kind": features.kind,
        "meta": features.meta,
        "shapes": features.shapes,
        "names": {"prefixes": names.prefixes} if isinstance(names, CoordinateNames) else list(names),
    }


def _features(known: Meta, arrays: Arrays) -> Features:
    shapes = tuple(tuple(shape) for shape in known["shapes"])
    labels = tuple(arrays[f"labels.{i}"].reshape(shape) for i, shape in enumerate(shapes))
    names = known["names"]
    if isinstance(names, dict):
        names = CoordinateNames(tuple(names["prefixes"]), shapes)
    return Features(labels, names, known["kind"], known["meta"])


def _describe_kernel(kernel: Kernel, n_features: int, name: str, arrays: Arrays) -> Meta:
    """The kernel in plain values; a table of weights goes to `arrays` under this name."""
    if type(kernel) is Uniform:  # not isinstance: a user's subclass may weigh differently
        return {"type": "uniform"}
    if type(kernel) is Gaussian:
        return {"type": "gaussian", "sigma": kernel.sigma, "distance": kernel.distance}
    if type(kernel) is SizeKernel:
        fn = kernel.fn
        weights = fn.weights if isinstance(fn, TableOfSizes) else [float(fn(size)) for size in range(n_features)]
        arrays[name] = np.array(weights)
        return {"type": "sizes"}
    if isinstance(kernel, Forgotten):
        return {"type": "forgotten", "name": kernel.name}
    code = kernel.fn if isinstance(kernel, MaskKernel) else kernel
    return {"type": "forgotten", "name": getattr(code, "__qualname__", repr(code))}


def _kernel(known: Meta, name: str, arrays: Arrays) -> Kernel:
    match known["type"]:
        case "uniform":
            return Uniform()
        case "gaussian":
            return Gaussian(known["sigma"], known["distance"])
        case "sizes":
            return SizeKernel(TableOfSizes(tuple(arrays[name].tolist())))
        case "forgotten":
            return Forgotten(known["name"])
        case other:
            raise ValueError(f"a kernel of type {other!r}")


def plain(value: Any) -> Any:
    """The value as JSON can hold it: NumPy numbers and arrays made plain, anything unknown by its repr."""
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        return float(value)
    return value if value is None or isinstance(value, str) else repr(value)


def strict(value: Any) -> Any:
    """`plain`, with null for what is not a finite number: JSON has none."""
    if isinstance(value, float | np.floating):
        return float(value) if np.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): strict(each) for key, each in value.items()}
    if isinstance(value, np.ndarray):
        return strict(value.tolist())
    return [strict(each) for each in value] if isinstance(value, list | tuple) else plain(value)
