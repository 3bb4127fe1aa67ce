"""The one-call door: `explain` checks, plans, evaluates, estimates. `cost` says beforehand what that takes."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import numpy as np
import torch

from gralis.errors import bad
from gralis.evaluate import Evaluator
from gralis.explanation import Explanation
from gralis.kernels import Gaussian, as_kernel
from gralis.ledger import Ledger
from gralis.plans import Plan, Sheet, as_plan, whole
from gralis.problem import Problem
from gralis.quadrature import NAMES as QUADRATURES
from gralis.run import Options, Run
from gralis.targets import Target

Choice = TypeVar("Choice")


def explain(
    model: object,
    x: object,
    *,
    baseline: object = 0.0,
    target: Target = None,
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
) -> Explanation:
    """phi_i = E_q[ray_i(T) | i in T]: why F(x) differs from F(x'), feature by feature, with errors.

    >>> from gralis import Uniform
    >>> f = lambda z: 2 * z[:, 0] + 3 * z[:, 1] + z[:, 2] + z[:, 1] * (4 * z[:, 0] + 2 * z[:, 2]) - z[:, 0] * z[:, 2]
    >>> explanation = explain(f, torch.ones(3, dtype=torch.float64), kernel=Uniform())
    >>> explanation.values.round(12).tolist()
    [2.75, 4.5, 1.25]

    quadrature=None takes the plan's own rule: stratified random nodes, except Gauss-Legendre where all coalitions are
    enumerated and midpoints in Algorithm 1. kernel may be a list: the first is explained, the others stay available
    on a folded ledger. layer (a module of the model, or its name) explains from that layer's output instead of the
    input: features then divide the activation. on_interrupt="return" makes Ctrl-C (and max_seconds always does) give
    what is there so far.
    """
    return _prepare(**locals()).result()


def cost(model: object, x: object, **options: Any) -> CostEstimate:
    """What `explain` with the same arguments would take, from one probe: nothing is explained.

    >>> cost(lambda z: z.sum(1), torch.ones(20), budget=500).n_gradients <= 500
    True
    """
    return _estimate_cost(prepare(model, x, {**options, "progress": False}, "cost"))


def prepare(model: object, x: object, options: Mapping[str, Any], owner: str) -> Run:
    """The run that `explain` would make of these options, checked and not yet begun."""
    defaults: dict[str, Any] = dict(explain.__kwdefaults__ or {})
    unknown = set(options) - set(defaults)
    if unknown:
        raise bad(sorted(unknown)[0], owner, f"one of {', '.join(sorted(defaults))}", "an unknown name")
    return _prepare(model=model, x=x, **{**defaults, **options})


@dataclass(frozen=True)
class CostEstimate:
    """Counts are ceilings (a tolerance may stop earlier); seconds come from a probe of a few points."""

    n_rays: int
    n_gradients: int
    n_forwards: int
    bytes: int
    seconds: float

    def __str__(self) -> str:
        return (
            f"about {self.seconds:.1f} s: {self.n_gradients} gradients on {self.n_rays} rays, "
            f"{self.n_forwards} forwards, {self.bytes / 2**20:.0f} MiB"
        )


def _prepare(
    *,
    model: object,
    x: object,
    baseline: object,
    target: Target,
    features: object,
    kernel: object,
    plan: object,
    budget: int | None,
    tolerance: float | None,
    level: float,
    quadrature: str | None,
    n_nodes: int | None,
    replicates: int | None,
    coalition_values: bool,
    layer: object,
    atol: float,
    max_seconds: float | None,
    seed: int | None,
    batch_size: int | Literal["auto"],
    max_memory: int | None,
    device: torch.device | str | None,
    dtype: torch.dtype | None,
    progress: bool | Callable[[int, int], None] | None,
    on_interrupt: Literal["raise", "return"],
) -> Run:
    """Every option checked, and the problem built."""
    options = Options(
        budget=None if budget is None else whole(budget, "budget", 1),
        tolerance=None if tolerance is None else _number(tolerance, "tolerance", 0.0),
        level=_number(level, "level", 0.0, 1.0),
        quadrature=_one_of(quadrature, "quadrature", (None, *QUADRATURES)),
        n_nodes=None if n_nodes is None else whole(n_nodes, "n_nodes", 1),
        replicates=None if replicates is None else whole(replicates, "replicates", 2),
        coalition_values=bool(_one_of(coalition_values, "coalition_values", (True, False))),
        atol=_number(atol, "atol", 0.0, or_equal=True),
        max_seconds=None if max_seconds is None else _number(max_seconds, "max_seconds", 0.0),
        seed=_seed(seed),
        batch_size=None if batch_size == "auto" else whole(batch_size, "batch_size", 1),
        max_memory=None if max_memory is None else whole(max_memory, "max_memory", 1),
        on_interrupt=_one_of(on_interrupt, "on_interrupt", ("raise", "return")),
    )
    if progress is not None and not isinstance(progress, bool) and not callable(progress):
        raise bad("progress", "explain", "None, True, False or a function of (done, total)", repr(progress))
    kernels = [as_kernel(k) for k in (kernel if isinstance(kernel, list | tuple) else [kernel])]
    if not kernels:
        raise bad("kernel", "explain", "a kernel, or a list of at least one", "an empty list")
    problem = Problem.build(
        model, x, baseline=baseline, target=target, features=features, layer=layer, device=device, dtype=dtype
    )
    return Run(problem, kernels, as_plan(plan), options, progress)


def _estimate_cost(run: Run) -> CostEstimate:
    n, evaluator = run.problem.n_features, Evaluator(run.problem, batch_size=run.options.batch_size)

    def nothing(sheet: Sheet) -> Ledger:
        return Ledger.record(sheet, np.zeros((sheet.n_points, n)), np.full(sheet.n_rays, np.nan))

    schedule = run.plan.settle(run.task, nothing)
    taught = sum(part.n_points for part in schedule.taught)
    n_rays = schedule.n_rays + sum(part.n_rays for part in schedule.taught)
    values = run.task.with_values or schedule.rule is None
    n_forwards = 1 + run.problem.baselines.n_baselines + (n_rays + n if values else 0)
    n_gradients = schedule.n_gradients + taught
    rng = np.random.default_rng(0)
    probe = Sheet.of(rng.random((16, n)) < 0.5, np.zeros(16), 0, rng.random((16, 1)), np.ones((16, 1)))
    with evaluator.session():
        began = time.perf_counter()
        evaluator.endpoints()
        forward = (time.perf_counter() - began) / (1 + run.problem.baselines.n_baselines)
        gradient = 0.0
        if n_gradients:
            began = time.perf_counter()
            evaluator.stream(probe, lambda part, rows: None)
            gradient = (time.perf_counter() - began) / probe.n_points
    kept = 0 if run.folded else 9 * n * n_gradients
    memory = kept + evaluator.cost.bytes_per_point * max(evaluator.cost.batch_size, 1)
    return CostEstimate(n_rays, n_gradients, n_forwards, memory, n_gradients * gradient + n_forwards * forward)


def _one_of(value: Choice, name: str, allowed: tuple[Choice, ...]) -> Choice:
    if not isinstance(value, str | bool | np.bool_ | None) or value not in allowed:
        raise bad(name, "explain", f"one of {', '.join(map(repr, allowed))}", repr(value))
    return value


def _number(value: object, name: str, above: float, below: float = np.inf, *, or_equal: bool = False) -> float:
    number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if not number or not (above < value < below or (or_equal and value == above)):  # type: ignore[operator]
        at_least = f"a number {'>=' if or_equal else '>'} {above:g}"
        raise bad(name, "explain", at_least if np.isinf(below) else f"{at_least} and < {below:g}", repr(value))
    return float(value)  # type: ignore[arg-type]


def _seed(seed: int | None) -> int:
    """None: a seed of its own, which is stored like any other."""
    if seed is None:
        return int(np.random.SeedSequence().generate_state(1)[0])
    return whole(seed, "seed", 0)
