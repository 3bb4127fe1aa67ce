"""Everything the report says, as plain values: `content(explanation)` is what the page embeds (docs/report-schema.md).

What an explanation cannot give is there as {"missing": one sentence}.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from gralis.arrays import Array, describe
from gralis.errors import GralisError, bad
from gralis.estimators import removal
from gralis.explainers import Attribution
from gralis.files.archive import strict
from gralis.kernels import Gaussian, Uniform
from gralis.ledger import FoldedLedger
from gralis.report import words
from gralis.report.picture import baseline_picture, owners, picture, places
from gralis.report.rows import rows
from gralis.results.explanation import Explanation
from gralis.storage.embedded import pack
from gralis.views.table import tolerance_line

SCHEMA = "gralis.report/1"
LEVEL = 0.95
_MOST_LISTED = 400  # features
_MOST_PAIRED = 120  # features for which pairs are computed
_N_PAIRS, _N_PARTNERS = 8, 3
_NOUNS = {"columns": "column", "tokens": "token", "windows": "window", "channels": "channel", "groups": "group"}


def content(
    e: Explanation,
    *,
    title: str | None = None,
    image: object = None,
    label: str | None = None,
    beside: Sequence[Explanation] = (),
) -> dict[str, Any]:
    """The report of an explanation in plain values, ready for JSON."""
    _check(e, title, label, beside)
    listed = np.sort(np.argsort(-np.abs(np.nan_to_num(e.values)), kind="stable")[:_MOST_LISTED])
    owned = owners(e)
    seen = _picture(e, image, owned)
    found: dict[str, Any] = {
        "schema": SCHEMA,
        "title": title or (f"Why {label}?" if label else "Why this output?"),
        "prediction": _prediction(e, label),
        "features": _features(e, listed, owned),
        "picture": seen,
        "methods": [_gralis(e, listed), *_others(e, listed)],
        "kernel": _kernel(e),
        "rows": _or_missing(lambda: _rows(e)),
        "residual": _residual(e),
        "certificate": _or_missing(lambda: _certificate(e)),
        "interactions": _or_missing(lambda: _interactions(e)),
        "removal": _or_missing(lambda: _removal(e, listed)),
        "beside": [_beside(other, listed, owned) for other in beside],
        "cost": asdict(e.cost),
        "plan": dict(e.plan),
        "provenance": dict(e.provenance),
        "remarks": _remarks(e),
    }
    found = strict(found)
    found["summary"] = words.summary(found)
    found["archive"] = pack(e)
    return found


def _or_missing(make: Callable[[], Any]) -> Any:
    try:
        return make()
    except GralisError as error:
        return {"missing": str(error)}


def _prediction(e: Explanation, label: str | None) -> dict[str, Any]:
    return {
        "label": label,
        "target": e.provenance.get("target"),
        "f_x": e.f_x,
        "f_baseline": e.f_baseline,
        "delta": e.delta,
        "baseline": _baseline(e),
        "level": LEVEL,
    }


def _baseline(e: Explanation) -> str:
    name, count = str(e.provenance.get("baseline")), len(e.baseline_weights)
    return name if count == 1 else f"{name}, averaged over {count} of them"


def _features(e: Explanation, listed: Any, owned: Any) -> dict[str, Any]:
    names = [e.names[int(i)] for i in listed]
    noun = _NOUNS.get(e.features.kind, "feature")
    found = {"n": e.n_features, "index": listed, "names": names, "kind": e.features.kind}
    if owned is not None and noun != "channel" and e.n_features <= _MOST_LISTED:
        at = places(owned, e.n_features)
        where = [f"{words.where(place)}, {words.area(place['area'])}" for place in at]
        return {**found, "noun": "region", "where": where, "place": [words.where(p) for p in at], "area": at}
    return {**found, "noun": noun, "where": _settings(e, listed), "place": None, "area": None}


def _settings(e: Explanation, listed: Any) -> list[str]:
    """For features of one coordinate each: its value, and that of its baseline."""
    if e.features.kind == "tokens":
        return [f"token {i + 1} of {e.n_features}" for i in listed]
    single = e.features.sizes[listed] == 1
    x = e.features.collect([leaf.astype(np.float64) for leaf in e.endpoints.x])[listed]
    mean = [np.tensordot(e.baseline_weights, leaf.astype(np.float64), 1) for leaf in e.endpoints.baselines]
    base = e.features.collect(mean)[listed]
    return [
        f"{words.number(a)}, baseline {words.number(b)}" if alone else f"{size} coordinates"
        for a, b, alone, size in zip(x, base, single, e.features.sizes[listed], strict=True)
    ]


def _check(e: Explanation, title: object, label: object, beside: Sequence[object]) -> None:
    for name, value in (("title", title), ("label", label)):
        if value is not None and not isinstance(value, str):
            raise bad(name, "report", "a text or None", repr(value))
    for other in beside:
        if not isinstance(other, Explanation):
            raise bad("beside", "report", "explanations of the same features", type(other).__name__)
        if other.features.shapes != e.features.shapes or tuple(other.names) != tuple(e.names):
            raise bad("beside", "report", "explanations of the same features", f"one with {other.features}")


def _picture(e: Explanation, image: object, owned: Any) -> dict[str, Any]:
    if owned is not None:
        return picture(e, image, owned)
    if image is not None:
        raise bad("image", "report", f"None, as x of shape {e.features.shapes[0]} is no picture", describe(image))
    return {"missing": "This input is not a picture, so its values are shown as bars."}


def _gralis(e: Explanation, listed: Any) -> dict[str, Any]:
    half = (np.diff(e.interval(LEVEL), axis=1)[:, 0] / 2)[listed]
    rays = "Shapley values" if e.plan["estimator"] == "shapley" else "GRALIS"
    about = {
        "GRALIS": "Gradients along rays from the baseline to coalitions of features, near coalitions first.",
        "Shapley values": "What a feature adds to the output, averaged over all orders in which features may join.",
    }[rays]
    return {
        "id": "gralis",
        "name": rays,
        "about": about,
        "values": e.values[listed],
        "stderr": e.stderr[listed],
        "half_width": half,
        "sum": e.values.sum(),
        "exact": e.estimate.exact,
        "method": e.method,
        "note": "",
    }


def _others(e: Explanation, listed: Any) -> list[dict[str, Any]]:
    """The same rows read by other methods; one that the ledger cannot give says why."""
    known: list[tuple[str, str, str, Callable[[], Attribution]]] = [
        ("ig", "Integrated Gradients", "Gradients along the one straight line from the baseline to the input.",
         e.integrated_gradients),
        ("shapley", "Shapley values", "What a feature adds to the output, averaged over all orders of joining.",
         e.shapley),
        ("lime", "LIME", "The slopes of a linear model fitted to the outputs of coalitions, near ones first.", e.lime),
    ]  # fmt: skip
    found = []
    for key, name, about, method in known:
        if key == "shapley" and e.plan["estimator"] == "shapley":
            continue
        told = {"id": key, "name": name, "about": about}
        found.append({**told, **_or_missing(lambda method=method: _attribution(e, method, listed))})  # type: ignore[misc]
    return found


def _attribution(e: Explanation, method: Callable[[], Attribution], listed: Any) -> dict[str, Any]:
    if e.n_features > _MOST_LISTED:
        raise GralisError(f"With more than {_MOST_LISTED} features only the explanation's own values are shown.")
    a = method()
    return {
        "values": a.values[listed],
        "stderr": a.stderr[listed],
        "half_width": (np.diff(a.interval(LEVEL), axis=1)[:, 0] / 2)[listed],
        "sum": a.values.sum(),
        "exact": a.exact,
        "method": a.method,
        "note": a.note,
    }


def _kernel(e: Explanation) -> dict[str, Any]:
    if isinstance(e.kernel, Gaussian):
        return {"type": "gaussian", "sigma": e.kernel.sigma, "distance": e.kernel.distance, "text": repr(e.kernel)}
    return {"type": "uniform" if e.kernel == Uniform() else "other", "text": repr(e.kernel)}


def _rows(e: Explanation) -> dict[str, Any]:
    if e.n_features > _MOST_LISTED:
        raise GralisError(f"With more than {_MOST_LISTED} features a page would be too slow to recompute them.")
    return rows(e)


def _residual(e: Explanation) -> dict[str, Any]:
    total = float(e.values.sum())
    found: dict[str, Any] = {"sum": total, "observed": {"value": e.delta - total, "half_width": None}}
    try:
        r = e.residual
    except GralisError as error:
        return {**found, "missing": str(error)}
    return {**found, **{name: asdict(getattr(r, name)) for name in ("observed", "path", "numerical", "kernel")}}


def _certificate(e: Explanation) -> dict[str, Any]:
    c = e.certificate(1 - LEVEL)
    widest = float(np.nanmax(c.half_widths, initial=0.0))
    return {
        "method": c.method,
        "kind": c.kind,
        "ground": c.ground,
        "widest": widest if np.isfinite(c.half_widths).all() else None,
        "aggregate": c.aggregate,
        "share": widest / abs(e.delta) if e.delta else None,
        "vacuous": c.vacuous,
        "exact": e.estimate.exact,
        "quadrature": float(np.nanmax(c.quadrature, initial=0.0)),
        "quadrature_known": bool(np.isfinite(c.quadrature).all()),
        "checksum": None if c.checksum is None else asdict(c.checksum),
        "text": repr(c),
    }


def _interactions(e: Explanation) -> dict[str, Any]:
    if not 2 <= e.n_features <= _MOST_PAIRED:
        raise GralisError(f"Pairs are shown for 2 to {_MOST_PAIRED} features; here there are {e.n_features}.")
    found = e.interactions(order=2)
    pairs = np.array([row for row, members in enumerate(found.coalitions) if len(members) == 2])
    estimate = found.estimate.combined(np.eye(len(found.coalitions))[pairs])
    half = (np.diff(found.interval(LEVEL), axis=1)[:, 0] / 2)[pairs]
    value, error = estimate.values, estimate.stderr
    evidence = np.abs(value) / np.maximum(error, 1e-12 * (np.abs(value).max() or 1.0))
    order = np.argsort(-(np.abs(value) if found.exact else np.nan_to_num(evidence)), kind="stable")
    kept, count = [], np.zeros(e.n_features, dtype=int)
    for rank, row in enumerate(order):
        i, j = found.coalitions[int(pairs[row])]
        if rank < _N_PAIRS or min(count[i], count[j]) < _N_PARTNERS:
            kept.append({"pair": [i, j], "value": value[row], "stderr": error[row], "half_width": half[row]})
        count[[i, j]] += 1
    return {"index": found.index, "exact": found.exact, "note": found.note, "pairs": kept, "first": _N_PAIRS}


def _removal(e: Explanation, listed: Any) -> dict[str, Any]:
    """What the output would be without a feature, and with it alone."""
    if isinstance(e.ledger, FoldedLedger) or e.n_features > _MOST_LISTED:
        raise GralisError("This ledger keeps no values of coalitions, so what happens without a feature is not known.")
    full = e.f_x - e.f_baselines
    drop = removal.measured(e.ledger, e.baseline_weights, full)
    known, half = np.isfinite(drop), np.zeros(e.n_features)
    half[~known] = np.nan
    how = [] if known.all() else _or_missing(lambda: _estimated_removal(e, full))
    if isinstance(how, tuple):
        drop, half = np.where(known, drop, how[0]), np.where(known, 0.0, how[1])
    alone: Array | None = None
    single = _or_missing(lambda: e.singles().values)
    if not isinstance(single, dict):
        alone = np.asarray(single)[listed]
    if alone is None and not np.isfinite(drop).any():
        raise GralisError("No coalition of this ledger says what happens without a feature, or with one alone.")
    return {"drop": drop[listed], "measured": known[listed], "half_width": half[listed], "alone": alone}


def _estimated_removal(e: Explanation, full: Array) -> tuple[Array, Array]:
    from gralis.certificates.simultaneous import half_widths

    assert not isinstance(e.ledger, FoldedLedger)
    found = removal.estimated(e.ledger, e.squared_distance, e.baseline_weights, full)
    return found.values, half_widths(found, LEVEL)


def _beside(other: Explanation, listed: Any, owned: Any) -> dict[str, Any]:
    """Another explanation of the same features: its numbers, and its baseline where that is a picture."""
    seen = None if owned is None else _or_missing(lambda: baseline_picture(other, owned.shape[1:]))
    shown = {"baseline": seen} if isinstance(seen, str) else {}
    numbers = _gralis(other, listed)
    return {"prediction": _prediction(other, None), "kernel": _kernel(other), **numbers, **shown}


def _remarks(e: Explanation) -> list[str]:
    """What a reader must know before trusting the numbers."""
    found = []
    if not e.complete:
        found.append("The run stopped before its plan was done; the numbers stand for what was evaluated until then.")
    if e.reached is False:
        line = tolerance_line(e)
        found.append(f"The {line}.")
    return found
