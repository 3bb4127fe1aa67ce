"""What a plan gets, a task, and what it returns, a schedule. No plan ever sees the model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from gralis.arrays import Array, Masks
from gralis.errors import BudgetError
from gralis.estimators import Estimator
from gralis.kernels import Kernel
from gralis.laws import Law
from gralis.ledger import Ledger
from gralis.rays import RayRequest
from gralis.rays.quadrature import UNIFORM, NodeRule, RandomRule

__all__ = ["Along", "Plan", "PlanningTask", "Probe", "Schedule"]

#: Evaluates a request and returns its ledgers, one per question, so that a plan can look before it decides.
Probe = Callable[[RayRequest], tuple[Ledger, ...]]
#: Takes masks (n_rays, n_features), the number of a baseline and nodes (n_nodes,). Returns F - F(x') at these nodes of
#: every ray, (n_questions, n_rays, n_nodes), by forwards that count in no budget.
Along = Callable[[Masks, int, Array], Array]


@dataclass(frozen=True, eq=False)
class PlanningTask:
    """One explanation to be planned, or several on the same rays.

    Attributes
    ----------
    kernel : Kernel
        The kernel for which the rays are drawn.
    squared_distance : array of shape (n_baselines, n_features)
        The squared distance of every feature from every baseline.
    baseline_weights : array of shape (n_baselines,)
        The weights of the baselines, which sum to one.
    budget : int or None
        The points that may be evaluated; None leaves the number to the plan.
    seed : int
        The seed of every random draw.
    quadrature, n_nodes, replicates : optional
        The user's choices, or None for those of the plan.
    with_values : bool
        Whether v(T) will be known for every coalition.
    rays_per_replicate : int, optional
        The size of a replicate in a run that may stop between replicates.
    least_replicates : int, default=4
        The smallest number of replicates.
    halves : bool, default=False
        Whether some features jump half-way along the ray.
    n_targets : int, default=1
        The backward passes per point, each of which counts in the user's budget.
    along : callable, optional
        Evaluates F on rays by forwards, for a plan that looks where F moves. Without it a plan sees gradients only.
    hurried : bool, default=False
        Whether the time is limited, so that a plan should look at few rays before it decides.
    """

    kernel: Kernel
    squared_distance: Array
    baseline_weights: Array
    budget: int | None
    seed: int
    quadrature: str | None
    n_nodes: int | None
    replicates: int | None
    with_values: bool
    rays_per_replicate: int | None = None
    least_replicates: int = 4
    halves: bool = False
    n_targets: int = 1
    along: Along | None = None
    hurried: bool = False

    @cached_property
    def laws(self) -> tuple[Law, ...]:
        """One law per baseline; it is computed only for plans that draw from the law."""
        return tuple(self.kernel.bind(row) for row in self.squared_distance)

    @property
    def n_features(self) -> int:
        """The number of features."""
        return int(self.squared_distance.shape[1])

    @property
    def n_baselines(self) -> int:
        """The number of baselines."""
        return len(self.baseline_weights)

    @property
    def has_census(self) -> bool:
        """Whether single features are known without error: values are evaluated, and there is one baseline."""
        return self.with_values and self.n_baselines == 1 and self.n_features > 1

    def rng(self, *path: int) -> np.random.Generator:
        """The generator of one part of the plan; every part has its child seed, so that parts never share draws."""
        return np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=tuple(p + 2 for p in path)))

    def needs(self, least: int, why: str) -> None:
        """Raise `BudgetError` if the budget is below the least with which the plan works; `why` begins the reason."""
        if self.budget is not None and self.budget < least:
            several = "" if self.n_targets == 1 else f" and {self.n_targets} targets"
            raise BudgetError(
                f"The budget of {self.budget * self.n_targets} is too small: {why}{several} needs at least "
                f"{least * self.n_targets}."
            )


@dataclass(frozen=True, eq=False)
class Schedule(ABC):
    """A settled plan: replicate r is a pure function of the seed and r, so that each of them can be made again.

    A plan of your own returns a subclass with `name`, `estimator` and `replicate`.

    Attributes
    ----------
    task : PlanningTask
        What was planned.
    rule : Rule, RandomRule or None
        The nodes on every ray; None if only coalition values are evaluated.
    n_replicates : int
        The number of replicates.
    rays_per_replicate : int
        The number of rays of each replicate.
    pilot : tuple of Ledger
        The pilot rays of every question, which the plan evaluated before it was settled. They stay in the ledger.
    name : str
        The name of the plan, as results show it.
    estimator : Estimator
        The estimator that reads the ledger of this plan.
    enumerates, grows, learns_density, remembers : bool
        Whether all coalitions are evaluated, whether more replicates make the values better, whether the nodes follow a
        density that the pilot taught, and whether values are remembered so that no coalition is evaluated twice.
    """

    task: PlanningTask
    rule: NodeRule | None
    n_replicates: int
    rays_per_replicate: int
    pilot: tuple[Ledger, ...] = ()

    name: ClassVar[str]
    estimator: ClassVar[Estimator]
    enumerates: ClassVar[bool] = False  # all coalitions are evaluated, so that the rows are few
    grows: ClassVar[bool] = True  # more replicates make the values better
    learns_density: ClassVar[bool] = False  # the nodes follow a density that the pilot taught
    remembers: ClassVar[bool] = True  # no coalition is evaluated twice

    @abstractmethod
    def replicate(self, index: int) -> RayRequest:
        """The rays of one replicate."""

    def replicates(self, indices: Sequence[int]) -> RayRequest:
        """The rays of several replicates, one after the other."""
        return RayRequest.stack([self.replicate(index) for index in indices])

    def census(self) -> RayRequest | None:
        """Coalitions that are certain to be evaluated, and whose rays follow from their values alone."""
        return None

    def more(self, n_replicates: int) -> Schedule:
        """The same plan with this many replicates in all; the replicates so far stay as they are."""
        return replace(self, n_replicates=n_replicates)

    @property
    def n_nodes(self) -> int:
        """The nodes on every ray."""
        return 0 if self.rule is None else self.rule.n_nodes

    @property
    def n_rays(self) -> int:
        """The rays of all replicates."""
        return self.n_replicates * self.rays_per_replicate

    @property
    def n_gradients(self) -> int:
        """The gradients of all replicates."""
        return self.n_rays * self.n_nodes

    @property
    def quadrature(self) -> str | None:
        """The name of the rule that places the nodes; None if only coalition values are evaluated."""
        return None if self.rule is None else self.rule.name

    def describe(self) -> dict[str, object]:
        """The decisions of the plan in plain values, for the result and for files."""
        decisions: dict[str, object] = {
            "n_replicates": self.n_replicates,
            "rays_per_replicate": self.rays_per_replicate,
            "n_nodes": self.n_nodes,
            "quadrature": self.quadrature,
        }
        if not self.learns_density:
            return decisions
        density = self.rule.density if isinstance(self.rule, RandomRule) else UNIFORM
        return {
            **decisions,
            "density_knots": density.knots.tolist(),
            "density_heights": density.heights.tolist(),
        }


class Plan(ABC):
    """Which rays to evaluate: `settle` looks at one task and decides. Subclass it to write another plan.

    Attributes
    ----------
    name : str
        The name under which results and files know the plan.
    counts_forwards : bool, default=False
        Whether the budget counts forward passes. Such a plan needs one forward per point, whatever the number of
        targets; any other plan needs one backward per point and target.
    may_fold : bool, default=False
        Whether the rows may be summed up while they are evaluated when they are too many to be kept.
    """

    name: str
    counts_forwards: bool = False
    may_fold: bool = False

    @abstractmethod
    def settle(self, task: PlanningTask, probe: Probe) -> Schedule:
        """Decide on the rays of one task.

        Parameters
        ----------
        task : PlanningTask
            The kernel, the distances, the budget and the seed.
        probe : callable
            Evaluates a request at once and returns its ledgers, for a plan that looks before it decides. The points
            count in the budget.

        Returns
        -------
        Schedule
            The settled plan, which writes the request of every replicate.
        """

    def options(self) -> dict[str, object]:
        """The arguments with which the same plan can be made again, in plain values."""
        return plain_fields(self)


def plain_fields(plan: object) -> dict[str, object]:
    """The fields of a dataclass, with arrays as lists; empty for any other object."""
    if not is_dataclass(plan):
        return {}
    values = {field.name: getattr(plan, field.name) for field in fields(plan) if field.name != "name"}
    return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in values.items()}
