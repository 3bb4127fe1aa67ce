"""What may be wrong, and by how much: arithmetic on ledger rows and replicates, without a model call.

certificate      what every method returns, and the Lemma A checksum
replicates       the default certificate, from the joint behaviour of the replicates
simultaneous     intervals that hold together, by the max-t quantile
bernstein        finite-sample bounds for independent rays
paper            Theorem 3 and its corollaries as printed
calibration      the constant B
residual         why the values do not sum to F(x) - F(x')
ranks            which feature is larger
audit            another explainer against ours
weight_mass      where the kernel puts its weight
baseline_spread  how much the choice of the baseline matters
effective_rays   a warning where few rays carry a value
stopping         when a run with a tolerance may stop
"""

from gralis.certificates.audit import Audit
from gralis.certificates.calibration import Calibration, calibrate
from gralis.certificates.certificate import Certificate, Checksum
from gralis.certificates.paper import Smoothness
from gralis.certificates.ranks import Ranks
from gralis.certificates.residual import Residual, Term
from gralis.certificates.weight_mass import WeightMass

__all__ = [
    "Audit",
    "Calibration",
    "Certificate",
    "Checksum",
    "Ranks",
    "Residual",
    "Smoothness",
    "Term",
    "WeightMass",
    "calibrate",
]
