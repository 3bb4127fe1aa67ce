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
    library_agreement,
    library_bounds,
    library_certificates,
    library_designs,
    library_explainers,
    library_faithfulness,
    library_intervals,
    library_laws,
    library_plans,
    library_promises,
    library_scales,
    library_sobol,
    open_questions,
    paths,
    sampling,
    theorems,
)
from gralis.paper.claim_row import collect
from gralis.paper.verification import Section, Verification

__all__ = ["SECTIONS", "verify"]

#: The title of every section, and the modules whose functions `rows` compute it.
SECTIONS: Mapping[str, tuple[str, *tuple[ModuleType, ...]]] = {
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
    "laws": ("The library: kernels and laws", library_laws),
    "plans": ("The library: plans and estimators", library_plans, library_designs),
    "certificates": (
        "The library: certificates",
        library_bounds,
        library_promises,
        library_intervals,
        library_certificates,
    ),
    "explainers": ("The library: other explainers from the same ledger", library_explainers),
    "scales": ("The library: several scales", library_scales),
    "sensitivity": ("The library: sensitivity over the input space", library_sobol),
    "faithfulness": ("The library: metrics of attributions", library_faithfulness, library_agreement),
}


def verify(sections: Iterable[str] | None = None) -> Verification:
    """Recompute the claims of the paper and check the library: one row each, with the predicted and the computed value.

    The first sections follow the paper. The sections that begin with "The library" call public functions and compare
    them with rational arithmetic, closed forms or enumeration. If a computation raises, its row fails and shows the
    error. All sections together take about half a minute on one core.

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
    computed = []
    for name in names:
        title, *modules = SECTIONS[name]
        computed.append(Section(name, title, tuple(collect(*(module.rows for module in modules)))))
    return Verification(tuple(computed), time.perf_counter() - began)
