"""The default plan: every gradient serves every member of its coalition, and replicates say how far off we may be.

1. census: v({i}) of every feature, one forward each; by Lemma A that *is* the ray of {i}, so single features are done;
2. pilot: a few rays show where along a ray the gradient lives; if it is uneven, nodes are drawn from that density;
3. replicates: coalitions of two and more from the law's own proposal, one random node on each, stratified over them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gralis.arrays import Array
from gralis.laws.law import systematic_counts
from gralis.ledger import Ledger
from gralis.plans.exhaustive import Exhaustive
from gralis.plans.plan import Probe, Schedule, Task
from gralis.rays import CENSUS, PILOT, RayRequest
from gralis.rays.quadrature import UNIFORM, Density, NodeRule, RandomRule, rule

_N_NODES = 1  # a gradient on a fresh coalition tells more than a second one on the same ray
_KNOTS = np.array([0.0, 0.01, 0.025, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 1.0])
_PILOT_DENSITY = Density(_KNOTS, 1 / (_KNOTS + 0.15))
_PRIOR, _FLOOR = 0.3, 0.15  # of the learnt density: points at the overall mean, and share of the mean height
_ENOUGH = 128  # gradients: less is too little for any number of features beyond a few dozen
_ENOUGH_NODES = 8  # per ray, for enumerating all coalitions instead of sampling them


@dataclass(frozen=True)
class Shared:
    """THEORY's shared design; becomes exhaustive by itself when the budget allows."""

    name: str = "shared"

    def settle(self, task: Task, probe: Probe) -> Schedule:
        n, budget = task.n_features, task.budget
        n_coalitions = 2**n - 1 if n <= 30 else np.inf
        if n == 1 or budget is None or budget >= n_coalitions * task.n_baselines * (task.n_nodes or _ENOUGH_NODES):
            return Exhaustive().settle(task, probe)
        random = task.quadrature in (None, "random")
        n_nodes = task.n_nodes or (_N_NODES if random else 10)
        beside_pilot = max(_least(task), task.least_replicates * n_nodes)
        least = beside_pilot
        while (
            random and least < beside_pilot + _pilot_rays(least, n_nodes) * n_nodes
        ):  # the pilot grows with the budget
            least += 1
        task.needs(least, f"plan='shared' with {n} features and {n_nodes} nodes per ray")
        pilot = _pilot_rays(budget, n_nodes) if random else 0
        n_rays = budget // n_nodes - pilot
        replicates = task.replicates or self._replicates(task, n_rays)
        task.needs((pilot + replicates) * n_nodes, f"plan='shared' with {replicates} replicates")
        looked = probe(draw_rays(task, RandomRule(n_nodes, _PILOT_DENSITY), pilot, PILOT)) if pilot else ()
        density = node_density(looked) if looked else UNIFORM
        node_rule = rule(task.quadrature or "random", n_nodes, density, halves=task.halves)
        taught = tuple(ledger.on_scale(density) for ledger in looked)
        return SharedSchedule(task, node_rule, replicates, n_rays // replicates, taught)

    @staticmethod
    def _replicates(task: Task, n_rays: int) -> int:
        """Twelve for a run of fixed length; as many small ones as there is budget for where it may stop between."""
        if task.rays_per_replicate:
            return max(task.least_replicates, n_rays // task.rays_per_replicate)
        return int(np.clip(n_rays // 12, task.least_replicates, 12))


def _least(task: Task) -> int:
    """Gradients such that every feature lies on a few rays: four per feature, fewer if coalitions are large."""
    n = task.n_features
    if 4 * n <= _ENOUGH:
        return 4 * n
    mean_size = min(float(law.size_moments()[1].min()) * n for law in task.laws)
    return int(min(4 * n, max(_ENOUGH, np.ceil(16 * n / mean_size))))


def _pilot_rays(budget: int, n_nodes: int) -> int:
    """Rays of the pilot: a tenth of the budget, between 24 and 96 gradients, at least one ray."""
    return max(1, int(np.clip(budget // 10, 24, 96)) // n_nodes)


class SharedSchedule(Schedule):
    """The settled shared plan."""

    name = "shared"
    method = "adjusted"

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


def has_census(task: Task) -> bool:
    """Whether single features are known without error: values are evaluated, and there is one baseline."""
    return task.with_values and task.n_baselines == 1 and task.n_features > 1


def draw_rays(task: Task, node_rule: NodeRule, n_rays: int, index: int) -> RayRequest:
    """n_rays rays of one replicate, dealt over the baselines by their weights."""
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
    """h(a) proportional to the root mean square gradient at a, from the pilot's points, with a floor; else uniform.

    A learnt density is used only if the pilot says that it lowers the node variance by a fifth or more. Several
    questions on the same rays share one density, each counting alike.
    """
    square = np.sum([_squares(ledger) for ledger in ledgers], axis=0)
    if not square.sum() > 0:
        return UNIFORM
    ledger = ledgers[0]
    hats = np.maximum(1 - np.abs(_hat_place(ledger.node)[:, None] - np.arange(len(_KNOTS))), 0.0)  # (points, knots)
    # Squares have heavy tails and the pilot is small: neighbours are averaged, and a fraction of a point at the
    # overall mean stands at every knot.
    seen, total = _blur(hats.sum(0)), _blur(hats.T @ square)
    heights = np.sqrt((total + _PRIOR * square.mean()) / (seen + _PRIOR))
    density = Density(_KNOTS, heights + _FLOOR * np.interp(np.linspace(0, 1, 101), _KNOTS, heights).mean())
    unweighted = 1 / _PILOT_DENSITY(ledger.node)
    uniform_cost, learnt_cost = (unweighted * square).sum(), (unweighted * square / density(ledger.node)).sum()
    return density if learnt_cost < 0.8 * uniform_cost else UNIFORM


def _squares(ledger: Ledger) -> Array:
    """The squared gradient at every point, a ray of size t averaged over t; of sum one, or nothing at all."""
    size = ledger.sizes[ledger.ray]
    square = ((ledger.gradient * ledger.masks[ledger.ray]) ** 2).sum(1) / size
    return np.asarray(square / (square.sum() or 1.0))


def _hat_place(node: Array) -> Array:
    """Where a node lies between the knots, in units of knots."""
    return np.asarray(np.interp(node, _KNOTS, np.arange(len(_KNOTS))))


def _blur(row: Array) -> Array:
    """Each knot with half of its neighbours."""
    return np.asarray(np.convolve(row, [0.5, 1.0, 0.5], mode="same"))
