"""The sections of the verification, and `verify`, which runs them."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from types import ModuleType

from gralis.checks import one_of
from gralis.paper import (
    appendix_e,
    axioms,
    canonical_form,
    complexity,
    efficient_kernels,
    errata,
    open_questions,
    paths,
    sampling,
    theorems,
)
from gralis.paper.verification import Section, Verification

__all__ = ["SECTIONS", "verify"]

#: The title of every section, and the module whose function `rows` computes it.
SECTIONS: Mapping[str, tuple[str, ModuleType]] = {
    "appendix-e": ("Appendix E, in rational arithmetic", appendix_e),
    "canonical": ("Theorem 1: the canonical form", canonical_form),
    "theorems": ("Theorems 2 and 4 to 7", theorems),
    "sampling": ("Theorem 3: sampling and quadrature", sampling),
    "kernels": ("Which kernels keep the sum", efficient_kernels),
    "axioms": ("The axiom table, measured: GradCAM, SHAP, LIME, IG, GRALIS", axioms),
    "complexity": ("Evaluations, counted", complexity),
    "paths": ("Paths that are not monotone", paths),
    "corrections": ("Not to the letter", errata),
    "settled": ("What the paper leaves open", open_questions),
}


def verify(sections: Iterable[str] | None = None) -> Verification:
    """Recompute every claim of the paper: one row each, with the predicted and the computed value.

    All sections together take less than half a minute on one core.

    Parameters
    ----------
    sections : iterable of str, optional
        The names of the sections to compute, from `gralis.paper.SECTIONS`. By default all of them.

    Returns
    -------
    Verification
        The rows by section. Its attribute `holds` says whether every claim holds, and printing it shows the table.

    Examples
    --------
    >>> verification = verify(["paths"])
    >>> verification.holds, len(verification.sections)
    (True, 1)
    """
    began = time.perf_counter()
    names = [
        one_of(name, tuple(SECTIONS), "sections", "verify") for name in (SECTIONS if sections is None else sections)
    ]
    computed = tuple(Section(name, SECTIONS[name][0], tuple(SECTIONS[name][1].rows())) for name in names)
    return Verification(computed, time.perf_counter() - began)
