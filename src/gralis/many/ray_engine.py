"""The Ray engine: workers that hold the model once and take the next block whenever they are free.

Blocks are the same as on one machine, so any number of workers gives the same results up to rounding. The results come
back to the driver, which is the only process that writes. A worker that dies is replaced, and its blocks are explained
again. A block over which several workers died is recorded as failed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import torch

from gralis.errors import GralisError
from gralis.many.block_worker import BlockResult, ManyOptions, explain_block, give_up, reason_of
from gralis.many.blocks import ItemBlock
from gralis.many.items import PendingItem, item_of, refuse

__all__ = ["RayEngine", "RayWorkers", "ray_workers", "worker_errors"]

_AHEAD = 2  # blocks per worker: one in work and one that waits, so that the worker is never idle
_DEATHS = 3  # after so many workers have died over the same block, it is given up


@dataclass(frozen=True)
class RayWorkers:
    """Ray, its workers, and a function that starts one more."""

    ray: Any
    actors: list[Any]
    start: Callable[[], Any]


@contextmanager
def ray_workers(
    kind: type, shared: object, *arguments: object, n: int | None, address: str | None, **restarts: int
) -> Iterator[RayWorkers]:
    """Start workers that all hold the shared object, and end them afterwards.

    `n` is their number; None takes one per GPU if there are any, else one per core.
    """
    with _cluster(address) as ray:
        resources = ray.cluster_resources()
        gpus, cores = int(resources.get("GPU", 0)), int(resources.get("CPU", 1))
        n = n or gpus or max(cores, 1)
        share = {"num_cpus": min(1.0, cores / n), "num_gpus": min(1.0, gpus / n)}  # so that all of them fit at once
        remote_kind = ray.remote(**share, **restarts)(kind)
        try:
            reference = ray.put(shared)
        except (ray.exceptions.ObjectStoreFullError, ray.exceptions.OutOfDiskError) as error:
            raise GralisError(
                f"The model does not fit into Ray's object store ({_why(error)}); give the cluster a larger one."
            ) from error
        except Exception as error:  # pickling can raise anything
            raise GralisError(f"The workers cannot receive the model: it cannot be pickled ({_why(error)}).") from error
        actors: list[Any] = []

        def start() -> Any:
            # A replacement asks for no core: if a whole node is lost, no core may be left, and it would wait for ever.
            chosen = remote_kind if len(actors) < n else remote_kind.options(num_cpus=0)
            actors.append(chosen.remote(reference, *arguments))
            return actors[-1]

        try:
            ready = [start().ready.remote() for _ in range(n)]
            try:
                ray.get(ready)
            except ray.exceptions.RayError as error:
                raise GralisError(
                    f"The workers cannot load the model ({_why(error)}); its code must be importable where they run."
                ) from error
            yield RayWorkers(ray, actors, start)
        finally:
            for actor in actors:
                ray.kill(actor)


@contextmanager
def _cluster(address: str | None) -> Iterator[Any]:
    """Ray, running: the cluster that this process is connected to, the one at the address, or one on this machine."""
    try:
        import ray
    except ImportError as error:
        raise GralisError("engine='ray' needs Ray: pip install \"gralis[ray]\".") from error
    ours = not ray.is_initialized()
    if ours:
        try:
            ray.init(
                address=address,
                include_dashboard=None if address else False,
                log_to_driver=False,
                logging_level="ERROR",
            )
        except Exception as error:  # Ray raises a plain one if a node takes too long to start
            ray.shutdown()  # what it had started
            raise GralisError(f"No Ray cluster could be reached or started ({error}).") from error
    try:
        yield ray
    finally:
        if ours:
            ray.shutdown()


@contextmanager
def worker_errors(ray: Any) -> Iterator[None]:
    """Turn what went wrong with a worker into one sentence."""
    try:
        yield
    except ray.exceptions.RayTaskError as error:
        raise GralisError(f"A worker failed: {reason_of(error.cause)}") from error
    except ray.exceptions.RayError as error:
        raise GralisError(f"A worker died, or cannot be reached any more ({_why(error)}).") from error


class BlockWorker:
    """A process with the model in it, on a GPU if Ray gave it one."""

    def __init__(self, model: object, options: ManyOptions) -> None:
        torch.set_num_threads(1)  # there is a worker per core, so more threads would only wait for each other
        if torch.cuda.is_available() and os.environ.get("CUDA_VISIBLE_DEVICES"):
            if isinstance(model, torch.nn.Module):
                model = model.to("cuda")
            options = replace(options, explain={**options.explain, "device": "cuda"})
        self._model, self._options = model, options

    def ready(self) -> None:
        """Answers once the model is loaded."""

    def explain(self, block: ItemBlock) -> BlockResult:
        """Explain the inputs of a block."""
        return explain_block(self._model, block, self._options)


@dataclass(eq=False)
class _Assigned:
    """A worker, and the blocks that it was given, in order."""

    actor: Any
    blocks: dict[Any, ItemBlock] = field(default_factory=dict)  # by Ray's reference to the result


@dataclass(frozen=True)
class RayEngine:
    """How many workers there are (None: one per GPU if there are any, else one per core), and where."""

    workers: int | None
    address: str | None

    def run(
        self, model: object, options: ManyOptions, blocks: Iterable[ItemBlock], keep: Callable[[BlockResult], None]
    ) -> None:
        """Explain every block and pass the results to `keep` in the order in which they are ready."""
        with ray_workers(BlockWorker, model, options, n=self.workers, address=self.address, max_restarts=0) as workers:
            assigned = [_Assigned(actor) for actor in workers.actors]
            _Driver(workers, assigned, options, keep).work(iter(blocks))


@dataclass(eq=False)
class _Driver:
    """Sends blocks to workers, receives results, and replaces workers that died."""

    workers: RayWorkers
    assigned: list[_Assigned]
    options: ManyOptions
    keep: Callable[[BlockResult], None]
    deaths: dict[int, int] = field(default_factory=dict)  # of workers, by block

    def work(self, blocks: Iterator[ItemBlock]) -> None:
        """Go on until every block is done."""
        again: list[ItemBlock] = []
        while True:
            for worker in sorted(self.assigned, key=lambda worker: len(worker.blocks)):
                while len(worker.blocks) < _AHEAD:
                    block = again.pop() if again else next(blocks, None)
                    if block is None:
                        break
                    block = _portable(block) if block.number not in self.deaths else block
                    worker.blocks[worker.actor.explain.remote(block)] = block
            waiting = [reference for worker in self.assigned for reference in worker.blocks]
            if not waiting:
                return
            ready, _ = self.workers.ray.wait(waiting, num_returns=1)
            again += self._receive(ready[0])

    def _receive(self, reference: Any) -> list[ItemBlock]:
        """Keep a result. If the worker died instead, return the blocks that must be explained again."""
        worker = next(worker for worker in self.assigned if reference in worker.blocks)
        ray = self.workers.ray
        try:
            with worker_errors(ray):
                result = ray.get(reference)
        except GralisError as sentence:
            error = sentence.__cause__
            if not isinstance(error, (ray.exceptions.RayActorError, ray.exceptions.ObjectLostError)):
                raise
            lost = list(worker.blocks.values())
            first = lost[0]  # the worker died while it explained this one
            worker.actor, worker.blocks = self.workers.start(), {}
            self.deaths[first.number] = self.deaths.get(first.number, 0) + 1
            if self.deaths[first.number] >= _DEATHS:
                self.keep(give_up(first, self.options, f"{_DEATHS} workers died over its block ({_why(error)})"))
                return lost[1:]
            return lost
        del worker.blocks[reference]
        self.keep(result)
        return []


def _portable(block: ItemBlock) -> ItemBlock:
    """The block as it can be sent: an input that only the driver can make is made here."""
    return ItemBlock(block.number, tuple(item if item.portable else _made(item) for item in block.items))


def _made(pending: PendingItem) -> PendingItem:
    try:
        item = pending.make()
    except Exception as error:
        return replace(pending, make=partial(refuse, GralisError(reason_of(error))), portable=True, digest=None)
    return replace(pending, make=partial(item_of, item.name, item), portable=True, digest=None)


def _why(error: BaseException) -> str:
    """The end of Ray's text, where the error itself is."""
    return " ".join(str(error).split())[-300:]
