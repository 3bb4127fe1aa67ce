"""What no row of the verification checks, and where it is checked instead."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["NOT_CHECKED"]

NOT_CHECKED: Mapping[str, str] = {
    "how often intervals cover the truth": "it takes hundreds of runs; `benchmarks/coverage.py` measures it",
    "nonsmooth and steep models": "nearly every function here is smooth; the tests and benchmarks have others",
    "discrete features, layers, several targets, grouped features": "the tests do",
    "the adapters of models, baselines, features, targets and file formats": "the tests do",
    "explain_many, explain_batch, global_importance, compare, cost, replay, reports, pictures, the command line": (
        "the tests do"
    ),
    "the peers in gralis.methods": "the tests do, GradCAM and integrated gradients against captum",
    "the paper's figures and its experiments on images": "they need data and networks; see `experiments/`",
    "multi-scale GRALIS in the axiom table, but for its own row": "the other rows have the five single-scale methods",
    "proofs": "a row checks a statement on examples, never for all functions",
}
