"""The exact law of coalitions: q(T) proportional to pi(T) / (|T| C(n, |T|)), T non-empty; no model call.

GRALIS is phi_i = E_q[ray_i(T) | i in T]. For every feature the conditional law has a closed form,

    q_i(T) = B(t, n - t + 1) pi(T \\ i) / Z_i,   t = |T|,   B the Beta function, 1 / (t C(n, t)) = B(t, n - t + 1).

A good estimate covers every feature and does not spend many rays on small coalitions, because a ray of size t serves
t features. The shared plan therefore draws from the *proposal* r(T): the even mixture of the q_i over the features,
with sizes tilted by about 1 / sqrt(t). It has a closed form too, so the importance weights q_i / r are exact, and they
are bounded.
"""

from gralis.laws.law import Law, all_masks, log_shapley
from gralis.laws.product import ProductLaw
from gralis.laws.sizes import SizeLaw
from gralis.laws.table import TableLaw

__all__ = ["Law", "ProductLaw", "SizeLaw", "TableLaw", "all_masks", "log_shapley"]
