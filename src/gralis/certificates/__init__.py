"""What may be wrong, and by how much; arithmetic on ledger rows and replicates, no model.

certificate    what every method returns; the Lemma A checksum
replicates     the default: joint behaviour of the replicates      simultaneous   its max-t quantile
bernstein      finite-sample, for independent rays                  paper          Theorem 3 and corollaries as printed
calibrate      the constant B                                       residual       why values do not sum to F(x) - F(x')
ranks          which feature is bigger                              audit          another explainer against ours
mass           where the kernel puts its weight                     baseline       how much the baseline matters
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
