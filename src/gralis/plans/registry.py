"""The plans by name: those of gralis, and those that other code registers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gralis.checks import function
from gralis.errors import bad
from gralis.plans.endpoint_plan import endpoint
from gralis.plans.exhaustive_plan import exhaustive
from gralis.plans.independent_plan import independent
from gralis.plans.permutation_plan import permutation
from gralis.plans.plan import Plan, PlanningTask, Probe, Schedule, plain_fields
from gralis.plans.shared_plan import shared
from gralis.plans.values_plan import values
from gralis.registry import Registry

__all__ = ["as_plan", "make", "names", "register"]

_FACTORIES: Registry[Callable[..., Any]] = Registry(
    "plans.register", {f.__name__: f for f in (shared, exhaustive, permutation, independent, endpoint, values)}
)


def register(name: str, factory: Callable[..., Any]) -> None:
    """Let `explain(plan=name)`, the command line and `replay` find a plan of your own.

    Parameters
    ----------
    name : str
        The name of the plan. A plan that was registered under this name before is replaced; the plans of gralis
        cannot be.
    factory : callable
        Makes the plan, an object with `name` and `settle`. It is called without arguments for `explain(plan=name)`,
        and with the plan's options by `replay`. A class will do.

    Examples
    --------
    >>> class Cautious(type(shared())):
    ...     name = "cautious"
    >>> register("cautious", Cautious)
    >>> as_plan("cautious").name, names()[-1]
    ('cautious', 'cautious')
    """
    role = "(or a class) that makes the plan"
    _FACTORIES[name] = function(factory, "factory", "plans.register", role)


def names() -> tuple[str, ...]:
    """The names that `explain(plan=...)` knows, those of registered plans included.

    Returns
    -------
    tuple of str

    Examples
    --------
    >>> names()[:3]
    ('shared', 'exhaustive', 'permutation')
    """
    return tuple(_FACTORIES)


def make(name: str, **options: object) -> Plan:
    """The plan of this name, made with these options.

    Parameters
    ----------
    name : str
        One of `names()`.
    **options : object
        The arguments of the constructor, for example `n_permutations` of `permutation`.

    Returns
    -------
    Plan

    Examples
    --------
    >>> make("permutation", n_permutations=30).n_permutations
    30
    """
    return as_plan(_FACTORIES[name](**options)) if name in _FACTORIES else as_plan(name)


def as_plan(plan: object) -> Plan:
    """The plan of a name, or the plan itself: any object with `name` and `settle`.

    Parameters
    ----------
    plan : str or Plan
        One of `names()`, a plan from `gralis.plans`, or an object of your own with the attribute `name` and the
        method `settle`.

    Returns
    -------
    Plan

    Examples
    --------
    >>> as_plan("shared").name
    'shared'
    """
    if isinstance(plan, str) and plan in _FACTORIES:
        return make(plan)
    if isinstance(plan, Plan):
        return plan
    if not isinstance(plan, type) and isinstance(getattr(plan, "name", None), str) and hasattr(plan, "settle"):
        return _OutsidePlan(plan)
    raise bad("plan", "explain", f"one of {', '.join(map(repr, _FACTORIES))}, or a plan from gralis.plans", repr(plan))


class _OutsidePlan(Plan):
    """A plan that does not derive from `Plan`, with the defaults of `Plan` for the attributes that it lacks."""

    def __init__(self, plan: Any) -> None:
        self._plan, self.name = plan, plan.name
        self.counts_forwards = getattr(plan, "counts_forwards", Plan.counts_forwards)
        self.may_fold = getattr(plan, "may_fold", Plan.may_fold)

    def settle(self, task: PlanningTask, probe: Probe) -> Schedule:
        schedule: Schedule = self._plan.settle(task, probe)
        return schedule

    def options(self) -> dict[str, object]:
        return plain_fields(self._plan)
