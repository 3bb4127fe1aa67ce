"""One giant input on many workers: the rays of one plan are shared out, and the ledgers of the parts are joined.

The driver makes the plan and the estimates; the workers only evaluate rays. Rays are a function of the seed, so the
result is the explanation that one machine gives, up to the rounding of batches of another size.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from typing import Any, TypeVar, Unpack

import torch

from gralis.api.explain import about, begin, complete
from gralis.api.signature import options_of_explain
from gralis.arrays import Array
from gralis.checks import whole
from gralis.evaluation.cost import Cost
from gralis.evaluation.evaluator import Evaluator, GradientRows
from gralis.ledger import Ledger
from gralis.many.ray_engine import ray_workers, worker_errors
from gralis.options import Choices
from gralis.problem import Problem
from gralis.rays import RayRequest
from gralis.results.explanation import Explanation
from gralis.targets import Target

__all__ = ["explain_split"]

Part = TypeVar("Part")

_RAYS = 32  # that a worker is given at a time
_RESTARTS = 3  # of a worker that dies, and as many more trials of its part


@options_of_explain()
def explain_split(
    model: object,
    x: object,
    *,
    workers: int | None = None,
    address: str | None = None,
    target: Target = None,
    **options: Unpack[Choices],
) -> Explanation:
    """`gralis.explain` with its rays spread over Ray workers, for one input whose explanation takes hours.

    Parameters
    ----------
    model : callable, torch.nn.Module or adapted model
        The model, as in `gralis.explain`. It is sent to the workers, so it must be picklable.
    x : array or tensor, or a tuple or dict of them
        The input.
    workers : int, default=None
        The number of workers; None takes one per GPU if there are any, else one per core.
    address : str, default=None
        The address of a Ray cluster; None uses the cluster that this process is connected to, or starts one here.
    target : int, callable or None, default=None
        What is explained, as in `gralis.explain`.

    Returns
    -------
    Explanation
        The explanation that `gralis.explain` gives, up to rounding.
    """
    completed = complete({**options, "target": target}, "explain_split")
    problem = Problem.build(model, x, target=target, **about(completed))
    run = begin([problem], completed)
    n = None if workers is None else whole(workers, "workers", 1, "explain_split")
    shared = (model, x, target, {**completed, "progress": False})
    retries = {"max_restarts": _RESTARTS, "max_task_retries": _RESTARTS}
    with ray_workers(_RayEvaluator, shared, n=n, address=address, **retries) as started:
        pool = started.ray.util.ActorPool(started.actors)
        run.use(_SplitEvaluator([problem], run.options.batch_size, run.options.max_memory, pool))
        with worker_errors(started.ray):
            return run.result()


class _RayEvaluator:
    """Evaluates parts of requests in a worker."""

    def __init__(self, task: tuple[object, object, Target, Mapping[str, Any]]) -> None:
        torch.set_num_threads(1)
        model, x, target, options = task
        problem = Problem.build(model, x, target=target, **about(options))
        size = options["batch_size"]
        self._evaluator = Evaluator([problem], batch_size=None if size == "auto" else size)
        with self._evaluator.session():
            self._evaluator.endpoints()

    def ready(self) -> None:
        """Answers once the model is loaded."""

    def rows(self, request: RayRequest, values: bool | None) -> tuple[Ledger | Array, Cost]:
        """The ledger rows of a request, or the gradients at its points if `values` is None; and what they cost."""
        evaluator = self._evaluator
        evaluator.cost = Cost()
        with evaluator.session():
            (rows,) = evaluator.gradients(request) if values is None else evaluator.evaluate(request, values=values)
        return rows, evaluator.cost


class _SplitEvaluator(Evaluator):
    """An evaluator that sends parts of large requests to workers and evaluates small requests itself."""

    def __init__(self, problems: list[Problem], batch_size: int | None, max_memory: int | None, pool: Any) -> None:
        super().__init__(problems, batch_size=batch_size, max_memory=max_memory)
        self._pool = pool

    def evaluate(self, request: RayRequest, *, values: bool, remember: bool = True) -> tuple[Ledger, ...]:
        if request.n_rays <= _RAYS:
            return super().evaluate(request, values=values, remember=remember)
        parts = self._pool.map(lambda actor, part: actor.rows.remote(part, values), list(_parts(request)))
        return (Ledger.join([self._charged(*part) for part in parts]),)

    def gradient_batches(self, request: RayRequest) -> Iterator[GradientRows]:
        if request.n_rays <= _RAYS:
            yield from super().gradient_batches(request)
            return
        start = 0
        for part in self._pool.map(lambda actor, part: actor.rows.remote(part, None), list(_parts(request))):
            rows = self._charged(*part)
            yield 0, slice(start, start + len(rows)), rows
            start += len(rows)

    def _charged(self, part: Part, cost: Cost) -> Part:
        """The result of a worker, with its cost added to the cost of this evaluator."""
        self.cost = replace(
            self.cost + cost,
            n_batches=self.cost.n_batches + cost.n_batches,
            batch_size=max(self.cost.batch_size, cost.batch_size),
            bytes_per_point=max(self.cost.bytes_per_point, cost.bytes_per_point),
        )
        self._calls.progress(cost.n_gradients, cost.n_forwards)
        return part


def _parts(request: RayRequest) -> Iterator[RayRequest]:
    for start in range(0, request.n_rays, _RAYS):
        rows = slice(start, start + _RAYS)
        yield RayRequest(*(getattr(request, field.name)[rows] for field in fields(RayRequest)))
