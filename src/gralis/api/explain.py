"""The one-call door: `explain` checks, plans, evaluates, estimates. `cost` says beforehand what that takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Unpack, overload

import torch

from gralis.api.cost import CostEstimate, estimate_cost
from gralis.errors import bad
from gralis.kernels import Gaussian, as_kernel
from gralis.options import Choices, Options
from gralis.plans import Plan, as_plan
from gralis.problem import Problem
from gralis.results.explanation import Explanation
from gralis.results.explanations import Explanations
from gralis.run import Run
from gralis.targets import Target, Targets, describe


@overload
def explain(model: object, x: object, *, target: Targets, **options: Unpack[Choices]) -> Explanations: ...
@overload
def explain(model: object, x: object, *, target: Target = None, **options: Unpack[Choices]) -> Explanation: ...
def explain(
    model: object,
    x: object,
    *,
    baseline: object = 0.0,
    target: Target | Targets = None,
    features: object = None,
    kernel: object = Gaussian(0.75),
    plan: str | Plan = "shared",
    budget: int | None = 1024,
    tolerance: float | None = None,
    level: float = 0.95,
    quadrature: str | None = None,
    n_nodes: int | None = None,
    replicates: int | None = None,
    coalition_values: bool = True,
    layer: object = None,
    atol: float = 0.0,
    max_seconds: float | None = None,
    seed: int | None = 0,
    batch_size: int | Literal["auto"] = "auto",
    max_memory: int | None = None,
    device: torch.device | str | None = None,
    dtype: torch.dtype | None = None,
    progress: bool | Callable[[int, int], None] | None = None,
    on_interrupt: Literal["raise", "return"] = "raise",
) -> Explanation | Explanations:
    """phi_i = E_q[ray_i(T) | i in T]: why F(x) differs from F(x'), feature by feature, with errors.

    >>> from gralis import Uniform
    >>> f = lambda z: 2 * z[:, 0] + 3 * z[:, 1] + z[:, 2] + z[:, 1] * (4 * z[:, 0] + 2 * z[:, 2]) - z[:, 0] * z[:, 2]
    >>> explanation = explain(f, torch.ones(3, dtype=torch.float64), kernel=Uniform())
    >>> explanation.values.round(12).tolist()
    [2.75, 4.5, 1.25]

    quadrature=None takes the plan's own rule: stratified random nodes, except Gauss-Legendre where all coalitions are
    enumerated and midpoints in Algorithm 1. kernel may be a list: the first is explained, the others stay available
    on a folded ledger. target may be a list, or "all": one forward per point serves every target, each has a backward
    and a result of its own, and the budget counts every backward. layer (a module of the model, or its name) explains
    from that layer's output instead of the input: features then divide the activation. on_interrupt="return" makes
    Ctrl-C (and max_seconds always does) give what is there so far.
    """
    run = prepare(**_apart(locals()), owner="explain")
    if isinstance(target, list | str):
        return Explanations(run.results(), tuple(map(describe, run.problem.targets)))
    return run.result()


def cost(model: object, x: object, *, target: Target | Targets = None, **options: Unpack[Choices]) -> CostEstimate:
    """What `explain` with the same arguments would take, from one probe: nothing is explained.

    >>> cost(lambda z: z.sum(1), torch.ones(20), budget=500).n_gradients <= 500
    True
    """
    return estimate_cost(prepare(model, x, {"target": target, **options, "progress": False}, "cost"))


def _apart(given: dict[str, Any]) -> dict[str, Any]:
    """The arguments of `explain`: model, x, and the options."""
    return {"model": given.pop("model"), "x": given.pop("x"), "options": given}


def prepare(model: object, x: object, options: Mapping[str, Any], owner: str) -> Run:
    """The run that `explain` would make of these options, checked and not yet begun."""
    given = complete(options, owner)
    return begin([Problem.build(model, x, target=given["target"], **about(given))], given)


def complete(options: Mapping[str, Any], owner: str) -> dict[str, Any]:
    """The options with the defaults of `explain`; unknown names are refused."""
    defaults: dict[str, Any] = dict(explain.__kwdefaults__ or {})
    unknown = set(options) - set(defaults)
    if unknown:
        raise bad(sorted(unknown)[0], owner, f"one of {', '.join(sorted(defaults))}", "an unknown name")
    return {**defaults, **options}


def about(given: Mapping[str, Any]) -> dict[str, Any]:
    """The options that belong to the problem."""
    return {name: given[name] for name in ("baseline", "features", "layer", "device", "dtype")}


def begin(problems: Sequence[Problem], given: Mapping[str, Any]) -> Run:
    """A run on these problems, every other option checked."""
    kernel = given["kernel"]
    kernels = [as_kernel(k) for k in (kernel if isinstance(kernel, list | tuple) else [kernel])]
    if not kernels:
        raise bad("kernel", "explain", "a kernel, or a list of at least one", "an empty list")
    return Run(problems, kernels, as_plan(given["plan"]), Options.checked(given), given["progress"])
