"""Algorithm 1 (GRALIS-MC) to the letter: uniform permutations, one feature per ray, midpoint nodes, the ratio."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from gralis.arrays import Array, Masks, real_numbers
from gralis.checks import one_of, whole
from gralis.errors import GralisError, bad
from gralis.estimators import GIVEN_RATIO, RATIO
from gralis.plans.plan import Plan, PlanningTask, Probe, Schedule
from gralis.rays import RayRequest
from gralis.rays.nested import default_nodes
from gralis.rays.quadrature import rule

__all__ = [
    "GivenSchedule",
    "PermutationPlan",
    "PermutationSchedule",
    "draw_orders",
    "permutation",
    "prefix_log_rate",
    "prefixes",
]

Order = NDArray[np.int64]

_N_NODES = 10


def permutation(n_permutations: int | None = None, antithetic: bool = True, orders: Order | None = None) -> Plan:
    """Algorithm 1 of the paper: uniform permutations, one feature per ray, k midpoints, and the ratio phi[i] / Z[i].

    The paper's experiments used m = 30 permutations "with antithetic variants", k = 10 and sigma = 0.75 with the
    euclidean distance. This sentence has two readings: 30 permutations in all, which are 15 pairs
    (`n_permutations=30`), or 30 permutations and their 30 reverses (`n_permutations=60`). The other settings belong to
    `explain`: `kernel=Gaussian(0.75, "euclidean")`, `n_nodes=10`, `quadrature="midpoint"` (the default of this plan)
    and `budget=None`. On raw pixels this kernel underflows: a feature whose every weight is zero has Z[i] = 0 and gets
    the undivided phi[i] = 0, as the paper says, with a warning and an unknown error.

    Parameters
    ----------
    n_permutations : int, optional
        The number of permutations in all: 30 antithetic permutations are 15 pairs. By default the budget decides.
    antithetic : bool, default=True
        Whether every permutation is followed by its reverse. `n_permutations` is then even.
    orders : array of int, shape (n_permutations, n_features), optional
        The permutations themselves, instead of random ones. The errors of the values are then unknown, and there is no
        certificate, because nothing was drawn at random.

    Returns
    -------
    Plan

    Examples
    --------
    The printed settings in both readings, on a function of three features; m n k gradients are evaluated.

    >>> import torch
    >>> from gralis import Gaussian, explain
    >>> printed = {"kernel": Gaussian(0.75, "euclidean"), "n_nodes": 10, "budget": None}
    >>> for m in (30, 60):
    ...     found = explain(lambda z: z[:, 0] * z[:, 1] + z[:, 2], torch.ones(3), plan=permutation(m), **printed)
    ...     print(found.cost.n_gradients, found.plan["n_replicates"], "pairs")
    900 15 pairs
    1800 30 pairs
    """
    if n_permutations is not None:
        n_permutations = whole(n_permutations, "n_permutations", 1)
    if orders is not None:
        orders = real_numbers(orders, "orders", "plans.permutation", "rows that are permutations of 0 .. n - 1")
        if orders.ndim != 2 or not (np.sort(orders, axis=1) == np.arange(orders.shape[1])).all():
            raise bad("orders", "plans.permutation", "rows that are permutations of 0 .. n - 1", orders.tolist())
    one_of(antithetic, (True, False), "antithetic", "plans.permutation")
    return PermutationPlan(n_permutations, bool(antithetic), orders)


@dataclass(frozen=True, eq=False)
class PermutationPlan(Plan):
    """Permutations as the budget allows, or `n_permutations` in all, or the given orders; see `permutation`."""

    n_permutations: int | None = None
    antithetic: bool = True
    orders: Order | None = None  # (n_permutations, n_features)
    name = "permutation"

    def settle(self, task: PlanningTask, probe: Probe) -> PermutationSchedule:
        n_nodes = task.n_nodes or default_nodes(task.quadrature, _N_NODES)
        node_rule = rule(task.quadrature or "midpoint", n_nodes, halves=task.halves)
        group = 2 if self.antithetic and self.orders is None else 1
        per_order = task.n_features * node_rule.n_nodes * task.n_baselines
        if self.orders is not None:
            n_orders = len(self.orders)
            if self.orders.shape[1] != task.n_features:
                raise bad("orders", "plans.permutation", f"orders of {task.n_features} features", self.orders.shape[1])
        elif self.n_permutations is not None:
            n_orders = self.n_permutations
        else:
            n_orders = (task.budget or 30 * per_order) // per_order // group * group
        if n_orders < group or n_orders % group:
            even = "an even number >= 2, because antithetic permutations come in pairs" if group == 2 else ">= 1"
            if self.n_permutations is not None:
                raise bad("n_permutations", "plans.permutation", even, self.n_permutations)
            task.needs(
                group * per_order, f"plan='permutation' ({group} x {task.n_features} rays x {node_rule.n_nodes})"
            )
        task.needs(n_orders * per_order, f"plan='permutation' with {n_orders} permutations")
        rays = group * task.n_features * task.n_baselines
        if self.orders is not None:
            orders = tuple(map(tuple, self.orders.tolist()))
            return GivenSchedule(task, node_rule, n_orders, rays, antithetic=False, orders=orders)
        return PermutationSchedule(task, node_rule, n_orders // group, rays, antithetic=group == 2)


@dataclass(frozen=True, eq=False, kw_only=True)
class PermutationSchedule(Schedule):
    """One replicate is a permutation or an antithetic pair, because pairs are independent and their halves are not."""

    antithetic: bool

    name = "permutation"
    estimator = RATIO

    def orders_of(self, index: int) -> Order:
        """The permutations of one replicate, (1 or 2, n_features)."""
        return draw_orders(self.task, index, self.antithetic)

    def replicate(self, index: int) -> RayRequest:
        assert self.rule is not None
        orders = self.orders_of(index)
        masks, owner = prefixes(orders)
        rate = prefix_log_rate(masks, len(orders))
        parts = []
        for number in range(self.task.n_baselines):
            nodes, weights = self.rule.on_rays(self.task.rng(index, number), len(masks))
            parts.append(RayRequest.of(masks, rate, index, nodes, weights, baseline=number, owner=owner))
        return RayRequest.stack(parts)

    def describe(self) -> dict[str, object]:
        n_permutations = self.n_replicates * (2 if self.antithetic else 1)
        return {**super().describe(), "n_permutations": n_permutations, "antithetic": self.antithetic}


@dataclass(frozen=True, eq=False, kw_only=True)
class GivenSchedule(PermutationSchedule):
    """One replicate is one of the orders that the user gave. They are not random, so they tell nothing about errors."""

    orders: tuple[tuple[int, ...], ...]

    estimator = GIVEN_RATIO

    def orders_of(self, index: int) -> Order:
        return np.array([self.orders[index]])

    def more(self, n_replicates: int) -> Schedule:
        raise GralisError("A plan with given orders has no more of them; start again with a longer list.")


def draw_orders(task: PlanningTask, index: int, antithetic: bool) -> Order:
    """The permutation of replicate `index`, and its reverse if antithetic: (1 or 2, n_features)."""
    order = task.rng(index).permutation(task.n_features)
    return np.stack([order, order[::-1]]) if antithetic else order[None]


def prefixes(orders: Order) -> tuple[Masks, Order]:
    """For every order and position: the coalition up to and including it, and the feature that just joined."""
    n = orders.shape[1]
    rank = np.argsort(orders, axis=1)  # rank[r, feature]: when it joins
    masks = rank[:, None, :] <= np.arange(n)[None, :, None]
    return masks.reshape(-1, n), orders.reshape(-1)


def prefix_log_rate(masks: Masks, n_orders: int) -> Array:
    """log of n_orders / C(n, t): the expected number of times that a coalition of size t is a prefix."""
    n, t = masks.shape[1], masks.sum(1)
    return np.asarray(np.log(n_orders) + gammaln(t + 1) + gammaln(n - t + 1) - gammaln(n + 1))
