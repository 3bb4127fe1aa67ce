"""The Ray engine: actors that hold the model once, and take the next block whenever they are free.

Blocks are the same as on one machine, so any number of workers finds the same results up to float rounding. Results
come back to the driver, the only one that writes. A worker that dies is replaced and its blocks are done again; a block
that kills one worker after the other is put down as failed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from gralis.errors import GralisError
from gralis.many.blocks import Block
from gralis.many.items import Given, Item
from gralis.many.work import Done, Question, explain_block, give_up, reason

_AHEAD = 2  # blocks with a worker: one in work, one that waits, so that it never idles
_DEATHS = 3  # of workers with the same block in hand


def import_ray() -> Any:
    """Ray, or the sentence that says how to get it."""
    try:
        import ray
    except ImportError as error:
        raise GralisError("engine='ray' needs Ray: pip install \"gralis[ray]\".") from error
    return ray


@contextmanager
def cluster(address: str | None) -> Iterator[Any]:
    """Ray, running: the cluster this process is connected to, the one at the address, or one on this machine."""
    ray = import_ray()
    ours = not ray.is_initialized()
    if ours:
        try:
            ray.init(
                address=address,
                include_dashboard=None if address else False,
                log_to_driver=False,
                logging_level="ERROR",
            )
        except (ConnectionError, OSError, RuntimeError, ValueError) as error:
            raise GralisError(f"No Ray cluster could be reached or started ({error}).") from error
    try:
        yield ray
    finally:
        if ours:
            ray.shutdown()


def given_to_workers(ray: Any, task: object) -> Any:
    """The task as Ray hands it out, once for all workers."""
    try:
        return ray.put(task)
    except Exception as error:  # pickling can raise anything
        raise GralisError(f"The workers cannot be given the model: it cannot be pickled ({_why(error)}).") from error


def greet(ray: Any, actors: Sequence[Any]) -> None:
    """Wait until every worker has the model."""
    try:
        ray.get([actor.ready.remote() for actor in actors])
    except ray.exceptions.RayError as error:
        raise GralisError(
            f"The workers cannot load the model ({_why(error)}); its code must be importable where they run."
        ) from error


@contextmanager
def workers_told(ray: Any) -> Iterator[None]:
    """What went wrong with a worker as one sentence."""
    try:
        yield
    except ray.exceptions.RayTaskError as error:
        raise GralisError(f"A worker failed: {reason(error.cause)}") from error
    except ray.exceptions.RayError as error:
        raise GralisError(f"A worker died, or cannot be reached any more ({_why(error)}).") from error


class Worker:
    """One process of its own with the model in it; on a GPU if Ray gave it one."""

    def __init__(self, model: object, question: Question) -> None:
        import torch

        torch.set_num_threads(1)  # a worker per core: more threads would only wait for each other
        if torch.cuda.is_available() and os.environ.get("CUDA_VISIBLE_DEVICES"):
            if isinstance(model, torch.nn.Module):
                model = model.to("cuda")
            question = replace(question, given={**question.given, "device": "cuda"})
        self._model, self._question = model, question

    def ready(self) -> None:
        """Answers once the model is there."""

    def explain(self, block: Block) -> Done:
        return explain_block(self._model, block, self._question)


@dataclass(eq=False)
class Hand:
    """A worker as the driver sees it, and the blocks it has in hand, in the order they were given."""

    actor: Any
    blocks: dict[Any, Block] = field(default_factory=dict)  # by Ray's reference to the result


@dataclass(frozen=True)
class RayEngine:
    """How many workers (None: one per GPU if there are any, else one per core), and where."""

    workers: int | None
    address: str | None

    def run(self, model: object, question: Question, todo: Iterable[Block], keep: Callable[[Done], None]) -> None:
        """Explain every block and hand it to `keep`, in whatever order they are done."""
        with cluster(self.address) as ray:
            resources = ray.cluster_resources()
            gpus, cores = int(resources.get("GPU", 0)), int(resources.get("CPU", 1))
            n = self.workers or gpus or max(cores, 1)
            share = {"num_cpus": min(1.0, cores / n), "num_gpus": min(1.0, gpus / n)}  # all of them fit at once
            kind = ray.remote(**share, max_restarts=0)(Worker)
            shared = given_to_workers(ray, model)
            hands = [Hand(kind.remote(shared, question)) for _ in range(n)]
            try:
                greet(ray, [hand.actor for hand in hands])
                _Shift(ray, lambda: kind.remote(shared, question), hands, question, keep).work(iter(todo))
            finally:
                for hand in hands:
                    ray.kill(hand.actor)


@dataclass(eq=False)
class _Shift:
    """The driver's loop: blocks out, results in, the dead replaced."""

    ray: Any
    hire: Callable[[], Any]
    hands: list[Hand]
    question: Question
    keep: Callable[[Done], None]
    deaths: dict[int, int] = field(default_factory=dict)  # of workers, by block

    def work(self, todo: Iterator[Block]) -> None:
        again: list[Block] = []
        while True:
            for hand in sorted(self.hands, key=lambda hand: len(hand.blocks)):
                while len(hand.blocks) < _AHEAD:
                    block = again.pop() if again else next(todo, None)
                    if block is None:
                        break
                    block = _portable(block) if block.number not in self.deaths else block
                    hand.blocks[hand.actor.explain.remote(block)] = block
            waiting = [reference for hand in self.hands for reference in hand.blocks]
            if not waiting:
                return
            ready, _ = self.ray.wait(waiting, num_returns=1)
            again += self._receive(ready[0])

    def _receive(self, reference: Any) -> list[Block]:
        """Take a result; if the worker died instead, the blocks to be done again."""
        hand = next(hand for hand in self.hands if reference in hand.blocks)
        try:
            with workers_told(self.ray):
                done = self.ray.get(reference)
        except GralisError as told:
            error = told.__cause__
            if not isinstance(error, self.ray.exceptions.RayActorError):
                raise
            lost = list(hand.blocks.values())
            first = lost[0]  # the one it was at work on
            hand.actor, hand.blocks = self.hire(), {}
            self.deaths[first.number] = self.deaths.get(first.number, 0) + 1
            if self.deaths[first.number] >= _DEATHS:
                self.keep(give_up(first, self.question, f"{_DEATHS} workers died over its block ({_why(error)})"))
                return lost[1:]
            return lost
        del hand.blocks[reference]
        self.keep(done)
        return []


def _portable(block: Block) -> Block:
    """The block as it can travel: an input that only the driver can make is made here."""
    return Block(block.number, tuple(item if item.portable else _made(item) for item in block.items))


def _made(item: Item) -> Item:
    try:
        given = item.make()
    except Exception as error:
        return Item(item.id, _Refuses(reason(error)), portable=True, label=item.label)
    return Item(item.id, _Gives(given), portable=True, label=item.label if given.label is None else given.label)


@dataclass(frozen=True)
class _Gives:
    given: Given

    def __call__(self) -> Given:
        return self.given


@dataclass(frozen=True)
class _Refuses:
    why: str

    def __call__(self) -> Given:
        raise GralisError(self.why)


def _why(error: BaseException) -> str:
    """The end of Ray's text, where the error itself is."""
    return " ".join(str(error).split())[-300:]
