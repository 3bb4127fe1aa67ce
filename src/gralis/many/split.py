"""One giant input over many workers: the rays of one plan are shared out, and their ledgers joined in order.

The plan is settled by the driver, which also estimates; workers evaluate rays and nothing else. Rays are a function of
the seed, so this is the explanation that one machine finds, up to the rounding of batches of another size.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from typing import Any, TypeVar, Unpack

from gralis.api.explain import about, begin, complete
from gralis.arrays import Array
from gralis.checks import whole
from gralis.evaluation.cost import Cost
from gralis.evaluation.evaluator import Consumer, Evaluator
from gralis.ledger import Ledger
from gralis.many.ray_engine import cluster, given_to_workers, greet, workers_told
from gralis.options import Choices
from gralis.problem import Problem
from gralis.rays import RayRequest
from gralis.results.explanation import Explanation
from gralis.targets import Target

Answer = TypeVar("Answer")

_RAYS = 32  # a worker is given at a time


def explain_split(
    model: object,
    x: object,
    *,
    workers: int | None = None,
    address: str | None = None,
    target: Target = None,
    **options: Unpack[Choices],
) -> Explanation:
    """`gralis.explain` with its rays spread over Ray workers: for one input whose explanation takes hours."""
    given = complete({**options, "target": target}, "explain_split")
    problem = Problem.build(model, x, target=target, **about(given))
    run = begin([problem], given)
    with cluster(address) as ray:
        resources = ray.cluster_resources()
        gpus, cores = int(resources.get("GPU", 0)), int(resources.get("CPU", 1))
        n = whole(workers, "workers", 1) if workers is not None else gpus or max(cores, 1)
        share = {"num_cpus": min(1.0, cores / n), "num_gpus": min(1.0, gpus / n)}
        kind = ray.remote(**share, max_restarts=3, max_task_retries=3)(_Worker)
        shared = given_to_workers(ray, (model, x, target, {**given, "progress": False}))
        actors = [kind.remote(shared) for _ in range(n)]
        greet(ray, actors)
        run.use(_Split([problem], run.options.batch_size, run.options.max_memory, ray.util.ActorPool(actors)))
        try:
            with workers_told(ray):
                return run.result()
        finally:
            for actor in actors:
                ray.kill(actor)


class _Worker:
    """Evaluates parts of requests."""

    def __init__(self, task: tuple[object, object, Target, Mapping[str, Any]]) -> None:
        import torch

        torch.set_num_threads(1)
        model, x, target, given = task
        problem = Problem.build(model, x, target=target, **about(given))
        size = given["batch_size"]
        self._evaluator = Evaluator([problem], batch_size=None if size == "auto" else size)
        with self._evaluator.session():
            self._evaluator.endpoints()

    def ready(self) -> None:
        """Answers once the model is there."""

    def ledger(self, request: RayRequest, values: bool) -> tuple[Ledger, Cost]:
        self._evaluator.cost = Cost()
        with self._evaluator.session():
            (found,) = self._evaluator.evaluate(request, values=values)
        return found, self._evaluator.cost

    def gradient(self, request: RayRequest) -> tuple[Array, Cost]:
        self._evaluator.cost = Cost()
        with self._evaluator.session():
            (found,) = self._evaluator.gradients(request)
        return found, self._evaluator.cost


class _Split(Evaluator):
    """An evaluator that has others evaluate; what is too small to share it does itself."""

    def __init__(self, problems: list[Problem], batch_size: int | None, max_memory: int | None, pool: Any) -> None:
        super().__init__(problems, batch_size=batch_size, max_memory=max_memory)
        self._pool = pool

    def evaluate(self, request: RayRequest, *, values: bool) -> tuple[Ledger, ...]:
        if request.n_rays <= _RAYS:
            return super().evaluate(request, values=values)
        found = self._pool.map(lambda actor, part: actor.ledger.remote(part, values), list(_parts(request)))
        return (Ledger.join([self._charged(*answer) for answer in found]),)

    def stream(self, request: RayRequest, consume: Consumer) -> None:
        if request.n_rays <= _RAYS:
            return super().stream(request, consume)
        start = 0
        for answer in self._pool.map(lambda actor, part: actor.gradient.remote(part), list(_parts(request))):
            rows = self._charged(*answer)
            consume(0, slice(start, start + len(rows)), rows)
            start += len(rows)
        return None

    def _charged(self, answer: Answer, cost: Cost) -> Answer:
        """The answer, its cost added to ours."""
        own = self.cost
        self.cost = replace(
            own,
            n_gradients=own.n_gradients + cost.n_gradients,
            n_forwards=own.n_forwards + cost.n_forwards,
            n_rays=own.n_rays + cost.n_rays,
            n_batches=own.n_batches + cost.n_batches,
            batch_size=max(own.batch_size, cost.batch_size),
            bytes_per_point=max(own.bytes_per_point, cost.bytes_per_point),
        )
        self._engine.progress(cost.n_gradients)
        return answer


def _parts(request: RayRequest) -> Iterator[RayRequest]:
    for start in range(0, request.n_rays, _RAYS):
        rows = slice(start, start + _RAYS)
        yield RayRequest(*(getattr(request, field.name)[rows] for field in fields(RayRequest)))
