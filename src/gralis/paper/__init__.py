"""The claims of the paper, checked by machine: `gralis.verify()` or `gralis verify` prints the table.

sections           `verify`, and the list of sections
verification       the table that `verify` returns
claim_row          one row of the table

appendix_e         every number of Appendix E, in rational arithmetic
canonical_form     Theorem 1: six methods as triples
theorems           Theorems 2 and 4 to 7 with their lemmas and corollaries
sampling           Theorem 3 and its corollaries, by simulation
efficient_kernels  which kernels make the attributions sum to F(x) - F(x')
axioms             the axiom table, measured on `axiom_cases`; `axiom_conditions` has the entries that hold in part
complexity         the numbers of model evaluations, counted
paths              a complete path that is not monotone
errata             statements that are not true to the letter
open_questions     questions that the paper leaves open, with their answers

rational           the definitions in rational arithmetic
networks           random small models
"""

from gralis.paper.claim_row import ClaimRow
from gralis.paper.sections import SECTIONS, verify
from gralis.paper.verification import Section, Verification

__all__ = ["SECTIONS", "ClaimRow", "Section", "Verification", "verify"]
