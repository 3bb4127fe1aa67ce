"""Arithmetic on ledger rows, without a model call. Each plan names the estimator that reads its rows.

design     how a ledger is read, and the interface of every estimator
adjusted   the shared plan: a surrogate, the cross-fitted remainder, and the checksum
plain      weighted rays: the exhaustive and the independent plan
copies     the exhaustive plan for models that are not smooth: independent random nodes on all rays
ratio      Algorithm 1
endpoint   marginal differences of coalition values
shapley    Shapley values from any coalition values, by the games that the rows make likely
walks      Shapley values from random orders, without a fit
folded     sums of rays, for very many features
tree_sums  the closed-form sum over the crossings of trees
node_error how far fixed nodes may be off on each ray
witnesses  what random nodes and drawn coalitions may have missed
removal    what the output loses if one feature goes to its baseline

estimate     what every estimator returns
ray_weights  the importance weights of the rays
surrogates, steadiest   what `adjusted` fits, and how it chooses among the fits
one_thread              fits run on one thread
process, owen           what `shapley` fits, and the weights of its coalition values
"""

from __future__ import annotations

from gralis.errors import GralisError
from gralis.estimators.adjusted import AdjustedRays
from gralis.estimators.copies import CopiedRays
from gralis.estimators.design import Design, Estimator, estimates
from gralis.estimators.endpoint import EndpointDifferences
from gralis.estimators.estimate import Estimate
from gralis.estimators.folded import FoldedRays
from gralis.estimators.plain import EnumeratedRays, WeightedRays
from gralis.estimators.ratio import GivenRatio, Ratio
from gralis.estimators.shapley import LikelyGames
from gralis.estimators.tree_sums import TreeSums
from gralis.estimators.walks import RandomOrders
from gralis.registry import Registry

__all__ = [
    "ADJUSTED",
    "COPIES",
    "ENDPOINT",
    "ENUMERATED",
    "FOLDED",
    "GIVEN_RATIO",
    "ORDERS",
    "RATIO",
    "SHAPLEY",
    "TREES",
    "WEIGHTED",
    "Design",
    "Estimate",
    "Estimator",
    "by_name",
    "estimates",
    "register",
]

ADJUSTED, WEIGHTED, ENUMERATED, RATIO = AdjustedRays(), WeightedRays(), EnumeratedRays(), Ratio()
COPIES, ENDPOINT, SHAPLEY, FOLDED = CopiedRays(), EndpointDifferences(), LikelyGames(), FoldedRays()
GIVEN_RATIO, TREES, ORDERS = GivenRatio(), TreeSums(), RandomOrders()

_BUILT_IN: tuple[Estimator, ...] = (
    *(ADJUSTED, WEIGHTED, ENUMERATED, COPIES),
    *(RATIO, GIVEN_RATIO, ENDPOINT, SHAPLEY, ORDERS, FOLDED, TREES),
)
_BY_NAME = Registry("estimators.register", {estimator.name: estimator for estimator in _BUILT_IN}, "estimator.name")


def register(estimator: Estimator) -> None:
    """Make an estimator known by its name, so that files which refer to it can be read.

    Parameters
    ----------
    estimator : Estimator
        An instance of a class that derives from `Estimator`.
    """
    _BY_NAME[estimator.name] = estimator


def by_name(name: str) -> Estimator:
    """The estimator with this name.

    Parameters
    ----------
    name : str
        The name of a built-in or registered estimator.

    Examples
    --------
    >>> by_name("ratio").bound
    'paper'
    """
    if name not in _BY_NAME:
        known = ", ".join(map(repr, _BY_NAME))
        raise GralisError(f"There is no estimator called {name!r}; known are {known}. Register yours before loading.")
    return _BY_NAME[name]
