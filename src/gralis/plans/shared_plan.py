"""The default plan: every gradient serves every member of its coalition, and replicates estimate the error.

1. Census. One forward per feature gives v({i}), which by Lemma A is the ray of {i}: single features are exact.
2. Pilot. A few rays show where along a ray the gradient is large. If that is uneven, nodes are drawn from a density
   that follows it.
3. Replicates. Coalitions of two or more features are drawn from the proposal of the law, each with one random node;
   the nodes are stratified over the rays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gralis.arrays import Array
from gralis.estimators import ADJUSTED
from gralis.laws.law import systematic_counts
from gralis.ledger import Ledger
from gralis.plans.exhaustive_plan import ExhaustivePlan
from gralis.plans.plan import Plan, PlanningTask, Probe, Schedule
from gralis.rays import CENSUS, PILOT, RayRequest
from gralis.rays.quadrature import UNIFORM, Density, NodeRule, RandomRule, rule

__all__ = ["SharedPlan", "SharedSchedule", "draw_rays", "has_census", "node_density", "shared"]

_N_NODES = 1  # a gradient on another coalition tells more than a second one on the same ray
_KNOTS = np.array([0.0, 0.01, 0.025, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 1.0])
_PILOT_DENSITY = Density(_KNOTS, 1 / (_KNOTS + 0.15))
_PRIOR = 0.3  # of the learnt density: so many points at the overall mean are added at every knot
_FLOOR = 0.15  # of the learnt density: this share of its mean height is added everywhere
_ENOUGH = 128  # gradients: fewer are too few for any number of features beyond a few dozen
_ENOUGH_NODES = 8  # per ray, for enumerating all coalitions instead of sampling them


def shared() -> Plan:
    """The default plan: all members of a coalition share its gradients.

    Single features are exact where coalition values are evaluated, and replicates give the error. With a budget for
    all coalitions the plan becomes `exhaustive`.

    Returns
    -------
    Plan

    Examples
    --------
    >>> shared().name
    'shared'
    """
    return SharedPlan()


@dataclass(frozen=True)
class SharedPlan(Plan):
    """The shared design of THEORY; it becomes exhaustive if the budget allows."""

    name = "shared"
    may_fold = True

    def settle(self, task: PlanningTask, probe: Probe) -> Schedule:
        n, budget = task.n_features, task.budget
        n_coalitions = 2**n - 1 if n <= 30 else np.inf
        if n == 1 or budget is None or budget >= n_coalitions * task.n_baselines * (task.n_nodes or _ENOUGH_NODES):
            return ExhaustivePlan().settle(task, probe)
        random = task.quadrature in (None, "random")
        n_nodes = task.n_nodes or (_N_NODES if random else 10)
        beside_pilot = max(_least(task), task.least_replicates * n_nodes)
        least = beside_pilot
        while random and least < beside_pilot + _pilot_rays(least, n_nodes) * n_nodes:
            least += 1  # the pilot grows with the budget
        task.needs(least, f"plan='shared' with {n} features and {n_nodes} nodes per ray")
        n_pilot = _pilot_rays(budget, n_nodes) if random else 0
        n_rays = budget // n_nodes - n_pilot
        replicates = task.replicates or self._replicates(task, n_rays)
        task.needs((n_pilot + replicates) * n_nodes, f"plan='shared' with {replicates} replicates")
        ledgers = probe(draw_rays(task, RandomRule(n_nodes, _PILOT_DENSITY), n_pilot, PILOT)) if n_pilot else ()
        density = node_density(ledgers) if ledgers else UNIFORM
        node_rule = rule(task.quadrature or "random", n_nodes, density, halves=task.halves)
        pilot = tuple(ledger.on_scale(density) for ledger in ledgers)
        return SharedSchedule(task, node_rule, replicates, n_rays // replicates, pilot)

    @staticmethod
    def _replicates(task: PlanningTask, n_rays: int) -> int:
        """At most twelve for a run of fixed length; as many small ones as the budget allows for a run that may stop."""
        if task.rays_per_replicate:
            return max(task.least_replicates, n_rays // task.rays_per_replicate)
        return int(np.clip(n_rays // 12, task.least_replicates, 12))


def _least(task: PlanningTask) -> int:
    """The gradients that put every feature on a few rays: four per feature, fewer if coalitions are large."""
    n = task.n_features
    if 4 * n <= _ENOUGH:
        return 4 * n
    mean_size = min(float(law.size_moments()[1].min()) * n for law in task.laws)
    return int(min(4 * n, max(_ENOUGH, np.ceil(16 * n / mean_size))))


def _pilot_rays(budget: int, n_nodes: int) -> int:
    """The rays of the pilot: a tenth of the budget, between 24 and 96 gradients, but at least one ray."""
    return max(1, int(np.clip(budget // 10, 24, 96)) // n_nodes)


class SharedSchedule(Schedule):
    """The settled shared plan."""

    name = "shared"
    estimator = ADJUSTED

    def replicate(self, index: int) -> RayRequest:
        assert self.rule is not None
        return draw_rays(self.task, self.rule, self.rays_per_replicate, index)

    def census(self) -> RayRequest | None:
        if not has_census(self.task):
            return None
        n = self.task.n_features
        return RayRequest.of(np.eye(n, dtype=bool), np.zeros(n), CENSUS)

    def describe(self) -> dict[str, object]:
        density = self.rule.density if isinstance(self.rule, RandomRule) else UNIFORM
        shape = {"density_knots": density.knots.tolist(), "density_heights": density.heights.tolist()}
        return {**super().describe(), **shape}


def has_census(task: PlanningTask) -> bool:
    """Whether single features are known without error: values are evaluated, and there is one baseline."""
    return task.with_values and task.n_baselines == 1 and task.n_features > 1


def draw_rays(task: PlanningTask, node_rule: NodeRule, n_rays: int, index: int) -> RayRequest:
    """n_rays rays of one replicate, distributed over the baselines by their weights."""
    rng = task.rng(index)
    counts = systematic_counts(rng, n_rays * task.baseline_weights) if task.n_baselines > 1 else np.array([n_rays])
    least = 2 if has_census(task) else 1
    masks, log_rate, baseline = [], [], []
    for number in np.flatnonzero(counts):
        drawn, log_proposal = task.laws[number].propose(rng, int(counts[number]), least)
        masks.append(drawn)
        log_rate.append(log_proposal + np.log(n_rays * task.baseline_weights[number]))
        baseline.append(np.full(len(drawn), number))
    nodes, weights = node_rule.on_rays(rng, n_rays)
    density = node_rule.density if isinstance(node_rule, RandomRule) else UNIFORM
    return RayRequest.of(
        np.concatenate(masks),
        np.concatenate(log_rate),
        index,
        nodes,
        weights,
        density=density,
        baseline=np.concatenate(baseline),
    )


def node_density(ledgers: Sequence[Ledger]) -> Density:
    """h(a) proportional to the root mean square gradient at a, with a floor, learnt from the points of the pilot.

    The density is uniform unless the pilot predicts that the learnt one lowers the node variance by a fifth or more.
    Several questions on the same rays share one density, in which each has the same weight.
    """
    square = np.sum([_squares(ledger) for ledger in ledgers], axis=0)
    if not square.sum() > 0:
        return UNIFORM
    ledger = ledgers[0]
    hats = np.maximum(1 - np.abs(_hat_place(ledger.node)[:, None] - np.arange(len(_KNOTS))), 0.0)  # (points, knots)
    # Squares have heavy tails and the pilot is small, so neighbouring knots are averaged, and a fraction of a point at
    # the overall mean is added at every knot.
    seen, total = _blur(hats.sum(0)), _blur(hats.T @ square)
    heights = np.sqrt((total + _PRIOR * square.mean()) / (seen + _PRIOR))
    density = Density(_KNOTS, heights + _FLOOR * np.interp(np.linspace(0, 1, 101), _KNOTS, heights).mean())
    unweighted = 1 / _PILOT_DENSITY(ledger.node)
    uniform_cost, learnt_cost = (unweighted * square).sum(), (unweighted * square / density(ledger.node)).sum()
    return density if learnt_cost < 0.8 * uniform_cost else UNIFORM


def _squares(ledger: Ledger) -> Array:
    """The mean squared gradient over the members of the coalition at every point, scaled to sum one if it can be."""
    size = ledger.sizes[ledger.ray]
    square = ((ledger.gradient * ledger.masks[ledger.ray]) ** 2).sum(1) / size
    return np.asarray(square / (square.sum() or 1.0))


def _hat_place(node: Array) -> Array:
    """Where a node lies between the knots, in units of knots."""
    return np.asarray(np.interp(node, _KNOTS, np.arange(len(_KNOTS))))


def _blur(row: Array) -> Array:
    """Each knot plus half of each of its neighbours."""
    return np.asarray(np.convolve(row, [0.5, 1.0, 0.5], mode="same"))
