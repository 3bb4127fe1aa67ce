"""The numbers that the JavaScript of the page shares with the Python package. The page reads them from its content."""

from __future__ import annotations

from typing import Any

from gralis.certificates.effective_rays import FEW_RAYS, LITTLE, NEARLY_ALL
from gralis.certificates.simultaneous import MOST_NUMBERS, MOST_REPLICATES, N_DRAWS
from gralis.estimators import adjusted, copies, steadiest, surrogates, witnesses
from gralis.estimators.design import AT_ROUNDING, N_ROUNDINGS
from gralis.estimators.estimate import HEAVY, LEAST_CARRIERS
from gralis.estimators.ray_weights import NEGLIGIBLE_SHARE
from gralis.kernels.gaussian import MOST_EXPONENT
from gralis.laws.product import N_NODES, NEGLIGIBLE
from gralis.rays import CENSUS

__all__ = ["CONSTANTS"]

#: By the names under which the page asks for them: `constant("n_nodes")`.
CONSTANTS: dict[str, Any] = {
    "n_nodes": N_NODES,
    "negligible": NEGLIGIBLE,
    "most_exponent": MOST_EXPONENT,
    "census": CENSUS,
    "negligible_share": NEGLIGIBLE_SHARE,
    "few_rays": FEW_RAYS,
    "little": LITTLE,
    "nearly_all": NEARLY_ALL,
    "most_folds": steadiest.MOST_FOLDS,
    "most_monomials": adjusted.MOST_MONOMIALS,
    "equations_per_monomial": adjusted.EQUATIONS_PER_MONOMIAL,
    "clearly": steadiest.CLEARLY,
    "patience": steadiest.PATIENCE,
    "ladder": adjusted.LADDER,
    "least_visits": adjusted.LEAST_VISITS,
    "drift_terms": adjusted.DRIFT_TERMS,
    "widening": adjusted.WIDENING,
    "checksum_ridge": adjusted.CHECKSUM_RIDGE,
    "drift_ridge": surrogates.DRIFT_RIDGE,
    "monomial_ridge": surrogates.MONOMIAL_RIDGE,
    "jitter": surrogates.JITTER,
    "tiny": surrogates.TINY,
    "least_carriers": LEAST_CARRIERS,
    "heavy": HEAVY,
    "overlap": copies.OVERLAP,
    "clear": witnesses.CLEAR,
    "at_rounding": AT_ROUNDING,
    "n_roundings": N_ROUNDINGS,
    "n_draws": N_DRAWS,
    "most_numbers": MOST_NUMBERS,
    "most_replicates": MOST_REPLICATES,
}
