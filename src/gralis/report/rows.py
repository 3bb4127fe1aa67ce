"""The ledger's rows as the page needs them: what phi under another sigma is computed from, without a model."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gralis.errors import GralisError
from gralis.estimators.endpoint import differences
from gralis.kernels import Gaussian
from gralis.ledger import FoldedLedger, Ledger

if TYPE_CHECKING:
    from gralis.results.explanation import Explanation

_MOST_BYTES = 6 * 2**20  # of rows inside a page
_KINDS = {"f": "<f8", "i": "<i4", "b": "|u1"}
_SMALLEST, _LARGEST = 0.15, 5.0  # sigma at the ends of the slider, relative to the distance between x and x'


def rows(e: Explanation) -> dict[str, Any]:
    """The packed ledger, or the sentence (GralisError) that says why phi cannot be recomputed in a page."""
    estimator = e.plan["estimator"]
    if isinstance(e.ledger, FoldedLedger):
        raise GralisError("The rows of this ledger were added up as they came, so other kernels cannot be read off.")
    if estimator == "shapley":
        raise GralisError("These are Shapley values from coalition values alone; no kernel enters them.")
    columns = _columns(e, e.ledger, estimator)
    size = sum(column.nbytes for column in columns.values())
    if size > _MOST_BYTES:
        raise GralisError(
            f"The ledger has {size / 2**20:.0f} MiB of rows, too many for a page; "
            f"explanation.with_kernel recomputes in Python."
        )
    return {
        "estimator": estimator,
        "method": e.method,
        "exact": e.estimate.exact,
        "n_features": e.n_features,
        "n_rays": e.ledger.n_rays,
        "squared_distance": e.squared_distance,
        "baseline_weights": e.baseline_weights,
        **_scale(e),
        "columns": {name: packed(column) for name, column in columns.items()},
    }


def packed(array: NDArray[Any]) -> dict[str, Any]:
    """An array as JSON can hold it: little-endian, base64.

    >>> packed(np.array([1, 2]))
    {'dtype': '<i4', 'shape': [2], 'base64': 'AQAAAAIAAAA='}
    """
    kind = _KINDS[array.dtype.kind]
    data = np.ascontiguousarray(array, dtype=kind)
    return {"dtype": kind, "shape": list(array.shape), "base64": base64.b64encode(data.tobytes()).decode()}


def _columns(e: Explanation, ledger: Ledger, estimator: str) -> dict[str, NDArray[Any]]:
    """Only what this estimator reads: the points for a surrogate, else the rays summed up."""
    found: dict[str, NDArray[Any]] = {
        "masks": ledger.masks,
        "log_rate": ledger.log_rate,
        "replicate": ledger.replicate,
        "baseline": ledger.baseline,
        "owner": ledger.owner,
    }
    if estimator == "adjusted":
        points = ("value", "ray", "place", "stretch", "weight", "gradient")
        return {**found, **{name: getattr(ledger, name) for name in points}}
    if estimator == "endpoint":  # weighted differences instead of weighted rays: the same sum
        rays, log_rate = differences(ledger, len(e.baseline_weights))
        return {**found, "log_rate": log_rate, "rays": rays}
    return {**found, "rays": ledger.rays}


def _scale(e: Explanation) -> dict[str, Any]:
    """How sigma is measured, and how far the slider goes: like the kernel that was explained, else relative."""
    euclidean = type(e.kernel) is Gaussian and e.kernel.distance == "euclidean"
    whole = float(np.sqrt(e.squared_distance.sum(1).mean())) if euclidean else 1.0
    distance = "euclidean" if euclidean else "relative"
    return {"distance": distance, "smallest": _SMALLEST * whole, "largest": _LARGEST * whole}
