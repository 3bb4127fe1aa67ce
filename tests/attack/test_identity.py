"""Nothing is mixed: a run continues only with the code, the constants and the state with which it began."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

import gralis
from gralis.cli.app import run
from gralis.errors import GralisError
from gralis.models.identity import holds_code, identity

FACTOR = 2.0


def scaled(factor):
    return lambda outputs: factor * outputs[:, 0]


def weighted(outputs, k, weight):
    return weight * outputs[:, k]


def reads_a_global(z):
    return FACTOR * z.sum(1)


def calls_another(z):
    return helper(z)


def helper(z):
    return z.sum(1)


def changed_helper(z):
    return z.prod(1)


class Net(nn.Module):
    """A buffer that is not saved, and an attribute, both of which forward reads."""

    def __init__(self, buffer=1.0, attribute=1.0):
        super().__init__()
        self.linear = nn.Linear(3, 2)
        nn.init.constant_(self.linear.weight, 0.5)
        nn.init.constant_(self.linear.bias, 0.1)
        self.register_buffer("scale", torch.tensor(buffer), persistent=False)
        self.attribute = attribute
        self.calls = 0
        self.eval()

    def forward(self, z):
        self.calls += 1
        return self.linear(z) * self.scale * self.attribute


class Other(Net):
    def forward(self, z):
        return self.linear(z) * self.scale * self.attribute + z.sum(1, keepdim=True)


Other.__qualname__, Other.__name__ = Net.__qualname__, Net.__name__


def hooked(hook):
    net = Net()
    net.linear.register_forward_hook(hook)
    return net


class Weights:
    def __init__(self, sizes):
        self.sizes = sizes

    def __call__(self, z):
        return z @ torch.tensor(self.sizes)

    def method(self, z):
        return z @ torch.tensor(self.sizes)


PAIRS = {
    "a constant in a closure": ({"target": scaled(1.0)}, {"target": scaled(3.0)}),
    "another function": ({"target": lambda z: z[:, 0]}, {"target": lambda z: z[:, 1]}),
    "an argument of a partial": (
        {"target": functools.partial(weighted, k=0, weight=1.0)},
        {"target": functools.partial(weighted, k=0, weight=2.0)},
    ),
    "features": (
        {"features": lambda x: gralis.features.groups([0, 0, 1])},
        {"features": lambda x: gralis.features.groups([0, 1, 1])},
    ),
    "baseline": ({"baseline": lambda x: 0 * x}, {"baseline": lambda x: 0 * x - 1}),
    "kernel": ({"kernel": lambda masks: 1.0 + masks[:, 0]}, {"kernel": lambda masks: 1.0 + masks[:, 1]}),
    "a kernel of sizes": (
        {"kernel": gralis.SizeKernel(lambda size: 0.5**size)},
        {"kernel": gralis.SizeKernel(lambda size: 0.4**size)},
    ),
    "a buffer that is not saved": ({"model": Net(1.0)}, {"model": Net(2.0)}),
    "an attribute": ({"model": Net()}, {"model": Net(attribute=2.0)}),
    "another forward": ({"model": Net()}, {"model": Other()}),
    "a hook": ({"model": Net()}, {"model": hooked(lambda module, inputs, output: 2 * output)}),
    "another hook": (
        {"model": hooked(lambda module, inputs, output: 3 * output)},
        {"model": hooked(lambda module, inputs, output: 2 * output)},
    ),
    "an object": ({"model": Weights([1.0, 2, 3]), "target": None}, {"model": Weights([1.0, 2, 4]), "target": None}),
    "the object of a method": (
        {"model": Weights([1.0, 2, 3]).method, "target": None},
        {"model": Weights([1.0, 2, 4]).method, "target": None},
    ),
}


def explain(out, **changes):
    options = {"model": Net(), "target": 0, "budget": 40, "progress": False, **changes}
    return gralis.explain_many(options.pop("model"), torch.eye(3), out=out, **options)


@pytest.mark.parametrize("what", PAIRS)
def test_a_run_is_not_continued_with_something_else(tmp_path, what) -> None:
    first, second = PAIRS[what]
    explain(tmp_path, **first)
    explain(tmp_path, **first)  # with the same it goes on
    with pytest.raises(GralisError, match="different from what is given now"):
        explain(tmp_path, **second)


def test_globals_and_the_functions_that_a_function_calls_are_seen(tmp_path, monkeypatch) -> None:
    for number, (fn, name, value) in enumerate(
        [(reads_a_global, "FACTOR", 3.0), (calls_another, "helper", changed_helper)]
    ):
        explain(tmp_path / str(number), model=fn, target=None)
        monkeypatch.setitem(globals(), name, value)
        with pytest.raises(GralisError, match=r"model.* different from what is given now"):
            explain(tmp_path / str(number), model=fn, target=None)


def test_what_a_model_counts_is_its_own_affair() -> None:
    net, calls = Net(), []

    def counting(z):
        calls.append(len(z))
        return net(z)

    before = identity(net), identity(counting)
    counting(torch.ones(1, 3))
    assert (identity(net), identity(counting)) == before
    assert net.calls == 1


def test_values_without_code_are_told_apart_by_their_repr() -> None:
    assert not any(map(holds_code, (None, 3, "a", gralis.Gaussian(0.5), gralis.targets.probability(1), nn.ReLU())))
    assert all(map(holds_code, (scaled(1.0), functools.partial(weighted, k=1), Net(), Weights([1.0]), Net)))


SCRIPT = """
import functools, sys, torch, gralis

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("scale", torch.ones(()), persistent=False)
        self.activation, self.kinds = torch.tanh, {"ash", "birch", "cedar", "fir", "larch", "oak", "pine"}
    def forward(self, z):
        return self.activation(z) * self.scale * len({"a", "b", "c"}) * len(self.kinds)

class Cut:
    def __call__(self, x):
        return gralis.features.coordinates(x.shape)

def weighted(outputs, weights, k):
    return weights["w"] * outputs[:, k]

target = functools.partial(weighted, weights={"w": 2.0}, k=1)
kernel = gralis.SizeKernel(functools.partial(pow, 0.5))
x = torch.eye(3)
results = gralis.explain_many(Net().eval(), x, out=sys.argv[1], target=target, kernel=kernel, budget=40, progress=False,
    baseline=functools.partial(torch.zeros_like), features=Cut())
"""


def test_unchanged_code_is_accepted_in_a_new_process(tmp_path) -> None:
    """No address, no order of a set and no number of a process is part of the settings."""
    (tmp_path / "job.py").write_text(SCRIPT)
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run(
            [sys.executable, "job.py", "results"], cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
    targets = gralis.many.Results(tmp_path / "results").inputs_table()["target"].to_pylist()
    assert set(targets) == {"partial of weighted"}


NET = """
import torch
class Net(torch.nn.Module):
    def forward(self, z):
        return z * 1.0
def build():
    return Net().eval()
"""


@pytest.mark.parametrize("change", [("z * 1.0", "z * 2.0"), ("import torch", "import torch\nSEED = 1")])
def test_the_file_of_a_model_belongs_to_the_run(tmp_path, monkeypatch, capsys, change) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    Path("table.csv").write_text("a,b\n1,2\n3,4\n")
    command = ["batch", "table.csv", "--model", "twonets.py:build", "--out", "results", "--baseline", "0", "--quiet"]
    Path("twonets.py").write_text(NET)
    assert run(command) == 0
    monkeypatch.delitem(sys.modules, "twonets")
    assert run(command) == 0
    monkeypatch.delitem(sys.modules, "twonets")
    Path("twonets.py").write_text(NET.replace(*change))
    capsys.readouterr()
    assert run(command) == 2
    assert "different from what is given now" in capsys.readouterr().err
    monkeypatch.delitem(sys.modules, "twonets")
