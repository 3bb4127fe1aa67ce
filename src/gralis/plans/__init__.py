"""Plans: which coalitions are evaluated, and at which nodes. A plan never sees the model.

shared       every gradient serves all members of its coalition; the default
exhaustive   all 2^n - 1 rays
permutation  Algorithm 1 of the paper to the letter
independent  independent draws of q, for which finite-sample bounds are proved
endpoint     the paper's zeroth-order variant, forward passes only
values       Shapley values from pairs of complementary coalitions, forward passes only

plan           the interface: a plan gets a task, settles it, and returns a schedule of replicates
sampled_rays   rays drawn from the law, which `shared` and `exhaustive` use; node_density: where their nodes lie
enumeration    all coalitions, for the plans that need forward passes only
registry       the plans by name

A plan of your own is any object with `name` and `settle`; `register` gives it a name that `explain` knows.
"""

from gralis.plans.endpoint_plan import endpoint
from gralis.plans.exhaustive_plan import exhaustive
from gralis.plans.independent_plan import independent
from gralis.plans.permutation_plan import permutation
from gralis.plans.plan import Plan, PlanningTask, Probe, Schedule
from gralis.plans.registry import as_plan, names, register
from gralis.plans.shared_plan import shared
from gralis.plans.values_plan import values
from gralis.rays import CENSUS, PILOT, RayRequest

Task = PlanningTask  # its name in earlier versions

__all__ = [
    "CENSUS",
    "PILOT",
    "Plan",
    "PlanningTask",
    "Probe",
    "RayRequest",
    "Schedule",
    "Task",
    "as_plan",
    "endpoint",
    "exhaustive",
    "independent",
    "names",
    "permutation",
    "register",
    "shared",
    "values",
]
