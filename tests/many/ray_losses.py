"""A run on Ray's workers that loses something, in a process of its own: python ray_losses.py node|store|full FOLDER."""

import os
import sys
import threading
import time
from pathlib import Path

import ray
import torch
from ray.cluster_utils import Cluster

import gralis
from many import small
from many.ray_start import started

OPTIONS = {"target": 0, "budget": 120, "block_size": 2, "progress": False, "engine": "ray", "workers": 2}
LARGE = 4_000_000  # numbers, 16 MB
STORE = 80 * 2**20
LOCAL = {"address": "local", "include_dashboard": False, "log_to_driver": False, "object_store_memory": STORE}


class Large(torch.nn.Module):
    """One number from a large input; a model of this size itself if `n` is given."""

    def __init__(self, n: int = 0) -> None:
        super().__init__()
        self.weights = torch.nn.Parameter(torch.ones(n))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.mean(1).tanh()


class Held(small.Marked):
    """Leaves the number of its process in a folder. Workers wait until a node is lost; those on it wait for ever."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.home, self.lost = os.getpid(), str(folder.with_name("lost"))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found = super().forward(x)
        if os.getpid() != self.home:
            here = ray.get_runtime_context().get_node_id()
            while not Path(self.lost).exists() or Path(self.lost).read_text() == here:
                time.sleep(0.02)
        return found


def two_nodes() -> tuple[Cluster, object]:
    """A cluster of two nodes with one core each, and the second node."""
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    second = cluster.add_node(num_cpus=1)
    ray.init(address=cluster.address, log_to_driver=False)
    return cluster, second


def lose_a_node(folder: Path) -> None:
    """One of two nodes is removed while a worker on each of them is at work."""
    marks = folder / "marks"
    marks.mkdir()
    cluster, second = started(two_nodes)
    assert ray.cluster_resources()["CPU"] == 2

    def remove() -> None:
        while len({path.name for path in marks.iterdir()} - {str(os.getpid())}) < 2:
            time.sleep(0.02)
        try:
            cluster.remove_node(second, allow_graceful=False)
            print("a node is lost", flush=True)
        finally:
            (folder / "id").write_text(second.node_id)
            (folder / "id").rename(folder / "lost")

    thread = threading.Thread(target=remove, daemon=True)
    thread.start()
    found = gralis.explain_many(Held(marks), small.inputs(), out=folder / "ray", **OPTIONS)
    thread.join(60)
    print("finished", len(found), found.n_failures, flush=True)
    ray.shutdown()
    cluster.shutdown()


def more_than_the_store(folder: Path) -> None:
    """Inputs of 96 MB through a store of 80 MiB."""
    started(lambda: ray.init(num_cpus=2, **LOCAL))
    inputs = [torch.full((LARGE,), float(k + 1)) for k in range(6)]
    whole = gralis.features.groups(torch.arange(LARGE) // (LARGE // 2))
    options = {**OPTIONS, "target": None, "features": whole, "plan": "values", "budget": 64}
    found = gralis.explain_many(Large(), inputs, out=folder / "ray", **options)
    print("finished", len(found), found.n_failures, flush=True)


def full_store(folder: Path) -> None:
    """A store that may not write to the disk, and a model that does not fit."""
    no_disk = {"automatic_object_spilling_enabled": False, "local_fs_capacity_threshold": 0.0}
    started(lambda: ray.init(num_cpus=1, **LOCAL, _system_config=no_disk))
    try:
        gralis.explain_many(Large(2 * LARGE * 8), torch.ones(2, 6), out=folder / "ray", **{**OPTIONS, "target": None})
    except gralis.GralisError as error:
        print("sentence", error, flush=True)


if __name__ == "__main__":
    torch.set_num_threads(1)
    {"node": lose_a_node, "store": more_than_the_store, "full": full_store}[sys.argv[1]](Path(sys.argv[2]))
