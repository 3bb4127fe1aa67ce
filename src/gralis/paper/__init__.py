"""The claims of the paper and the library itself, checked by machine: `gralis.verify()` or `gralis verify`.

sections           `verify`, and the list of sections
verification       the table that `verify` returns
claim_row          one row of the table

appendix_e         every number of Appendix E, in rational arithmetic
canonical_form     Theorem 1: six methods as triples
theorems           Theorems 2 and 4 to 7 with their lemmas and corollaries
sampling           Theorem 3 and its corollaries, by simulation
efficient_kernels  which kernels make the attributions sum to F(x) - F(x')
axioms             the axiom table, measured on `axiom_cases`; `axiom_gaps` has multi-scale and the gaps, and
                   `axiom_conditions` the entries that hold in part
complexity         the numbers of model evaluations, counted
paths              a complete path that is not monotone
errata             statements that are not true to the letter
open_questions     questions that the paper leaves open, with their answers

library_laws          kernels and laws against rational arithmetic
library_plans         plans and estimators against Definition 1
library_designs       which rays the plans draw
library_bounds        certificates against their formulas
library_certificates  residual, ranks, audit, weight mass
library_explainers    other explainers from one ledger; `interaction_indices` has the definitions
library_scales        several scales
library_sobol         sensitivity over the input space
library_faithfulness  metrics that call the model
library_agreement     metrics that look at attributions
not_checked           what no row checks

rational           the definitions in rational arithmetic
networks           random small models
"""

from gralis.paper.claim_row import ClaimRow
from gralis.paper.not_checked import NOT_CHECKED
from gralis.paper.sections import SECTIONS, verify
from gralis.paper.verification import Section, Verification

__all__ = ["NOT_CHECKED", "SECTIONS", "ClaimRow", "Section", "Verification", "verify"]
