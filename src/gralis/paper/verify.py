"""Every section in turn, timed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from types import ModuleType

from gralis.errors import bad
from gralis.paper import (
    appendix_e,
    axioms,
    canonical,
    complexity,
    corrections,
    kernels,
    paths,
    sampling,
    settled,
    theorems,
)
from gralis.paper.row import Row
from gralis.paper.verification import Section, Verification

SECTIONS: Mapping[str, tuple[str, ModuleType]] = {
    "appendix-e": ("Appendix E, in rational arithmetic", appendix_e),
    "canonical": ("Theorem 1: the canonical form", canonical),
    "theorems": ("Theorems 2 and 4 to 7", theorems),
    "sampling": ("Theorem 3: sampling and quadrature", sampling),
    "kernels": ("Which kernels keep the sum", kernels),
    "axioms": ("The axiom table, measured: GradCAM, SHAP, LIME, IG, GRALIS", axioms),
    "complexity": ("Evaluations, counted", complexity),
    "paths": ("Paths that are not monotone", paths),
    "corrections": ("Not to the letter", corrections),
    "settled": ("What the paper leaves open", settled),
}


def verify(sections: Iterable[str] | None = None) -> Verification:
    """Every claim of the paper as a row: predicted, computed, holds. About half a minute on one core.

    >>> found = verify(["paths"])
    >>> found.holds, len(found.sections)
    (True, 1)
    """
    began = time.perf_counter()
    names = tuple(SECTIONS) if sections is None else tuple(sections)
    for name in names:
        if name not in SECTIONS:
            raise bad("sections", "verify", f"made of {', '.join(map(repr, SECTIONS))}", repr(name))
    found = []
    for name in names:
        title, module = SECTIONS[name]
        rows: Callable[[], list[Row]] = module.rows
        found.append(Section(name, title, tuple(rows())))
    return Verification(tuple(found), time.perf_counter() - began)
