"""Everything the report says, as plain values: `content(explanation)` is what the page embeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from gralis.errors import bad
from gralis.files.archive import to_bytes
from gralis.report import sections
from gralis.report.answers import answers
from gralis.report.baseline_words import class_words, target_words
from gralis.report.constants import CONSTANTS
from gralis.report.disagreements import disagreement_sentences, disagreements
from gralis.report.input_views import input_view
from gralis.report.panels import panel_contents
from gralis.report.picture import owners
from gralis.results.explanation import Explanation
from gralis.storage.embedded import pack
from gralis.storage.json_values import strict

__all__ = ["SCHEMA", "content"]

SCHEMA = "gralis.report/1"


def content(
    explanation: Explanation,
    *,
    title: str | None = None,
    image: object = None,
    label: str | None = None,
    beside: Sequence[Explanation] = (),
) -> dict[str, Any]:
    """The report of an explanation in plain values, ready for JSON.

    A part that the explanation cannot provide is {"missing": one sentence}.

    Parameters
    ----------
    explanation : Explanation
        What the report is about.
    title : str, optional
        The title of the page.
    image : array of shape (H, W), (H, W, 3) or (C, H, W), optional
        The picture to show if people cannot read x itself, for example because it is normalised.
    label : str, optional
        The target in words.
    beside : sequence of Explanation, optional
        Explanations of the same features to show side by side, for example with another baseline.

    Returns
    -------
    dict
        The keys are described in docs/report-schema.md.
    """
    e = explanation
    _check(e, title, label, beside)
    label = label or class_words(e.provenance.get("class"))
    listed = np.sort(np.argsort(-np.abs(np.nan_to_num(e.values)), kind="stable")[: sections.MOST_LISTED])
    owned = owners(e)
    view = input_view(e) if owned is None else None
    parts: dict[str, Any] = {
        "schema": SCHEMA,
        "title": title or f"Why {label or target_words(e.provenance.get('target')) or 'this output'}?",
        "prediction": sections.prediction(e, label),
        "features": sections.features(e, listed, owned, view),
        "picture": sections.picture_or_reason(e, image, owned),
        "view": view,
        "methods": [sections.values(e, listed), *sections.other_methods(e, listed)],
        "kernel": sections.kernel(e),
        "rows": sections.or_missing(lambda: sections.rows(e)),
        "constants": CONSTANTS,
        "residual": sections.residual(e),
        "certificate": sections.or_missing(lambda: sections.certificate(e)),
        "interactions": sections.or_missing(lambda: sections.interactions(e)),
        "removal": sections.or_missing(lambda: sections.removal(e, listed)),
        "beside": [sections.other_explanation(other, listed, owned) for other in beside],
        "panels": panel_contents(e),
        "cost": asdict(e.cost),
        "plan": dict(e.plan),
        "provenance": dict(e.provenance),
        "remarks": sections.remarks(e),
        "doubts": list(e.doubts),
    }
    plain: dict[str, Any] = strict(parts)
    plain["disagreements"] = disagreements(plain["methods"])
    plain["disagreement_sentences"] = disagreement_sentences(plain)
    plain["answers"] = answers(plain)
    plain["summary"] = [each["answer"] for each in plain["answers"]]
    plain["archive"] = pack(to_bytes(e))
    return plain


def _check(e: object, title: object, label: object, beside: object) -> None:
    if not isinstance(e, Explanation):
        raise bad("explanation", "report", "an Explanation", f"a {type(e).__name__}")
    if not isinstance(beside, Sequence):
        raise bad("beside", "report", "a list of explanations of the same features", f"a {type(beside).__name__}")
    for name, value in (("title", title), ("label", label)):
        if value is not None and not isinstance(value, str):
            raise bad(name, "report", "a text or None", repr(value))
    for other in beside:
        if not isinstance(other, Explanation):
            raise bad("beside", "report", "explanations of the same features", type(other).__name__)
        if other.features.shapes != e.features.shapes or tuple(other.names) != tuple(e.names):
            raise bad("beside", "report", "explanations of the same features", f"one with {other.features}")
