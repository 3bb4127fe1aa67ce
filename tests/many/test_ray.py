"""The Ray engine: the same results as in one process, whatever happens to the workers."""

import contextlib
import os
import random
import signal
import threading
import time

import numpy as np
import pytest
import torch
from torch import nn

import gralis
from gralis.errors import GralisError
from many import ray_start, small
from many.test_faults import contents, start

ray = pytest.importorskip("ray")
pytestmark = pytest.mark.filterwarnings("ignore")  # Ray's own


@pytest.fixture(scope="module")
def cluster():
    options = {"num_cpus": 2, "include_dashboard": False, "log_to_driver": False, "object_store_memory": 10**8}
    with ray_start.in_this_process():
        ray_start.started(lambda: ray.init("local", **options))  # not a cluster that another test has started
        yield
        ray.shutdown()


def phi(results):
    return results.values_table()["phi"].to_numpy()


def test_two_workers_find_what_one_process_finds(cluster, tmp_path):
    alone = small.explain(tmp_path / "local")
    together = small.explain(tmp_path / "ray", engine="ray", workers=2)
    assert list(together.ids) == list(alone.ids)
    assert together.n_failures == 0
    assert np.abs(phi(together) - phi(alone)).max() <= 1e-6
    assert contents(tmp_path / "ray") == contents(tmp_path / "local")  # same batches, one thread each: even the bits
    assert ray.is_initialized()  # a cluster that was there stays


def test_failures_and_labels_travel(cluster, tmp_path):
    inputs = [(row, k) for k, row in enumerate(small.inputs()[:5])]
    inputs[2] = (torch.full((6,), torch.nan), 2)
    inputs[3] = ("no input", 3)
    options = {"target": 1, "budget": 120, "block_size": 2, "progress": False}
    alone = gralis.explain_many(small.network(), inputs, out=tmp_path / "local", **options)
    together = gralis.explain_many(small.network(), inputs, out=tmp_path / "ray", engine="ray", workers=2, **options)
    assert together.failures == alone.failures
    assert together.inputs_table()["label"].to_pylist() == alone.inputs_table()["label"].to_pylist()
    with pytest.raises(GralisError, match="Input '2'"):
        gralis.explain_many(
            small.network(), inputs, out=tmp_path / "strict", engine="ray", workers=1, strict=True, **options
        )


class Homeless:
    """A model whose code no worker can find."""

    def __call__(self, x):
        return x.sum(1)

    def __reduce__(self):
        return Homeless._gone, ()

    @staticmethod
    def _gone():
        raise ImportError("no module of this name here")


@pytest.mark.parametrize("always", [False, True])
def test_a_worker_that_dies_is_replaced_and_its_inputs_are_done_again(cluster, tmp_path, always):
    x = small.inputs().clone()
    x[7, 0] = 60.0
    mark = tmp_path / "mark"
    options = {"target": 0, "budget": 120, "block_size": 3, "progress": False}
    found = gralis.explain_many(small.Deadly(mark, always), x, out=tmp_path / "ray", engine="ray", workers=2, **options)
    assert mark.exists()
    calm = gralis.explain_many(small.network(), x, out=tmp_path / "local", **options)
    assert list(found.ids) == list(calm.ids)
    if always:
        assert [failure.id for failure in found.failures] == ["6", "7", "8"]
        assert all("workers died" in failure.reason for failure in found.failures)
        others = [name not in ("6", "7", "8") for name in calm.values_table()["input"].to_pylist()]
        assert phi(found) == pytest.approx(phi(calm)[others], abs=1e-6)
    else:
        assert found.n_failures == 0
        assert phi(found) == pytest.approx(phi(calm), abs=1e-6)


def check_killed_workers(folder, rng):
    """Two workers die at random moments (three deaths over one block would be too many); how many kills landed."""
    marks, kills = folder / "marks", []
    marks.mkdir()
    ended = threading.Event()

    def killer():
        while len(kills) < 2 and not ended.wait(0.02):
            alive = [int(path.name) for path in marks.iterdir() if int(path.name) not in (*kills, os.getpid())]
            if alive:
                time.sleep(rng.random() * 0.4)
                with contextlib.suppress(ProcessLookupError):  # it has ended by itself
                    os.kill(victim := rng.choice(alive), signal.SIGKILL)
                    kills.append(victim)

    thread = threading.Thread(target=killer)
    thread.start()
    options = {"target": 0, "budget": 120, "block_size": 2, "progress": False}
    try:
        found = gralis.explain_many(
            small.Marked(marks), small.inputs(), out=folder / "ray", engine="ray", workers=2, **options
        )
    finally:
        ended.set()
        thread.join()
    calm = gralis.explain_many(small.network(), small.inputs(), out=folder / "local", **options)
    assert found.n_failures == 0
    assert list(found.ids) == list(calm.ids)
    assert phi(found) == pytest.approx(phi(calm), abs=1e-6)
    assert len({path.name for path in marks.iterdir()} - set(map(str, kills))) >= 1  # others did the rest
    return len(kills)


@pytest.mark.parametrize("seed", range(2))
def test_workers_killed_at_random_moments(cluster, tmp_path, seed):
    assert check_killed_workers(tmp_path, random.Random(seed)) >= 1


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 14))
def test_workers_killed_at_more_random_moments(cluster, tmp_path, seed):
    assert check_killed_workers(tmp_path, random.Random(seed)) >= 1


class Spoiled(nn.Module):
    """Works where it was made, and nowhere else: it raises there, or kills its process."""

    def __init__(self, deadly):
        super().__init__()
        self.net, self.home, self.deadly = nn.Linear(12, 1), os.getpid(), deadly

    def forward(self, x):
        if os.getpid() != self.home and len(x) > 2:
            if self.deadly:
                os.kill(os.getpid(), signal.SIGKILL)
            raise RuntimeError("not here")
        return self.net(x)


@pytest.mark.parametrize(("deadly", "sentence"), [(False, "A worker failed: .*not here"), (True, "A worker died")])
def test_what_ends_a_worker_of_one_split_input_is_one_sentence(cluster, monkeypatch, deadly, sentence):
    from gralis.many import explain_split

    monkeypatch.setattr("gralis.many.split._RESTARTS", 1)
    with pytest.raises(GralisError, match=sentence):
        explain_split(Spoiled(deadly).eval(), torch.linspace(-1, 1, 12), workers=1, budget=400, progress=False)


def test_a_model_that_cannot_travel_is_one_sentence_at_once(cluster, tmp_path):
    with pytest.raises(GralisError, match="workers cannot"):
        gralis.explain_many(Homeless(), small.inputs(), out=tmp_path, engine="ray", workers=1, budget=120)


def test_a_ray_data_set_is_read_row_by_row(cluster, tmp_path):
    rows = [{"id": f"r{k}", "label": k % 2, "data": row} for k, row in enumerate(small.inputs().numpy()[:6])]
    options = {"target": 0, "budget": 120, "block_size": 2, "progress": False}
    found = gralis.explain_many(small.network(), ray.data.from_items(rows), out=tmp_path / "data", **options)
    named = gralis.explain_many(
        small.network(), small.inputs()[:6], ids=[f"r{k}" for k in range(6)], out=tmp_path / "named", **options
    )
    assert found.values_table().equals(named.values_table())
    assert found.inputs_table()["label"].to_pylist() == list("010101")


def test_one_input_split_over_workers_is_the_input_explained_alone(cluster):
    from gralis.many import explain_split

    net, x = small.network(), small.inputs()[0]
    wide = nn.Sequential(nn.Linear(12, 9), nn.Tanh(), nn.Linear(9, 1)).eval()
    for model, point, options in (
        (net, x, {"target": 2, "budget": 120}),
        (wide, torch.linspace(-1, 1, 12), {"budget": 400}),
        (wide, torch.linspace(-1, 1, 12), {"budget": 400, "plan": "independent"}),
        (wide, torch.linspace(-1, 1, 12), {"budget": 400, "tolerance": 1e-3}),
    ):
        alone = gralis.explain(model, point, progress=False, **options)
        split = explain_split(model, point, workers=2, progress=False, **options)
        assert split.values == pytest.approx(alone.values, abs=1e-6)
        assert split.stderr == pytest.approx(alone.stderr, abs=1e-6)
        assert split.cost.n_gradients == alone.cost.n_gradients
        assert split.cost.n_rays == alone.cost.n_rays
        for column, other in zip(split.ledger.arrays().values(), alone.ledger.arrays().values(), strict=True):
            assert np.allclose(column, other, atol=1e-6, equal_nan=True)


def begun_driver(folder):
    """A driver that starts a cluster of its own and has taken thirty steps; it begins again if Ray does not start."""
    for _ in range(ray_start.TRIES):
        process = start(folder / "ray", "0.05", "ray", env=ray_start.environment(HOME=str(folder)))
        steps = 0
        for line in process.stdout:
            steps += line == "step\n"
            if steps >= 30 or line == "done\n":
                return process, steps
        said = process.communicate()[1]
        if "No Ray cluster could be reached or started" not in said:
            break
    pytest.fail(said[-2000:])


def test_a_driver_killed_with_its_cluster_goes_on(tmp_path):
    """Its own cluster: started by the driver, gone with it."""
    process, steps = begun_driver(tmp_path)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert steps >= 30
    assert 0 < len(gralis.many.Results(tmp_path / "ray")) < small.N
    small.explain(tmp_path / "ray")
    small.explain(tmp_path / "local")
    assert contents(tmp_path / "ray") == contents(tmp_path / "local")


@pytest.mark.parametrize("kind", [Exception, RuntimeError, TimeoutError, ConnectionError])
def test_a_cluster_that_does_not_start_is_one_sentence(tmp_path, monkeypatch, kind):
    """Ray raises a plain Exception if a node takes too long."""

    def late(*_, **__):
        raise kind("The current node timed out during startup.")

    ended = []
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "init", late)
    monkeypatch.setattr(ray, "shutdown", lambda: ended.append(True))
    with pytest.raises(GralisError, match=r"No Ray cluster could be reached or started \(The current node"):
        small.explain(tmp_path, engine="ray")
    assert ended  # what it had started
