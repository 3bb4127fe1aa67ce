"""Calls of a model: batches in order, failures made good once, numbers checked, costs counted."""

from __future__ import annotations

import ctypes
import itertools
import re
import time
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import gralis
from gralis import ModelError
from gralis.canonical import gradcam_lin, integrated_gradients
from gralis.evaluation.calls import ModelCalls
from gralis.evaluation.evaluator import Evaluator
from gralis.evaluation.memory import Weighing, give_back, resident_memory
from gralis.evaluation.point_sequences import GivenPoints
from gralis.models import Model, OutputModel, Points
from gralis.models.outputs import TargetedModel
from gralis.problem import Problem
from gralis.rays import RayRequest

POINTS = torch.linspace(-1, 1, 60, dtype=torch.float64).reshape(20, 3)


def calls_of(model: object, batch_size: int | None = None, **options: object) -> ModelCalls:
    return ModelCalls(TargetedModel(gralis.models.adapt(model)), 24, batch_size=batch_size, **options)


class Noted:
    """sum of squares, with a note of the size of every batch; fails on batches larger than `most`."""

    def __init__(self, most: int = 10**9, error: type[Exception] = MemoryError) -> None:
        self.sizes: list[int] = []
        self.most, self.error = most, error

    def __call__(self, z: Tensor) -> Tensor:
        self.sizes.append(len(z))
        if len(z) > self.most:
            raise self.error("too large")
        return (z**2).sum(1)


def test_values_and_gradients_come_in_order_and_are_counted() -> None:
    model, reported = Noted(), []
    calls = calls_of(model, batch_size=8)
    calls.progress = lambda n_gradients, n_forwards: reported.append((n_gradients, n_forwards))
    assert calls.values(GivenPoints(POINTS))[:, 0] == pytest.approx((POINTS**2).sum(1).numpy())
    batches = list(calls.gradients(GivenPoints(POINTS)))
    assert [batch.part for batch in batches] == [slice(0, 8), slice(8, 16), slice(16, 20)]
    assert np.concatenate([batch.rows[0] for batch in batches]) == pytest.approx(2 * POINTS.numpy())
    assert model.sizes == [8, 8, 4, 8, 8, 4]
    assert reported == [(0, 8), (0, 8), (0, 4), (8, 0), (8, 0), (4, 0)]
    assert (calls.cost.n_forwards, calls.cost.n_gradients, calls.cost.n_batches) == (20, 20, 6)
    assert calls.cost.batch_size == 8


def test_a_batch_that_runs_out_of_memory_is_halved_and_counted_once() -> None:
    model = Noted(most=3)
    calls = calls_of(model, batch_size=16)
    rows = np.concatenate([batch.rows[0] for batch in calls.gradients(GivenPoints(POINTS))])
    assert rows == pytest.approx(2 * POINTS.numpy())
    assert model.sizes == [16, 8, 4, *[2] * 10]
    assert calls.cost.n_gradients == 20
    with pytest.raises(ModelError, match="out of memory on a single point"):
        calls_of(Noted(most=0), batch_size=4).values(GivenPoints(POINTS))


def test_an_error_of_the_model_is_raised_at_once_and_an_interrupt_passes() -> None:
    broken = Noted(most=3, error=KeyError)
    with pytest.raises(ModelError, match=r"raised KeyError on points of shape \(8, 3\)"):
        calls_of(broken, batch_size=8).values(GivenPoints(POINTS))
    assert broken.sizes == [8]
    interrupted = Noted(most=3, error=KeyboardInterrupt)  # type: ignore[arg-type]
    with pytest.raises(KeyboardInterrupt):
        calls_of(interrupted, batch_size=8).values(GivenPoints(POINTS))
    assert interrupted.sizes == [8]


@pytest.mark.parametrize("error", [ValueError("the disk is full"), MemoryError("no room"), KeyboardInterrupt()])
def test_an_error_of_the_reader_is_not_taken_for_one_of_the_model(error: BaseException) -> None:
    """The batch is not evaluated and counted again, in whatever layout it was."""
    model = Noted()
    calls = calls_of(model, batch_size=8, layouts=("channels_last", "contiguous"))
    batches = calls.gradients(GivenPoints(POINTS))
    next(batches)
    with pytest.raises(type(error)):
        batches.throw(error)
    assert (model.sizes, calls.cost.n_gradients) == ([8], 8)


def test_the_session_is_restored_when_the_reader_fails() -> None:
    network = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5), nn.Linear(4, 1)).train()
    evaluator = Evaluator([Problem.build(network, torch.ones(3))], batch_size=2)
    request = RayRequest.of(np.ones((4, 3), dtype=bool), np.zeros(4), 0, np.full((4, 1), 0.5), np.ones((4, 1)))

    def read() -> None:
        with evaluator.session():
            for _ in evaluator.gradient_batches(request):
                assert not network[1].training
                raise ValueError("the disk is full")

    with pytest.warns(UserWarning, match="train mode"), pytest.raises(ValueError, match="disk"):
        read()
    assert all(part.training for part in network.modules())
    assert all(parameter.requires_grad for parameter in network.parameters())


class Heavy:
    """sum of squares, through a temporary of `n_numbers` float64 numbers for each row; notes the sizes."""

    def __init__(self, n_numbers: int) -> None:
        self.n_numbers, self.sizes = n_numbers, []

    def __call__(self, z: Tensor) -> Tensor:
        self.sizes.append(len(z))
        with torch.no_grad():
            temporary = torch.zeros(len(z), self.n_numbers, dtype=torch.float64) + 1.0
        return (z**2).sum(1) + 0.0 * temporary[:, 0]


@pytest.mark.fresh_process
@pytest.mark.parametrize("batch_size", [None, 16])
@pytest.mark.parametrize("kind", ["values", "gradients"])
def test_a_memory_limit_holds_from_the_first_point_on(kind: str, batch_size: int | None) -> None:
    """Two temporaries of 8 MB are alive at once for every row, so that 100 MB have room for about six rows."""
    model = Heavy(1_000_000)
    calls = calls_of(model, batch_size=batch_size, max_memory=100_000_000)
    points = GivenPoints(POINTS.repeat(3, 1))
    found = calls.values(points) if kind == "values" else list(calls.gradients(points))
    assert len(found)
    assert model.sizes[0] == 1
    assert 3 <= max(model.sizes) <= 6
    assert sum(model.sizes) == 60
    assert 16_000_000 <= calls.cost.bytes_per_point < 30_000_000


@pytest.mark.fresh_process
@pytest.mark.parametrize("kind", ["values", "gradients"])
def test_a_limit_below_one_point_is_refused_with_what_it_takes(kind: str) -> None:
    model = Heavy(1_000_000)
    calls = calls_of(model, max_memory=10_000_000)
    with pytest.raises(gralis.GralisError, match="'max_memory' parameter of explain must be at least") as caught:
        getattr(calls, kind)(GivenPoints(POINTS)) if kind == "values" else list(calls.gradients(GivenPoints(POINTS)))
    named = int(re.search(r"at least (\d+) bytes", str(caught.value))[1])  # type: ignore[index]
    assert 16_000_000 <= named < 30_000_000
    assert max(model.sizes) == 1


@pytest.mark.fresh_process
def test_what_a_library_holds_outside_torch_is_weighed_too() -> None:
    sizes = []

    def box(z: np.ndarray) -> np.ndarray:
        sizes.append(len(z))
        return np.ones((len(z), 2_000_000)).sum(1) + z.sum(1)

    calls = calls_of(gralis.models.blackbox(box), max_memory=160_000_000)
    calls.values(GivenPoints(POINTS.repeat(4, 1)))
    assert sizes[0] == 1
    assert 4 <= max(sizes) <= 10


@pytest.mark.fresh_process
@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="the C library of Linux")
def test_freed_memory_is_given_back() -> None:
    """Blocks of 100 kB, of which every tenth is still used: the C library keeps the others."""
    blocks = [torch.ones(25_000) for _ in range(1000)]
    used = blocks[::10]
    full = resident_memory() or 0
    del blocks
    give_back()
    assert full - (resident_memory() or 0) > 60_000_000
    assert len(used) == 100


def test_memory_that_a_batch_leaves_behind_is_given_back_before_it_counts_twice(monkeypatch) -> None:
    """Every batch holds 16 MB and leaves 10 MB that are free: after nine of them, 100 MB would not be enough."""
    held, returned = [10**9], []  # the first batch also shows what libraries set up once

    class Leaving(Heavy):
        def __call__(self, z: Tensor) -> Tensor:
            held[0] += 10_000_000
            return super().__call__(z)

    def give() -> None:
        returned.append(held[0])
        held[0] = 10**9

    for module in ("calls", "memory"):
        monkeypatch.setattr(f"gralis.evaluation.{module}.resident_memory", lambda: held[0])
    monkeypatch.setattr("gralis.evaluation.calls.give_back", give)
    calls_of(Leaving(1_000_000), batch_size=1, max_memory=100_000_000).values(GivenPoints(POINTS))
    assert returned
    assert 10**9 + 80_000_000 < max(returned) <= 10**9 + 110_000_000
    returned.clear()
    calls_of(Leaving(1_000_000), batch_size=1).values(GivenPoints(POINTS))
    assert not returned  # nothing is asked for, and nothing is done


def test_without_a_limit_only_the_batch_itself_is_weighed(monkeypatch) -> None:
    """The process grows by 50 MB before every batch, for another reason, and then by 1 MB for each row."""
    held = [10**9]

    def box(z: Tensor) -> Tensor:
        held[0] += 1_000_000 * len(z)
        return z.sum(1)

    for module in ("calls", "memory"):
        monkeypatch.setattr(f"gralis.evaluation.{module}.resident_memory", lambda: held[0])
    calls = calls_of(box, batch_size=4, weigh=True)
    for n_points in (1, 1, 4):
        held[0] += 50_000_000
        calls.values(GivenPoints(POINTS[:n_points]))
    assert calls.forwards.bytes_per_point == 1_000_000


def test_a_function_of_arrays_is_weighed_by_the_memory_of_the_process_alone(monkeypatch) -> None:
    """To count tensors torch loads 67 MiB of itself, which no limit of a black box should have to hold."""
    held, sizes = [10**9], []

    def box(z: np.ndarray) -> np.ndarray:
        sizes.append(len(z))
        held[0] = max(held[0], 10**9 + 1_000_000 * len(z))
        return np.asarray(z).sum(1)

    def counted() -> None:
        raise AssertionError("tensors are counted")

    for module in ("calls", "memory"):
        monkeypatch.setattr(f"gralis.evaluation.{module}.resident_memory", lambda: held[0])
    monkeypatch.setattr("gralis.evaluation.memory._LiveTensors", counted)
    calls_of(gralis.models.blackbox(box), max_memory=10_000_000).values(GivenPoints(torch.cat([POINTS] * 6)))
    assert 4 <= max(sizes) <= 10


def box_beside(others: Callable[[int], int], held: list[int], monkeypatch) -> Callable[[Tensor], Tensor]:
    """A function that adds 1 MB for each row to the process; what others hold is told by the number of the call."""
    calls = itertools.count()

    def box(z: Tensor) -> Tensor:
        rows = 1_000_000 * len(z)
        held[0] += rows + others(number := next(calls))
        time.sleep(0.02)  # for the looks of another thread
        held[0] -= rows + others(number)
        return z.sum(1)

    for module in ("calls", "memory"):
        monkeypatch.setattr(f"gralis.evaluation.{module}.resident_memory", lambda: held[0])
    return box


@pytest.mark.parametrize("busy", [lambda call: 60_000_000 * (call == 2), lambda call: 60_000_000 * (call < 3)])
def test_what_else_happens_during_one_batch_is_not_part_of_it(monkeypatch, busy) -> None:
    """While some batches run, the process grows by 60 MB for another reason; a later one shows it."""
    held = [10**9]
    calls = calls_of(box_beside(busy, held, monkeypatch), batch_size=4, weigh=True)
    for n_points in (1, 1, 4):
        calls.values(GivenPoints(POINTS[:n_points]))
    assert calls.forwards.bytes_per_point == 1_000_000


def test_what_the_process_holds_without_the_batch_is_not_part_of_it(monkeypatch) -> None:
    """Every batch meets 60 MB of another thread, and so does every look at the process between them."""
    held = [10**9]
    calls = calls_of(box_beside(lambda call: 60_000_000 * (call > 0), held, monkeypatch), batch_size=4, weigh=True)
    monkeypatch.setattr("gralis.evaluation.memory._growth_within", lambda since, seconds: 60_000_000)
    for n_points in (1, 1, 4):
        calls.values(GivenPoints(POINTS[:n_points]))
    assert calls.forwards.bytes_per_point == 1_000_000


def test_no_limit_is_refused_for_what_other_threads_hold(monkeypatch) -> None:
    """While the second point is weighed, another thread begins to hold 60 MB."""
    held = [10**9]
    box = box_beside(lambda call: 60_000_000 * (call == 1), held, monkeypatch)
    calls = calls_of(box, max_memory=20_000_000)
    assert len(calls.values(GivenPoints(POINTS))) == len(POINTS)
    assert calls.forwards.bytes_per_point < 2_000_000


def test_tensors_that_are_freed_make_room_again() -> None:
    with Weighing() as weighing:
        for _ in range(5):
            torch.zeros(1000, dtype=torch.float64).add_(1)
        kept = torch.zeros(3000, dtype=torch.float64)
        view = kept[:5].reshape(-1)
    assert weighing.bytes == 24_000
    assert len(view) == 5


def test_not_a_number_is_reported_where_it_appears_first() -> None:
    def root(z: Tensor) -> Tensor:
        return z.sqrt().sum(1)

    with pytest.raises(ModelError, match=r"output is nan, first at the point \(-1, -0.9"):
        calls_of(root, batch_size=7).values(GivenPoints(POINTS))
    points = torch.tensor([[1.0, 1.0], [1.0, 4.0], [1.0, 0.0]])
    with pytest.raises(ModelError, match=r"gradient in the direction of feature 1 is inf, first at the point \(1, 0\)"):
        list(calls_of(root, batch_size=2).gradients(GivenPoints(points)))


def test_the_path_of_integrated_gradients_is_evaluated_in_checked_batches() -> None:
    x = np.array([1.0, 4.0])
    assert integrated_gradients(lambda z: (z**2).sum(1), x, n_nodes=7).attribution() == pytest.approx([1, 16])
    model = Noted(most=3)
    assert integrated_gradients(model, x, n_nodes=7).attribution() == pytest.approx([1, 16])
    assert model.sizes == [7, 3, 3, 1]
    with pytest.raises(ModelError, match="gradient in the direction of feature 0 is nan"):
        integrated_gradients(lambda z: (z - 0.5).abs().sqrt().sum(1), np.array([1.0, 4.0]), n_nodes=1)
    with pytest.raises(ModelError, match=r"raised ZeroDivisionError on points of shape \(3, 2\)"):
        integrated_gradients(lambda z: 1 / 0, x, n_nodes=3)


def test_gradcam_is_checked_too() -> None:
    torch.manual_seed(0)
    network = nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten(), nn.Linear(32, 1)).double().eval()
    x = torch.rand(1, 6, 6, dtype=torch.float64)
    assert gradcam_lin(network, x, layer=network[0]).attribution().shape == (16,)
    with torch.no_grad():
        network[2].weight[0, 5] = torch.inf
    with pytest.raises(ModelError, match=r"output is -?(inf|nan), first at the point \(0\."):
        gradcam_lin(network, x, layer=network[0])
    with torch.no_grad():
        network[2].weight[0, 5], network[0].bias[1] = 0.0, torch.inf
    squashed = nn.Sequential(network[0], nn.Sigmoid(), *network[1:]).eval()
    with pytest.raises(ModelError, match=r"activation \(1, 0, 0\) of the layer is inf"):
        gradcam_lin(squashed, x, layer=network[0])
    with pytest.raises(ModelError, match="raised RuntimeError on points of shape"):
        gradcam_lin(network, torch.rand(1, 9, 9), layer=network[0])
    assert not network[0]._forward_hooks


class Twice:
    """A model written outside gralis that reads F off its outputs, (rows, 2)."""

    def __init__(self, target: object = None) -> None:
        self.target = target

    def with_target(self, target: object) -> Twice:
        return Twice(target)

    def outputs(self, points: Points) -> Tensor:
        return torch.stack([points.sum(1), (points**2).sum(1)], dim=1)

    def values(self, points: Points, targets: object) -> list[Tensor]:
        return [self.outputs(points)[:, target] for target in targets]

    def values_and_gradients(self, points: Points, targets: object) -> tuple[list[Tensor], list[Points]]:
        gradients = [torch.ones_like(points), 2 * points]
        return self.values(points, targets), [gradients[target] for target in targets]

    def value(self, points: Points) -> Tensor:
        return self.values(points, [self.target])[0]

    def value_and_gradient(self, points: Points) -> tuple[Tensor, Points]:
        (value,), (gradient,) = self.values_and_gradients(points, [self.target])
        return value, gradient


def test_an_adapter_from_outside_may_have_several_targets() -> None:
    assert isinstance(Twice(), OutputModel)
    assert isinstance(Twice(), Model)
    x = np.array([1.0, 2.0])
    assert gralis.explain(Twice(), x, target="all").values == pytest.approx(np.array([[1, 2], [1, 4]]))
    assert gralis.explain(Twice(), x, target=1).values == pytest.approx([1, 4])
