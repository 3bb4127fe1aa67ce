"""All 2^n - 1 coalitions: phi_i = sum_T q_i(T) ray_i(T), without sampling error where the rays are smooth.

Gauss-Legendre nodes come first, on the rays that weigh most. If two witnesses agree that these rays are smooth (the
Legendre coefficients fall, and by Lemma A the checksum is small), all rays get Gauss-Legendre nodes, and what the
witnesses leave is the error. If not, the error of a fixed rule would be a bias that no interval sees. The rest of the
budget then goes to random nodes, which have no bias: on all rays if each can have six on the average (rays that weigh
more get more of them), otherwise on rays from the law.
The values of all coalitions are evaluated in every case.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gralis.arrays import Array, Masks
from gralis.checks import whole
from gralis.errors import BudgetError, GralisError
from gralis.estimators import COPIES, ENUMERATED
from gralis.estimators.node_error import node_errors
from gralis.estimators.ray_weights import importance
from gralis.laws import all_masks
from gralis.ledger import Ledger
from gralis.plans.enumeration import everywhere
from gralis.plans.node_allotment import nodes_by_ray
from gralis.plans.node_density import node_density
from gralis.plans.plan import Plan, PlanningTask, Probe, Schedule
from gralis.plans.ray_walk import walked_density
from gralis.plans.sampled_rays import sampled, single_features
from gralis.rays import PILOT, RayRequest
from gralis.rays.nested import default_nodes
from gralis.rays.quadrature import RandomRule, rule

__all__ = ["CopiesSchedule", "ExhaustivePlan", "ExhaustiveSchedule", "exhaustive"]

_MOST_FEATURES = 16
_LEAST_NODES, _MOST_NODES = 4, 16
_FIRST_SHARE = 16  # one ray in so many is looked at first
_SMOOTH = 0.05  # the error that the nodes show, relative to the largest value; random nodes would leave about as much
_SMOOTH_CHECK = 0.005  # the checksum, likewise; it is much closer to the true error
_LEAST_POINTS = 32  # for random nodes
_MANY_NODES = 6  # on each ray: then no coalition needs to be drawn
_MOST_COPIES = 12  # of a run that may stop early


def exhaustive(most_features: int = _MOST_FEATURES) -> Plan:
    """All 2^n - 1 coalitions, each of them evaluated.

    Smooth models get Gauss-Legendre nodes, others random nodes in cells. If `n_nodes` or `quadrature` is
    given, the nodes are fixed as the user wants, and the interval has the error that they show.

    Parameters
    ----------
    most_features : int, default=16
        The largest number of features that is accepted. Raise it to enumerate more coalitions than 2^16.

    Returns
    -------
    Plan

    Examples
    --------
    >>> exhaustive(most_features=18).most_features
    18
    """
    return ExhaustivePlan(whole(most_features, "most_features", 1))


@dataclass(frozen=True)
class ExhaustivePlan(Plan):
    """Every coalition, of at most `most_features` features."""

    most_features: int = _MOST_FEATURES
    name = "exhaustive"

    def settle(self, task: PlanningTask, probe: Probe) -> Schedule:
        n = task.n_features
        if n > self.most_features:
            raise GralisError(
                f"plan='exhaustive' enumerates 2^n - 1 coalitions, here 2^{n} = {2.0**n:.3g}; the plan accepts "
                f"up to n_features = {self.most_features}. Use plan='shared', fewer features (features=...), or "
                f"gralis.plans.exhaustive(most_features={n})."
            )
        n_rays = (2**n - 1) * task.n_baselines
        least = n_rays * (task.n_nodes or _LEAST_NODES)
        if task.budget is not None and task.budget < least:
            raise BudgetError(
                f"plan='exhaustive' with {n} features has {n_rays} rays and needs a budget of at least {least} "
                f"gradients; the budget is {task.budget}. Give budget={least} or more, or budget=None."
            )
        if task.n_nodes:
            n_nodes = task.n_nodes
        else:
            most = _MOST_NODES if task.budget is None else min(_MOST_NODES, task.budget // n_rays)
            n_nodes = default_nodes(task.quadrature, most)
        if task.quadrature == "random":
            return _random(task, n_rays * n_nodes, ())
        node_rule = rule(task.quadrature or "gauss-legendre", n_nodes, halves=task.halves)
        fixed = ExhaustiveSchedule(task, node_rule, 1, n_rays)
        return fixed if task.quadrature or task.n_nodes else _settled(fixed, probe)


def _settled(fixed: ExhaustiveSchedule, probe: Probe) -> Schedule:
    """Fixed nodes on all rays if they are smooth, otherwise random nodes with the rest of the budget."""
    task, rays = fixed.task, fixed.all_rays(PILOT)
    budget = 2 * fixed.n_gradients if task.budget is None else task.budget
    seen = fixed.first_rays()
    ledgers = probe(_part(rays, seen))
    smooth = _are_smooth(ledgers, task)
    if smooth and 2 * fixed.n_gradients <= budget and not seen.all():
        others = probe(_part(rays, ~seen))
        ledgers = tuple(Ledger.join(parts) for parts in zip(ledgers, others, strict=True))
        seen, smooth = np.ones_like(seen), _are_smooth(ledgers, task)
    left = budget - int(seen.sum()) * fixed.n_nodes
    if smooth or left < max(_LEAST_POINTS, (budget - left) // 2):
        known = tuple(replace(ledger, replicate=np.zeros_like(ledger.replicate)) for ledger in ledgers)
        return replace(fixed, pilot=known, evaluated=seen)
    return _random(task, left, ledgers)


def _random(task: PlanningTask, n_points: int, pilot: Sequence[Ledger]) -> Schedule:
    """Random nodes: on all rays if each can have many, otherwise on rays from the law."""
    n_rays = len(_drawn_masks(task)) * task.n_baselines
    if not n_rays or n_points // n_rays < _MANY_NODES:
        return sampled(task, n_points, pilot, n_nodes=task.n_nodes or 1, all_values=task.with_values)
    most = n_points // n_rays // _MANY_NODES
    # One copy with many nodes has the least error. A run that may stop between copies needs several.
    n_copies = min(task.replicates or (_MOST_COPIES if task.rays_per_replicate else 1), most)
    node_rule = RandomRule(n_points // (n_rays * n_copies), node_density((), walked_density(task)))
    return CopiesSchedule(task, node_rule, n_copies, n_rays, tuple(pilot))


def _are_smooth(ledgers: Sequence[Ledger], task: PlanningTask) -> bool:
    """Whether fixed nodes are good enough on these rays, for every question."""
    weights = importance(ledgers[0], task.laws, task.baseline_weights)
    for ledger in ledgers:
        error = (weights * node_errors(ledger, "gauss-legendre")).sum(0)
        size = (weights * np.abs(ledger.rays)).sum(0)
        check = float(weights.max(1) @ np.abs(np.nan_to_num(ledger.checksum)))
        scale = max(size.max(), float(weights.max(1) @ np.abs(np.nan_to_num(ledger.value))))
        if error.max() > _SMOOTH * scale or check > _SMOOTH_CHECK * scale:
            return False
    return True


def _part(request: RayRequest, rows: NDArray[np.bool_]) -> RayRequest:
    """These rays of a request."""
    return RayRequest(*(getattr(request, name)[rows] for name in RayRequest.__dataclass_fields__))


@dataclass(frozen=True, eq=False)
class ExhaustiveSchedule(Schedule):
    """One replicate: every coalition of every baseline, each exactly once, with fixed nodes.

    `evaluated` marks the rays that are already in `pilot`.
    """

    evaluated: NDArray[np.bool_] | None = None

    name = "exhaustive"
    estimator = ENUMERATED
    enumerates = True
    grows = False

    @property
    def n_rays(self) -> int:
        """The rays that are still to be evaluated."""
        return super().n_rays - (0 if self.evaluated is None else int(self.evaluated.sum()))

    def all_rays(self, index: int) -> RayRequest:
        """Every coalition of every baseline, as rays of this replicate."""
        assert self.rule is not None
        masks, baseline = everywhere(all_masks(self.task.n_features), self.task.n_baselines)
        nodes, weights = self.rule.on_rays(self.task.rng(index), len(masks))
        return RayRequest.of(masks, np.zeros(len(masks)), index, nodes, weights, baseline=baseline)

    def first_rays(self) -> NDArray[np.bool_]:
        """The rays to look at before the nodes are settled: the rays of all features, then the heaviest."""
        task, everyone = self.task, self.all_rays(0)
        weight = _ray_weights(task, everyone.masks, everyone.baseline)
        weight[everyone.masks.all(1)] = np.inf  # the longest ray sees most of the model
        first = np.argsort(-weight, kind="stable")[: max(3 * task.n_baselines, everyone.n_rays // _FIRST_SHARE)]
        return np.isin(np.arange(everyone.n_rays), first)

    def replicate(self, index: int) -> RayRequest:
        rays = self.all_rays(index)
        return rays if self.evaluated is None else _part(rays, ~self.evaluated)


class CopiesSchedule(Schedule):
    """A replicate has all coalitions with its own random nodes; single features come from their values."""

    name = "exhaustive"
    estimator = COPIES
    enumerates = True
    learns_density = True

    def replicate(self, index: int) -> RayRequest:
        assert isinstance(self.rule, RandomRule)
        task = self.task
        masks, baseline = everywhere(_drawn_masks(task), task.n_baselines)
        if task.n_nodes:  # the user wants as many on every ray
            counts = np.full(len(masks), task.n_nodes)
        else:
            counts = nodes_by_ray(_ray_weights(task, masks, baseline), masks.sum(1), self.rule.n_nodes)
        nodes, weights = self.rule.on_rays_apart(task.rng(index), counts)
        return RayRequest.of(masks, np.zeros(len(masks)), index, nodes, weights, baseline=baseline)

    def census(self) -> RayRequest | None:
        return single_features(self.task)


def _ray_weights(task: PlanningTask, masks: Masks, baseline: NDArray[np.int64]) -> Array:
    """W(T) = max_i q_i(T), times the weight of the baseline, (n_rays,)."""
    weight = np.zeros(len(masks))
    for number, (law, share) in enumerate(zip(task.laws, task.baseline_weights, strict=True)):
        rows = baseline == number
        weight[rows] = share * np.exp(law.log_conditional(masks[rows])).max(1)
    return weight


def _drawn_masks(task: PlanningTask) -> Masks:
    """The coalitions that need nodes: all, or those of two features and more if the others are known."""
    masks = all_masks(task.n_features)
    return np.asarray(masks[masks.sum(1) > 1] if task.has_census else masks)
