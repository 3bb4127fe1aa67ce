"""The numbers of every section of the page. A section that an explanation cannot provide raises the reason."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gralis.arrays import Array, describe
from gralis.certificates import simultaneous
from gralis.errors import GralisError, bad
from gralis.estimators import removal as removal_estimators
from gralis.features.labels import Labels
from gralis.kernels import Gaussian, Uniform
from gralis.report import words
from gralis.report.baseline_words import baseline_words, target_words
from gralis.report.picture import baseline_picture, picture, places
from gralis.report.slider_rows import slider_rows
from gralis.results.attribution import Attribution
from gralis.results.explanation import Explanation
from gralis.views.colours import AGAINST, FOR
from gralis.views.feature_tags import tag

__all__ = [
    "LEVEL",
    "MOST_LISTED",
    "certificate",
    "features",
    "interactions",
    "kernel",
    "or_missing",
    "other_explanation",
    "other_methods",
    "picture_or_reason",
    "prediction",
    "remarks",
    "removal",
    "residual",
    "rows",
    "values",
]

LEVEL = 0.95
MOST_LISTED = 400  # features
_MOST_PAIRED = 120  # features for which pairs are computed
_N_PAIRS, _N_PARTNERS = 8, 3
_NOUNS = {"columns": "column", "tokens": "token", "windows": "window", "channels": "channel", "groups": "group"}

#: The features that the page lists.
Listed = NDArray[np.int64]


def or_missing(make: Callable[[], Any]) -> Any:
    """The result, or {"missing": the sentence} if it raises a GralisError."""
    try:
        return make()
    except GralisError as error:
        return {"missing": str(error)}


def prediction(e: Explanation, label: str | None) -> dict[str, Any]:
    """The outputs that are compared, and what they are called."""
    name, count = str(e.provenance.get("baseline")), len(e.baseline_weights)
    return {
        "label": label,
        "target": e.provenance.get("target"),
        "target_words": target_words(e.provenance.get("target")),
        "f_x": e.f_x,
        "f_baseline": e.f_baseline,
        "delta": e.delta,
        "baseline": name if count == 1 or e.table is not None else f"{name}, averaged over {count} of them",
        "compared_with": _absent_words(e) or baseline_words(name, count),
        "level": LEVEL,
    }


def _absent_words(e: Explanation) -> str | None:
    """The baseline of a text whose features are present or absent, in words; None for other inputs."""
    if e.features.kind != "tokens" or not isinstance(e.features.meta.get("text"), str):
        return None
    described = str(e.provenance["baseline"])
    if described.startswith("a text "):
        return f"the same {described.removeprefix('a ')}"
    return f"the same text in which all {e.features.meta.get('grain', 'parts')} are absent"


def features(
    e: Explanation, listed: Listed, owned: Labels | None, view: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The names of the features, and where they are or which value they have."""
    names = [e.names[int(i)] for i in listed]
    noun = _NOUNS.get(e.features.kind, "feature")
    tags = [tag(name) for name in names]
    named = {"n": e.n_features, "index": listed, "names": names, "tags": tags, "kind": e.features.kind}
    if owned is not None and noun != "channel" and e.n_features <= MOST_LISTED:
        at = places(owned, e.n_features)
        where = [f"{words.where(place)}, {words.area(place['area'])}" for place in at]
        return {**named, "noun": "region", "where": where, "place": [words.where(p) for p in at], "area": at}
    where = _settings(e, listed)
    if view is not None and view["type"] == "series":
        where = [f"steps {start + 1} to {stop}" for start, stop in view["windows"]]
    if view is not None and view["type"] == "volume":
        noun, where = "region", [f"{size} voxels" for size in e.features.sizes[listed]]
    return {**named, "noun": noun, "where": where, "place": None, "area": None, **_columns(e, listed)}


def _settings(e: Explanation, listed: Listed) -> list[str]:
    """For every feature with one coordinate: its value, and the value of its baseline."""
    if e.features.kind == "tokens":
        return [f"token {i + 1} of {e.n_features}" for i in listed]
    if e.table is not None:
        return [_against_background(e, int(i)) for i in listed]
    sizes = e.features.sizes[listed]
    x = e.features.collect([leaf.astype(np.float64) for leaf in e.endpoints.x])[listed]
    mean = [np.tensordot(e.baseline_weights, leaf.astype(np.float64), 1) for leaf in e.endpoints.baselines]
    base = e.features.collect(mean)[listed]
    return [
        f"{words.number(a)}, baseline {words.number(b)}" if size == 1 else f"{size} coordinates"
        for a, b, size in zip(x, base, sizes, strict=True)
    ]


def _columns(e: Explanation, listed: Listed) -> dict[str, Any]:
    """For a row of a table: the value, the baseline and the range of the data of each column, in words."""
    if (
        e.features.kind not in ("columns", "coordinates")
        or len(e.features.shapes) != 1
        or len(e.features.shapes[0]) != 1
    ):
        return {}
    cells = [_cells(e, np.flatnonzero(e.features.labels[0] == i)) for i in listed]
    return {"columns": {key: [cell[key] for cell in cells] for key in ("value", "baseline", "range")}}


def _cells(e: Explanation, places: NDArray[np.int64]) -> dict[str, str | None]:
    if len(places) != 1:
        return {"value": f"{len(places)} columns", "baseline": None, "range": None}
    place = int(places[0])
    number, rows = float(e.endpoints.x[0][place]), e.endpoints.baselines[0][:, place].astype(np.float64)
    column = None if e.table is None else e.table.columns[place]
    text = words.number if column is None else column.text
    if len(rows) == 1:
        return {"value": text(number), "baseline": text(float(rows[0])), "range": None}
    known = rows if column is None or column.missing is None else rows[rows != column.missing]
    if column is not None and (column.coded or not len(known)):
        share = words.percent(float(e.baseline_weights @ (rows == number)))
        return {"value": text(number), "baseline": f"{share} have it", "range": f"{len(np.unique(known))} kinds"}
    ends = f"{text(float(known.min()))} to {text(float(known.max()))}"
    return {"value": text(number), "baseline": f"mean {words.number(float(known.mean()))}", "range": ends}


def _against_background(e: Explanation, feature: int) -> str:
    """The entry of a column, and what the background has there: its mean, or how often it has the same entry."""
    assert e.table is not None
    places = np.flatnonzero(e.features.labels[0] == feature)
    if len(places) > 1:
        return f"{len(places)} columns"
    place = int(places[0])
    column, number, rows = e.table.columns[place], float(e.endpoints.x[0][place]), e.endpoints.baselines[0][:, place]
    if len(rows) == 1:
        return f"{column.text(number)}, baseline {column.text(float(rows[0]))}"
    known = rows != column.missing if column.missing is not None else np.ones(len(rows), dtype=bool)
    if column.coded or number == column.missing or not known.any():
        share = float(e.baseline_weights @ (rows == number))
        return f"{column.text(number)}, as in {words.percent(share)} of the background"
    mean = float(e.baseline_weights[known] @ rows[known] / e.baseline_weights[known].sum())
    return f"{column.text(number)}, mean of the background {words.number(mean)}"


def picture_or_reason(e: Explanation, image: object, owned: Labels | None) -> dict[str, Any]:
    """The picture with its regions and colours, or why there is none."""
    if owned is not None:
        return {**picture(e, image, owned), "colours": {"for": FOR, "against": AGAINST}}
    if image is not None:
        raise bad("image", "report", f"None, as x of shape {e.features.shapes[0]} is no picture", describe(image))
    return {"missing": "This input is not a picture, so its values are shown as bars."}


def values(e: Explanation, listed: Listed) -> dict[str, Any]:
    """The values of the explanation itself."""
    estimator = e.design.estimator
    about = {"id": "gralis", "name": estimator.title, "about": estimator.summary}
    return {**about, **_numbers(e, listed), "note": ""}


def other_methods(e: Explanation, listed: Listed) -> list[dict[str, Any]]:
    """The values that other methods read from the same rows, or why the ledger cannot provide them."""
    known: list[tuple[str, str, str, Callable[[], Attribution]]] = [
        ("ig", "Integrated Gradients", "Gradients along the one straight line from the baseline to the input.",
         e.integrated_gradients),
        ("shapley", "Shapley values", "What a feature adds to the output, averaged over all orders of joining.",
         e.shapley),
        ("lime", "LIME", "The slopes of a linear model fitted to the outputs of coalitions, near ones first.", e.lime),
    ]  # fmt: skip
    return [
        {"id": key, "name": name, "about": about, **or_missing(lambda method=method: _other(e, method, listed))}  # type: ignore[misc]
        for key, name, about, method in known
        if name != e.design.estimator.title
    ]


def _other(e: Explanation, method: Callable[[], Attribution], listed: Listed) -> dict[str, Any]:
    if e.n_features > MOST_LISTED:
        raise GralisError(f"With more than {MOST_LISTED} features only the values of the explanation itself are shown.")
    attribution = method()
    return {**_numbers(attribution, listed), "note": attribution.note}


def _numbers(result: Explanation | Attribution, listed: Listed) -> dict[str, Any]:
    half = result.half_widths(LEVEL)
    return {
        "values": result.values[listed],
        "stderr": result.stderr[listed],
        "half_width": np.where(result.stderr == 0, 0.0, half)[listed],
        "sign": np.where(np.abs(result.values) > half, np.sign(result.values), 0).astype(int)[listed],
        "sum": result.values.sum(),
        "exact": result.exact,
        "method": result.method,
    }


def kernel(e: Explanation) -> dict[str, Any]:
    """The kernel, with its sigma if it is Gaussian; Shapley values have none."""
    if not e.design.estimator.has_kernel:
        return {"type": "other", "text": "none, as Shapley values have no kernel"}
    if isinstance(e.kernel, Gaussian):
        return {"type": "gaussian", "sigma": e.kernel.sigma, "distance": e.kernel.distance, "text": repr(e.kernel)}
    return {"type": "uniform" if e.kernel == Uniform() else "other", "text": repr(e.kernel)}


def rows(e: Explanation) -> dict[str, Any]:
    """What the slider computes from."""
    if e.n_features > MOST_LISTED:
        raise GralisError(f"With more than {MOST_LISTED} features a page would be too slow to recompute them.")
    return slider_rows(e)


def residual(e: Explanation) -> dict[str, Any]:
    """What the values do not sum to, split where possible."""
    total = float(e.values.sum())
    whole: dict[str, Any] = {"sum": total, "observed": {"value": e.delta - total, "half_width": None}}
    names = ("observed", "path", "numerical", "kernel")
    return {**whole, **or_missing(lambda: {name: asdict(getattr(e.residual, name)) for name in names})}


def certificate(e: Explanation) -> dict[str, Any]:
    """How far off all values together may be."""
    c = e.certificate(1 - LEVEL)
    half = e.half_widths(LEVEL)  # NaN where the certificate leaves out an error that is unknown
    widest = float(np.nanmax(half, initial=0.0))
    return {
        "method": c.method,
        "kind": c.kind,
        "ground": c.ground,
        "widest": widest if np.isfinite(half).all() else None,
        "aggregate": c.aggregate,
        "share": widest / abs(e.delta) if e.delta else None,
        "vacuous": c.vacuous,
        "exact": e.exact,
        "sampled": bool(np.nan_to_num(e.estimate.sampling_error, nan=1.0).any()),
        "quadrature": float(np.nanmax(c.quadrature, initial=0.0)),
        "quadrature_known": bool(np.isfinite(c.quadrature).all()),
        "checksum": None if c.checksum is None else asdict(c.checksum),
        "text": repr(c),
    }


def interactions(e: Explanation) -> dict[str, Any]:
    """The pairs with the strongest evidence, and enough of them for every feature."""
    if not 2 <= e.n_features <= _MOST_PAIRED:
        raise GralisError(f"Pairs are shown for 2 to {_MOST_PAIRED} features; here there are {e.n_features}.")
    result = e.interactions(order=2)
    pairs = np.array([row for row, members in enumerate(result.coalitions) if len(members) == 2])
    estimate = result.estimate.combined(np.eye(len(result.coalitions))[pairs])
    half = result.half_widths(LEVEL)[pairs]
    value, error = estimate.values, estimate.stderr
    evidence = np.abs(value) / np.maximum(error, 1e-12 * (np.abs(value).max() or 1.0))
    order = np.argsort(-(np.abs(value) if result.exact else np.nan_to_num(evidence)), kind="stable")
    kept, count = [], np.zeros(e.n_features, dtype=int)
    for rank, row in enumerate(order):
        i, j = result.coalitions[int(pairs[row])]
        if rank < _N_PAIRS or min(count[i], count[j]) < _N_PARTNERS:
            kept.append({"pair": [i, j], "value": value[row], "stderr": error[row], "half_width": half[row]})
        count[[i, j]] += 1
    return {"index": result.index, "exact": result.exact, "note": result.note, "pairs": kept, "first": _N_PAIRS}


def removal(e: Explanation, listed: Listed) -> dict[str, Any]:
    """What the output would be without a feature, and with this feature alone."""
    ledger = e.ledger.kept_rows
    if ledger is None or e.n_features > MOST_LISTED:
        raise GralisError("This ledger keeps no values of coalitions, so the output without a feature is not known.")
    full = e.f_x - e.f_baselines
    drop = removal_estimators.measured(ledger, e.baseline_weights, full)
    measured, half = np.isfinite(drop), np.zeros(e.n_features)
    half[~measured] = np.nan
    if not measured.all():
        try:
            estimate = removal_estimators.estimated(ledger, e.squared_distance, e.baseline_weights, full)
        except GralisError:
            pass  # the drops that were not measured stay unknown
        else:
            drop = np.where(measured, drop, estimate.values)
            level = 1 - (1 - LEVEL) / e.price
            half = np.where(measured, 0.0, simultaneous.half_widths(estimate, level))
    try:
        alone: Array | None = e.singles().values[listed]
    except GralisError:
        alone = None
    if alone is None and not np.isfinite(drop).any():
        raise GralisError("No coalition of this ledger says what happens without a feature, or with one alone.")
    return {"drop": drop[listed], "measured": measured[listed], "half_width": half[listed], "alone": alone}


def other_explanation(other: Explanation, listed: Listed, owned: Labels | None) -> dict[str, Any]:
    """Another explanation of the same features: its numbers, and its baseline if that is a picture."""
    shown = None if owned is None else or_missing(lambda: baseline_picture(other, owned.shape[1:]))
    baseline = {"baseline": shown} if isinstance(shown, str) else {}
    about = {"prediction": prediction(other, None), "kernel": kernel(other), "doubts": list(other.doubts)}
    return {**about, **values(other, listed), **baseline}


def remarks(e: Explanation) -> list[str]:
    """What a reader must know before trusting the numbers."""
    sentences = []
    if not e.complete:
        sentences.append("The run stopped before its plan was done; the numbers rest on what was evaluated until then.")
    if e.reached is False:
        sentences.append(f"The {e.tolerance_sentence}.")
    return sentences
