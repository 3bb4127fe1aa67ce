"""The rows of the ledger from which the page recomputes phi under another sigma, without the model."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gralis.errors import GralisError
from gralis.estimators.witnesses import alone_gap, full_gap
from gralis.kernels import Gaussian
from gralis.results.explanation import Explanation

__all__ = ["packed", "slider_rows"]

_MOST_BYTES = 6 * 2**20  # of rows inside a page
_KINDS = {"f": "<f8", "i": "<i4", "b": "|u1", "u": "|u1"}
_SMALLEST, _LARGEST = 0.15, 5.0  # sigma at the ends of the slider, relative to the distance between x and x'


def slider_rows(e: Explanation) -> dict[str, Any]:
    """The packed ledger, or a GralisError with the reason why a page cannot recompute phi."""
    estimator = e.design.estimator
    if not estimator.has_kernel:
        raise GralisError(f"No kernel enters these values ({estimator.title}), so they have no locality.")
    ledger = e.ledger.require_rows("Recomputing the values under another kernel")
    if estimator.page_formula is None:
        raise GralisError(
            f"The page cannot recompute the values of the estimator {estimator.name!r}; explanation.with_kernel does "
            f"it in Python."
        )
    columns = estimator.report_columns(ledger, e.design)
    size = sum(column.nbytes for column in columns.values())
    if size > _MOST_BYTES:
        raise GralisError(
            f"The ledger has {size / 2**20:.0f} MiB of rows, too many for a page; "
            f"explanation.with_kernel recomputes in Python."
        )
    return {
        "estimator": estimator.name,
        "formula": estimator.page_formula,
        "method": e.method,
        "enumerated": estimator.enumerates(ledger),
        "price": e.price,
        "rounding": e.design.rounding,
        "noise": e.design.noise,
        "full_gap": full_gap(ledger, e.design.n_baselines) if estimator.draws_rays else None,
        "alone_gap": alone_gap(ledger) if estimator.draws_rays else None,
        "n_features": e.n_features,
        "n_rays": ledger.n_rays,
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


def _scale(e: Explanation) -> dict[str, Any]:
    """How sigma is measured and how far the slider goes: as for the explained kernel if it is Gaussian."""
    euclidean = type(e.kernel) is Gaussian and e.kernel.distance == "euclidean"
    whole = float(np.sqrt(e.squared_distance.sum(1).mean())) if euclidean else 1.0
    distance = "euclidean" if euclidean else "relative"
    return {"distance": distance, "smallest": _SMALLEST * whole, "largest": _LARGEST * whole}
