"""What may be wrong, and by how much: arithmetic on ledger rows and replicates, without a model call.

certificate      what every method returns, and the Lemma A checksum
replicates       the default certificate, from the joint behaviour of the replicates
simultaneous     intervals that hold together, by the max-t quantile
bounds           the bounds as functions of their constants
bernstein        finite-sample certificates for independent rays
paper            Theorem 3 and its corollaries as printed, as a certificate
promise          the constants that are known before a run, and the certificates that follow from them
beforehand       `before`: both certificates before the run, and the m and k that a wanted epsilon takes
calibration      the constant B
residual         why the values do not sum to F(x) - F(x')
ranks            which feature is larger
audit            another explainer against ours
weight_mass      where the kernel puts its weight
baseline_spread  how much the choice of the baseline matters
effective_rays   a warning if values rest on few rays
doubts           sentences that say why the intervals may not hold
standing_gradients  features whose gradient is zero although F changes with them
stopping         when a run with a tolerance may stop
"""

from gralis.certificates.audit import Audit
from gralis.certificates.beforehand import Beforehand, before
from gralis.certificates.bounds import (
    Smoothness,
    aggregate_bound,
    bernstein_bound,
    empirical_bernstein_bound,
    kernel_range,
    numerator_bound,
    quadrature_bound,
    ratio_bound,
)
from gralis.certificates.calibration import Calibration, calibrate
from gralis.certificates.certificate import Certificate, Checksum
from gralis.certificates.ranks import Ranks
from gralis.certificates.residual import Residual, Term
from gralis.certificates.weight_mass import WeightMass

__all__ = [
    "Audit",
    "Beforehand",
    "Calibration",
    "Certificate",
    "Checksum",
    "Ranks",
    "Residual",
    "Smoothness",
    "Term",
    "WeightMass",
    "aggregate_bound",
    "before",
    "bernstein_bound",
    "calibrate",
    "empirical_bernstein_bound",
    "kernel_range",
    "numerator_bound",
    "quadrature_bound",
    "ratio_bound",
]
