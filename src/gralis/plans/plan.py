"""What a plan is told, and what it answers with; no plan ever sees the model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Protocol

import numpy as np

from gralis.arrays import Array
from gralis.errors import BudgetError
from gralis.kernels import Kernel
from gralis.laws import Law
from gralis.ledger import Ledger
from gralis.rays import RayRequest
from gralis.rays.quadrature import NodeRule

#: Evaluate a request and give back its ledgers, one per question: how a plan looks before it decides.
Probe = Callable[[RayRequest], tuple[Ledger, ...]]


@dataclass(frozen=True, eq=False)
class Task:
    """One explanation to be planned, or several on the same rays."""

    kernel: Kernel
    squared_distance: Array  # (n_baselines, n_features)
    baseline_weights: Array
    budget: int | None
    seed: int
    quadrature: str | None
    n_nodes: int | None
    replicates: int | None
    with_values: bool  # v(T) will be known for every coalition
    rays_per_replicate: int | None = None  # small replicates, for a run that may stop between them
    least_replicates: int = 4
    halves: bool = False  # some features jump half-way along the ray
    n_targets: int = 1  # backward passes per point: what a gradient costs of the user's budget

    @cached_property
    def laws(self) -> tuple[Law, ...]:
        """One law per baseline; only plans that draw from the law ask for it."""
        return tuple(self.kernel.bind(row) for row in self.squared_distance)

    @property
    def n_features(self) -> int:
        return int(self.squared_distance.shape[1])

    @property
    def n_baselines(self) -> int:
        return len(self.baseline_weights)

    def rng(self, *path: int) -> np.random.Generator:
        """The generator of one part of the plan: a child seed, so that parts never share draws."""
        return np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=tuple(p + 2 for p in path)))

    def needs(self, least: int, why: str) -> None:
        """Refuse a budget below the least that this plan can work with."""
        if self.budget is not None and self.budget < least:
            several = "" if self.n_targets == 1 else f" and {self.n_targets} targets"
            raise BudgetError(
                f"The budget of {self.budget * self.n_targets} is too small: {why}{several} needs at least "
                f"{least * self.n_targets}."
            )


@dataclass(frozen=True, eq=False)
class Schedule(ABC):
    """A settled plan: replicate r is a pure function of the seed and r, so that any of them can be made again."""

    task: Task
    rule: NodeRule | None  # None: coalition values only
    n_replicates: int
    rays_per_replicate: int
    taught: tuple[Ledger, ...] = ()  # of every question: what the plan looked at before it was settled; it stays

    name: ClassVar[str]
    method: ClassVar[str]  # the estimator of its ledger: "adjusted", "plain", "exact", "ratio", "endpoint" or "shapley"

    @abstractmethod
    def replicate(self, index: int) -> RayRequest:
        """The rows of one replicate."""

    def census(self) -> RayRequest | None:
        """Coalitions that are certain to be looked at, whose rays are known from their values alone."""
        return None

    def more(self, n_replicates: int) -> Schedule:
        """The same plan with this many replicates in all; the first ones stay as they are."""
        return replace(self, n_replicates=n_replicates)

    @property
    def n_nodes(self) -> int:
        return 0 if self.rule is None else self.rule.n_nodes

    @property
    def n_rays(self) -> int:
        return self.n_replicates * self.rays_per_replicate

    @property
    def n_gradients(self) -> int:
        return self.n_rays * self.n_nodes

    def describe(self) -> dict[str, object]:
        """The decisions, in plain values."""
        return {
            "n_replicates": self.n_replicates,
            "rays_per_replicate": self.rays_per_replicate,
            "n_nodes": self.n_nodes,
            "quadrature": None if self.rule is None else self.rule.name,
        }


class Plan(Protocol):
    """Which rays to evaluate, and which estimator will read them."""

    @property
    def name(self) -> str: ...

    def settle(self, task: Task, probe: Probe) -> Schedule: ...
