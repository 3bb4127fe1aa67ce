"""Plans: which coalitions, which nodes, and why. Law, strata, replicates and seed travel inside.

shared       every gradient serves all members of its coalition; the default
exhaustive   all 2^n - 1 rays
permutation  Algorithm 1 to the letter
independent  independent draws of q, for finite-sample bounds
endpoint     the paper's zeroth-order variant, forwards only
values       Shapley values from pairs of complementary coalitions, forwards only
"""

from __future__ import annotations

import numpy as np

from gralis.checks import whole
from gralis.errors import bad
from gralis.plans.endpoint import Endpoint
from gralis.plans.exhaustive import Exhaustive
from gralis.plans.independent import Independent
from gralis.plans.permutation import Permutation
from gralis.plans.plan import Plan, Probe, Schedule, Task
from gralis.plans.shared import Shared
from gralis.plans.values import Values
from gralis.rays import CENSUS, PILOT, RayRequest

__all__ = [
    "CENSUS",
    "PILOT",
    "Plan",
    "Probe",
    "RayRequest",
    "Schedule",
    "Task",
    "as_plan",
    "endpoint",
    "exhaustive",
    "independent",
    "permutation",
    "shared",
    "values",
]


def shared() -> Plan:
    """The default: all members of a coalition share its gradients, singles are exact, replicates give the error."""
    return Shared()


def exhaustive(most_features: int = 16) -> Plan:
    """All 2^n - 1 coalitions; raise `most_features` to allow more than 16 features."""
    return Exhaustive(whole(most_features, "most_features", 1))


def permutation(n_permutations: int | None = None, antithetic: bool = True, orders: np.ndarray | None = None) -> Plan:
    """Algorithm 1: n_permutations in all (30 antithetic ones are 15 pairs), or these very orders.

    >>> permutation(n_permutations=30).name
    'permutation'
    """
    if n_permutations is not None:
        n_permutations = whole(n_permutations, "n_permutations", 1)
    if orders is not None:
        orders = np.asarray(orders)
        if orders.ndim != 2 or not (np.sort(orders, axis=1) == np.arange(orders.shape[1])).all():
            raise bad("orders", "plans.permutation", "rows that are permutations of 0 .. n - 1", orders.tolist())
    return Permutation(n_permutations, bool(antithetic), orders)


def independent() -> Plan:
    """Independent draws of the law q."""
    return Independent()


def endpoint() -> Plan:
    """Marginal differences instead of rays; needs no gradient."""
    return Endpoint()


def values() -> Plan:
    """Shapley values from forwards alone: all coalitions, or pairs of complements; the kernel plays no part.

    >>> values().name
    'values'
    """
    return Values()


_BY_NAME = {
    "shared": shared,
    "exhaustive": exhaustive,
    "permutation": permutation,
    "independent": independent,
    "endpoint": endpoint,
    "values": values,
}


def as_plan(plan: object) -> Plan:
    """A plan by name, or a plan value as it is.

    >>> as_plan("shared").name
    'shared'
    """
    if isinstance(plan, str) and plan in _BY_NAME:
        return _BY_NAME[plan]()
    if isinstance(plan, Shared | Exhaustive | Permutation | Independent | Endpoint | Values) or hasattr(plan, "settle"):
        return plan  # type: ignore[return-value]
    allowed = f"one of {', '.join(map(repr, _BY_NAME))}, or a plan from gralis.plans"
    raise bad("plan", "explain", allowed, repr(plan))
