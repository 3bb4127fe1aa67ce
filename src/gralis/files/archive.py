"""An explanation in one `.gralis` file of arrays and JSON. It is read back bit for bit, without the model."""

from __future__ import annotations

import io
import json
import re
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from gralis.baselines.endpoints import Endpoints
from gralis.checks import as_path, printable
from gralis.errors import GralisError
from gralis.estimators import FOLDED, Design, Estimate, by_name
from gralis.evaluation.cost import Cost
from gralis.features import Features
from gralis.features.coordinate_names import CoordinateNames
from gralis.files.archive_checks import require_whole
from gralis.kernels import Kernel, from_dict, to_dict
from gralis.ledger import AnyLedger, FoldedLedger, Ledger, TreeLedger
from gralis.results.explanation import Explanation
from gralis.results.result import InputForm
from gralis.storage.container import put_arrays, read_arrays, write_arrays
from gralis.storage.embedded import archive_of
from gralis.storage.json_values import plain
from gralis.tables import TableCoding

__all__ = ["checked", "contents", "from_bytes", "load", "save", "to_bytes"]

KIND = "explanation"
_KNOWN = re.compile(
    r"values|departures|carriers|margin|rounding|f_baselines|baseline_weights|squared_distance|kernel"
    r"|(x|baselines|labels)\.\d{1,4}|ledger\.[a-z_]+|folded\.(rays|weights|blocks|kernel\.\d{1,4})"
    r"|trees\.(of_rays\.)?[a-z_]+"
)
_ALLOWANCES = ("margin", "rounding")  # of an estimate; files of version 0.1 have neither

Arrays = dict[str, NDArray[Any]]
Meta = dict[str, Any]


def save(explanation: Explanation, path: str | Path) -> Path:
    """Write everything but the model to one file, which appears whole or not at all; `load` reads it back.

    Parameters
    ----------
    explanation : Explanation
        What is saved.
    path : str or Path
        The file to be written, by convention with the ending .gralis.

    Returns
    -------
    Path
        The file.
    """
    return write_arrays(path, *contents(explanation))


def to_bytes(explanation: Explanation) -> bytes:
    """The bytes that `save` writes."""
    stream = io.BytesIO()
    put_arrays(stream, *contents(explanation))
    return stream.getvalue()


def contents(e: Explanation) -> tuple[Arrays, Meta]:
    """The arrays and the plain values of an explanation, as a file holds them."""
    arrays: Arrays = {
        "values": e.values,
        "departures": e.estimate.departures,
        "carriers": np.full(e.n_features, np.inf) if e.estimate.carriers is None else e.estimate.carriers,
        "f_baselines": e.f_baselines,
        "baseline_weights": e.baseline_weights,
        "squared_distance": e.squared_distance,
    }
    arrays |= {name: part for name in _ALLOWANCES if (part := getattr(e.estimate, name)) is not None}
    smallest = np.min_scalar_type(e.n_features)  # 30 regions of 150 528 pixels: one byte each, not eight
    arrays |= {f"x.{i}": leaf for i, leaf in enumerate(e.endpoints.x)}
    arrays |= {f"baselines.{i}": leaf for i, leaf in enumerate(e.endpoints.baselines)}
    arrays |= {f"labels.{i}": leaf.astype(smallest) for i, leaf in enumerate(e.features.labels)}
    meta: Meta = {
        "kind": KIND,
        "method": e.method,
        "exact": e.estimate.exact,
        "model_rounding": e.design.rounding,
        "model_noise": e.design.noise,
        "f_x": e.f_x,
        "features": _describe_features(e.features),
        "kernel": _describe_kernel(e.kernel, e.n_features, "kernel", arrays),
        "cost": asdict(e.cost),
        "plan": e.plan,
        "provenance": e.provenance,
        "complete": e.complete,
        "reached": e.reached,
        "price": e.price,
        "model_doubts": list(e.model_doubts),
        "leaf_keys": e.form.keys,
        "several_leaves": e.form.several,
        "table": None if e.table is None else e.table.to_dict(),
    }
    rows = e.ledger.kept_rows
    if rows is not None:
        arrays |= {f"ledger.{name}": column for name, column in rows.arrays().items()}
    elif isinstance(e.ledger, TreeLedger):
        arrays |= {f"trees.{name}": array for name, array in e.ledger.arrays().items()}
        meta["trees"] = e.ledger.trees.about()
    else:
        folded = cast(FoldedLedger, e.ledger)
        arrays |= {f"folded.{name}": getattr(folded, name) for name in ("rays", "weights", "blocks")}
        meta["folded_kernels"] = [
            _describe_kernel(kernel, e.n_features, f"folded.kernel.{i}", arrays)
            for i, kernel in enumerate(folded.kernels)
        ]
    return arrays, plain(meta)


def load(path: str | Path) -> Explanation:
    """The explanation in a file, as it was saved, without the model.

    The ledger of a file of more than 64 MiB stays on disk until it is used; do not change such a file meanwhile.

    Parameters
    ----------
    path : str or Path
        A file that `Explanation.save` wrote, or a report (HTML or JSON), which holds the saved explanation.

    Returns
    -------
    Explanation
        The same numbers, bit for bit. What needs the model, such as more rays, needs `gralis.replay`.

    Raises
    ------
    GralisError
        If the file is truncated, altered, or of another kind.

    Examples
    --------
    >>> import gralis, tempfile, torch
    >>> explanation = gralis.explain(lambda z: z.prod(1), torch.ones(3))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     again = load(explanation.save(f"{folder}/why.gralis"))
    >>> repr(again) == repr(explanation), again.sweep([0.5, 1.0]).values.shape
    (True, (2, 3))
    """
    path = as_path(path, "load")
    if not path.is_file():
        raise GralisError(f"There is no file {path}.")
    return checked(*read_arrays(path, KIND, _KNOWN, archive_of(path) if _is_text(path) else None), path)


def _is_text(path: Path) -> bool:
    """Whether the file begins like HTML or JSON."""
    try:
        with path.open("rb") as stream:
            return stream.read(64).lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"<", b"{")
    except OSError:
        return False


def from_bytes(content: bytes) -> Explanation:
    """The explanation in the bytes that `to_bytes` made."""
    return checked(*read_arrays("the saved explanation", KIND, _KNOWN, content), "the saved explanation")


def _printed(value: Any) -> Any:
    """The same with every text printable: a terminal must not receive escape sequences from a file."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, dict):
        return {_printed(key): _printed(part) for key, part in value.items()}
    return [_printed(part) for part in value] if isinstance(value, list) else value


#: The features of explanations in one file, by what they are made of.
Shared = dict[tuple[object, ...], Features]


def checked(arrays: Arrays, meta: Meta, where: str | Path, shared: Shared | None = None) -> Explanation:
    """The explanation that a file holds, or an error that says what is wrong with it.

    With `shared`, the file holds several explanations: no array is copied for each, and equal features are made once.
    """
    try:
        require_whole(arrays, meta)
        return _explanation(arrays, _printed(meta), shared)
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise GralisError(f"{where} is not a whole gralis explanation ({error}); it may be altered.") from error


def _explanation(arrays: Arrays, meta: Meta, shared: Shared | None) -> Explanation:
    small = {name: array for name, array in arrays.items() if not name.startswith(("ledger.", "folded."))}
    small = small if shared is not None else {name: np.array(array) for name, array in small.items()}
    ledger = _ledger(arrays, meta)
    leaf_keys, table = meta["leaf_keys"], meta.get("table")
    design = _design(meta, small)
    rows, departures = ledger.kept_rows, len(small["departures"])
    # Values without a sampling error, but with a margin, have two departures of zero; see `Estimate.with_margin`.
    unsampled = meta["exact"] or (departures == 2 and not small["departures"].any())
    by_replicate = design.estimator.departs_by_replicate and not unsampled
    if rows is not None and by_replicate and departures != rows.n_replicates:
        raise ValueError(f"{departures} departures of {rows.n_replicates} replicates")
    return Explanation(
        estimate=_estimate(meta, small),
        design=design,
        ledger=ledger,
        features=_features(meta["features"], small, shared),
        f_x=meta["f_x"],
        f_baselines=small["f_baselines"],
        endpoints=_endpoints(small, len(meta["features"]["shapes"])),
        cost=Cost(**meta["cost"]),
        plan=meta["plan"],
        provenance=meta["provenance"],
        complete=meta["complete"],
        reached=meta["reached"],
        price=meta["price"],
        model_doubts=tuple(meta.get("model_doubts", ())),
        form=InputForm(None if leaf_keys is None else tuple(leaf_keys), meta["several_leaves"]),
        table=None if table is None else TableCoding.from_dict(table),
    )


def _estimate(meta: Meta, arrays: Arrays) -> Estimate:
    allowances = {name: arrays[name] for name in _ALLOWANCES if name in arrays}
    return Estimate(
        arrays["values"], arrays["departures"], meta["method"], meta["exact"], arrays["carriers"], **allowances
    )


def _design(meta: Meta, arrays: Arrays) -> Design:
    """How the ledger is read."""
    estimator = FOLDED if "folded_kernels" in meta else by_name(meta["plan"]["estimator"])
    kernel = _kernel(meta["kernel"], "kernel", arrays)
    rule, sizes = meta["plan"].get("quadrature"), (meta.get("model_rounding", 0.0), meta.get("model_noise", 0.0))
    return Design(kernel, arrays["squared_distance"], arrays["baseline_weights"], estimator, rule, *sizes)


def _endpoints(arrays: Arrays, n_leaves: int) -> Endpoints:
    x, baselines = (tuple(arrays[f"{end}.{i}"] for i in range(n_leaves)) for end in ("x", "baselines"))
    return Endpoints(x, baselines, arrays["baseline_weights"])


def _ledger(arrays: Arrays, meta: Meta) -> AnyLedger:
    if "trees" in meta:
        stored = {name.removeprefix("trees."): array for name, array in arrays.items() if name.startswith("trees.")}
        return TreeLedger.stored(stored, meta["trees"])
    if "folded_kernels" not in meta:
        rows = Ledger(**{f.name: arrays[f"ledger.{f.name}"] for f in fields(Ledger)})
        return rows.checked(len(arrays["baseline_weights"]))
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


def _features(known: Meta, arrays: Arrays, shared: Shared | None) -> Features:
    shapes = tuple(tuple(shape) for shape in known["shapes"])
    key = (json.dumps(known), *(id(arrays[f"labels.{i}"]) for i in range(len(shapes))))
    if shared is not None and key in shared:
        return shared[key]
    labels = tuple(arrays[f"labels.{i}"].reshape(shape) for i, shape in enumerate(shapes))
    names = known["names"]
    if isinstance(names, dict):
        names = CoordinateNames(tuple(names["prefixes"]), shapes)
    features = Features(labels, names, known["kind"], known["meta"])
    if shared is not None:
        shared[key] = features
    return features


def _describe_kernel(kernel: Kernel, n_features: int, name: str, arrays: Arrays) -> Meta:
    """The kernel in plain values; a table of weights goes to `arrays` under this name."""
    values = to_dict(kernel, n_features)
    if values["type"] == "sizes":
        arrays[name] = np.array(values.pop("weights"))
    return values


def _kernel(values: Meta, name: str, arrays: Arrays) -> Kernel:
    return from_dict({**values, "weights": arrays[name].tolist()} if values["type"] == "sizes" else values)
