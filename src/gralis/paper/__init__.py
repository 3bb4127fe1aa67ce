"""The paper's claims checked by machine: `python -m gralis.verify` prints the table.

appendix_e   every number of Appendix E, in rational arithmetic
canonical    Theorem 1: six methods as triples
theorems     Theorems 2 and 4 to 7, lemmas and corollaries
sampling     Theorem 3 and its corollaries, by simulation
kernels      which kernels keep the sum
axioms       the axiom table, measured
complexity   evaluations, counted
paths        a complete path that is not monotone
corrections  statements that must not be taken to the letter
settled      what the paper leaves open
"""

from gralis.paper.row import Row
from gralis.paper.verification import Section, Verification
from gralis.paper.verify import SECTIONS, verify

__all__ = ["SECTIONS", "Row", "Section", "Verification", "verify"]
