"""The walk behind the identity of a run: what it must see, what it must not mind, and the same in every process."""

from __future__ import annotations

import functools
import os
import subprocess
import sys

import numpy as np
import pytest
import torch
from torch import nn

import gralis
from gralis.errors import GralisError
from gralis.models.identity import holds_code, identity

#: Programs in which ? stands for what differs; `m` is what is explained.
SEEN = {
    "a text of the class": (
        "class C(nn.Module):\n  mode = '?'\n  def forward(s, z): return z * (s.mode == 'a')",
        "a",
        "b",
    ),
    "a tuple of the class": ("class C(nn.Module):\n  w = (1, ?)\n  def forward(s, z): return z * s.w[1]", "2", "3"),
    "an array of the class": (
        "class C(nn.Module):\n  w = np.array([?])\n  def forward(s, z): return z * s.w[0]",
        "2",
        "3",
    ),
    "a function of the class": (
        "class C(nn.Module):\n  f = torch.?\n  def forward(s, z): return s.f(z)",
        "tanh",
        "exp",
    ),
    "a class in the class": (
        "class C(nn.Module):\n  class P:\n    k = ?\n  def forward(s, z): return z * s.P.k",
        "2",
        "3",
    ),
    "a cached method": (
        "class C(nn.Module):\n  @functools.cache\n  def w(s): return ?\n  def forward(s, z): return z * s.w()",
        *("2", "3"),
    ),
    "a decorated forward": (
        "class C(nn.Module):\n  @torch.no_grad()\n  def forward(s, z): return z * ?",
        *("2", "3"),
    ),
    "a setter": (
        "class C(nn.Module):\n  def __init__(s, a):\n    super().__init__()\n    s.set(a)\n"
        "  def set(s, a): s.a = a\n  def forward(s, z): return z * s.a\nm = C(?)",
        *("2", "3"),
    ),
    "a dict beside changed numbers": (
        "class C(nn.Module):\n  def __init__(s, a):\n    super().__init__()\n    s.o = {'a': a}\n  def forward(s, z):\n"
        "    y = z.clone()\n    y[:, 0] = 0\n    y[:, 1] += s.o['a']\n    return torch.add(y, s.o['a'])\nm = C(?)",
        *("2", "3"),
    ),
    "slots": (
        "class C:\n  __slots__ = ('a',)\n  def __init__(s, a): s.a = a\n  def __call__(s, z): return z * s.a\nm = C(?)",
        *("2", "3"),
    ),
    "a class of dicts": ("class C(dict):\n  def __call__(s, z): return z * ?", "2", "3"),
    "a class of texts": ("class C(str):\n  def __call__(s, z): return z * ?", "2", "3"),
    "a namespace": ("from types import SimpleNamespace\no = SimpleNamespace(a=?)\ndef m(z): return z * o.a", "2", "3"),
    "options": ("from argparse import Namespace\no = Namespace(a=?)\ndef m(z): return z * o.a", "2", "3"),
    "a fraction": ("from fractions import Fraction\no = Fraction(?, 7)\ndef m(z): return z * float(o)", "2", "3"),
    "a range": ("o = range(?)\ndef m(z): return z[:, o]", "2", "3"),
    "a pattern": ("import re\no = re.compile('?')\ndef m(z): return z * bool(o.match('a'))", "a", "b"),
    "a ufunc": ("o = np.?\ndef m(z): return o(z)", "tanh", "exp"),
    "a method of tensors": ("m = torch.Tensor.?", "tanh", "exp"),
    "an operator of torch": ("m = torch.ops.aten.?", "tanh", "exp"),
    "a decorated function": ("@torch.no_grad()\ndef m(z): return z * ?", "2", "3"),
    "a vectorised function": ("m = torch.vmap(lambda z: z.sum() * ?)", "2", "3"),
    "a compiled function": ("m = torch.compile(lambda z: z * ?)", "2", "3"),
    "a constant of a trace": ("m = torch.jit.trace(lambda z: z * ?, torch.ones(2))", "2", "3"),
    "a distribution": ("o = torch.distributions.Normal(0.0, ?)\ndef m(z): return o.log_prob(z)", "2", "3"),
    "a table": ("import pandas\no = pandas.DataFrame({'a': [?]})\ndef m(z): return z * o['a'].iloc[0]", "2", "3"),
    "a sparse matrix": (
        "from scipy import sparse\no = sparse.csr_matrix([[?]])\ndef m(z): return z * o[0, 0]",
        "2",
        "3",
    ),
    "objects in an array": ("o = np.array([?, 'a'], dtype=object)\ndef m(z): return z * o[0]", "2", "3"),
    "a method with arguments": (
        "class C:\n  def f(s, z, k): return z * k\n  __call__ = functools.partialmethod(f, k=?)",
        *("2", "3"),
    ),
    "a metaclass": (
        "class M(type):\n  def k(c): return ?\nclass K(metaclass=M): pass\ndef m(z): return z * K.k()",
        *("2", "3"),
    ),
    "a case of a single dispatch": (
        "@functools.singledispatch\ndef m(z): pass\nm.register(torch.Tensor)(lambda z: z * ?)",
        *("2", "3"),
    ),
    "an attribute of a function": ("def m(z): return z * m.k\nm.k = ?", "2", "3"),
    "an attribute of a tensor": ("w = torch.ones(2)\nw.k = ?\ndef m(z): return z * w * w.k", "2", "3"),
    "a weak reference": (
        "import weakref\nclass A: pass\na = A()\na.k = ?\nr = weakref.ref(a)\ndef m(z): return z * r().k",
        *("2", "3"),
    ),
    "a variable of the context": (
        "import contextvars\nv = contextvars.ContextVar('v', default=?)\ndef m(z): return z * v.get()",
        *("2", "3"),
    ),
    "a variable of the thread": (
        "import threading\nv = threading.local()\nv.k = ?\ndef m(z): return z * v.k",
        "2",
        "3",
    ),
    "a member of an Enum": ("import enum\nclass E(enum.Enum):\n  A = ?\ndef m(z): return z * E.A.value", "2", "3"),
}


def made(program: str, value: str):
    places = {"__name__": "mine", "torch": torch, "nn": nn, "functools": functools, "np": np}
    exec(program.replace("?", value), places)
    return places["m"] if "m" in places else places["C"]()


@pytest.mark.filterwarnings("ignore")  # torch deprecates traces
@pytest.mark.parametrize("what", SEEN)
def test_what_differs_is_seen(what) -> None:
    program, first, second = SEEN[what]
    assert identity(made(program, first)) == identity(made(program, first))
    assert identity(made(program, first)) != identity(made(program, second))


def test_what_is_put_into_an_installed_package_is_seen(monkeypatch) -> None:
    """Functions and methods that the user replaces, and the type in which torch computes."""
    places: dict = {"__name__": "mine", "torch": torch}
    exec("def m(z): return torch.tanh(z)", places)
    asked = (places["m"], nn.Linear(2, 1))
    before = [identity(each) for each in asked]
    monkeypatch.setattr(torch, "tanh", lambda z: 2 * z)
    assert [identity(each) == known for each, known in zip(asked, before, strict=True)] == [False, True]
    monkeypatch.undo()
    monkeypatch.setattr(nn.Linear, "forward", lambda self, z: 2 * z)
    assert [identity(each) == known for each, known in zip(asked, before, strict=True)] == [True, False]
    monkeypatch.undo()
    try:
        torch.set_default_dtype(torch.float64)
        assert not any(identity(each) == known for each, known in zip(asked, before, strict=True))
    finally:
        torch.set_default_dtype(torch.float32)
    assert [identity(each) for each in asked] == before


def test_an_object_that_has_every_attribute_is_walked_like_others() -> None:
    places: dict = {"__name__": "mine"}
    exec(
        "class Any:\n  def __getattr__(self, name): return lambda *parts: 2\n  def __call__(self, z): return z", places
    )
    assert identity(places["Any"]()) == identity(places["Any"]())


def test_modules_that_a_function_imports_or_reaches_through_others_are_read(tmp_path, monkeypatch) -> None:
    (tmp_path / "outer_a14").mkdir()
    (tmp_path / "outer_a14" / "__init__.py").write_text("")
    (tmp_path / "outer_a14" / "inner.py").write_text("FACTOR = 2.0\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    places: dict = {"__name__": "mine"}
    exec(
        "import outer_a14.inner\n"
        "def through(z): return z * outer_a14.inner.FACTOR\n"
        "def inside(z):\n  import outer_a14.inner as short\n  return z * short.FACTOR\n"
        "def taken(z):\n  from outer_a14.inner import FACTOR\n  return z * FACTOR\n",
        places,
    )
    functions = [places[name] for name in ("through", "inside", "taken")]
    before = [identity(fn) for fn in functions]
    places["outer_a14"].inner.FACTOR = 3.0
    assert all(identity(fn) != known for fn, known in zip(functions, before, strict=True))
    for name in ("outer_a14", "outer_a14.inner"):
        monkeypatch.delitem(sys.modules, name)


class Twice(nn.Module):
    """Two layers that are equal."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(3, 3), nn.Linear(3, 3)
        for parameter in self.parameters():
            nn.init.constant_(parameter, 0.5)
        self.eval()

    def forward(self, z):
        return self.second(torch.tanh(self.first(z)))


def head(weight):
    linear = nn.Linear(3, 1, bias=False)
    nn.init.constant_(linear.weight, weight)
    return nn.Sequential(linear, nn.Flatten(0)).eval()


NET, HEADS = Twice(), (head(1.0), head(2.0))


@pytest.mark.parametrize(
    ("name", "first", "second"),
    [
        ("layer", NET.first, NET.second),
        ("target", *HEADS),
        ("baseline", *(functools.partial(torch.full_like, fill_value=value) for value in (0.0, 1.0))),
    ],
)
def test_a_run_is_not_continued_with_another_layer_head_or_argument(tmp_path, name, first, second) -> None:
    options = {"out": tmp_path, "target": 0, "budget": 40, "progress": False}
    gralis.explain_many(NET, torch.eye(3), **{**options, name: first})
    gralis.explain_many(NET, torch.eye(3), **{**options, name: first})
    with pytest.raises(GralisError, match=f"holds a run with {name} "):
        gralis.explain_many(NET, torch.eye(3), **{**options, name: second})


def test_numbers_that_no_repr_shows_are_part_of_a_setting() -> None:
    assert all(map(holds_code, (HEADS[0], functools.partial(torch.add, torch.ones(1)), {"a": np.ones(3)})))


USED = """
import functools, logging, threading
import numpy as np, pandas, torch
from scipy import sparse, stats

log, lock = logging.getLogger("a"), threading.Lock()
table, matrix, normal = pandas.DataFrame({"a": [1.0, 2], "b": ["x", "y"]}), sparse.csr_matrix([[1.0]]), stats.norm(0, 2)
weights = {torch.tanh: 1.0, torch.exp: 2.0}
draws = np.random.default_rng(0)

class Model(torch.nn.Module):
    log, lock, kept = log, lock, {}
    f = staticmethod(torch.tanh)
    @functools.cached_property
    def once(self): return 2.0
    @functools.cache
    def twice(self): return 2.0
    @torch.no_grad()
    def forward(self, z):
        self.kept[len(z)] = z
        self.calls = len(self.kept)
        draws.normal(), table.describe(), matrix.sum(), matrix[0, 0], normal.pdf(0.1)
        with lock:
            return self.f(z) * self.once * self.twice() * weights[torch.tanh]

model = Model().eval()
def m(z): return model(z)
"""


def test_use_changes_nothing_and_neither_does_another_process(tmp_path) -> None:
    """No cache, no counter, no address, no order of a set: the identity stays."""
    (tmp_path / "used.py").write_text(USED)
    ask = "import used, torch; from gralis.models.identity import identity; m = used.m\n"
    ask += "print(identity(m)); m(torch.ones(2, 3)); print(identity(m))"
    found = set()
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run(
            [sys.executable, "-c", ask], cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        found |= set(done.stdout.split())
    assert len(found) == 1
