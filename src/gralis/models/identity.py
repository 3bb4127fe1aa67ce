"""What a run depends on, as one sha256: the code that is given, and all that this code closes over, reads or calls.

The walk goes from a value to its parts. Of a function it takes the instructions, the defaults, the closure and the
globals that the instructions name; of an object its class and its attributes; of a torch module also every parameter
and buffer, and the hooks. No address enters, so a new process gives the same hash. Code of an installed package counts
by its name and version. Attributes and variables that the code itself writes are left out: they may count or cache.
"""

from __future__ import annotations

import contextvars
import copyreg
import functools
import hashlib
import inspect
import os
import re
import sys
import sysconfig
import threading
import weakref
from collections.abc import Iterable, Mapping
from pathlib import PurePath
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from gralis.models.code_reads import CONTAINERS, assigned, changed, members, names, reads
from gralis.models.fingerprint import PLAIN, bytes_of, compiled

__all__ = ["holds_code", "identity"]

_MOST = 100_000  # values; what a function reaches may be the whole program
_DEPTH = 60
_OWN = frozenset(vars(nn.Module()))  # the attributes that every module has: tables of its parts, and `training`
_HOOKS = ("_forward_pre_hooks", "_forward_hooks", "_backward_pre_hooks", "_backward_hooks")
_GLOBAL_HOOKS = ("_global_forward_pre_hooks", "_global_forward_hooks", "_global_backward_hooks")
#: Of objects of these packages, the state counts; their generators of random numbers are left out.
_STATE_COUNTS = frozenset({"argparse", "array", "builtins", "collections", "datetime", "decimal", "enum", "fractions"})
_STATE_COUNTS |= {"functools", "operator", "re", "statistics", "types"}
_STATE_COUNTS |= {"gralis", "numpy", "pandas", "scipy", "sklearn", "torch", "torchaudio", "torchvision"}
_STATE_COUNTS |= {"lightgbm", "xgboost"}
_TORCH_SETTINGS = (torch.float32, "highest")  # of torch itself, where nobody changed them
_RANDOM = ("numpy.random", "torch._C.Generator")
_SET_UP = frozenset({"__init__", "__post_init__", "__new__", "__setstate__"})
_INSTALLED = tuple(
    {os.path.join(os.path.realpath(sysconfig.get_path(name)), "") for name in ("stdlib", "purelib", "platlib")}
)


def identity(value: object) -> str:
    """A sha256 that changes with the code, the constants and the state that make up the value.

    >>> one, same, other = (eval(f"lambda z: z + {n}", {"__name__": "mine"}) for n in (1, 1, 2))
    >>> identity(one) == identity(same), identity(one) == identity(other)
    (True, False)
    """
    return _Walk(value).digest.hexdigest()


def holds_code(value: object) -> bool:
    """Whether the value holds what its repr does not show: code of the user's, arrays, or the state of an object.

    >>> holds_code(eval("lambda z: z", {"__name__": "mine"})), holds_code((1, "a"))
    (True, False)
    """
    return _Walk(value).code


class _Walk:
    """One walk through a value and its parts; `digest` is the hash, `code` tells whether it met what no repr shows."""

    def __init__(self, value: object) -> None:
        self.digest = hashlib.sha256()
        self.code = False
        self._seen: dict[int, int] = {}
        self._alive: list[object] = []  # so that no id is used twice
        self._called: set[str] = set()  # the attributes that functions read so far, methods among them
        self._opened: set[int] = set()  # modules of the user's, while their parts are collected
        self._add("", value, 0)
        hooks = [list(getattr(nn.modules.module, name, {}).values()) for name in _GLOBAL_HOOKS]
        if any(hooks):
            self._add("every module", hooks, 0)
        torch_settings = (torch.get_default_dtype(), torch.get_float32_matmul_precision())
        if torch_settings != _TORCH_SETTINGS:
            self._add("torch", torch_settings, 0)

    def _write(self, text: str) -> None:
        self.digest.update(f"{text}|".encode("utf-8", "backslashreplace"))

    def _add(self, name: object, value: Any, depth: int) -> None:
        self._write(str(name))
        kind = type(value)
        if kind in PLAIN or isinstance(value, PurePath | np.dtype | torch.dtype | torch.device):
            self._write(f"{kind.__name__} {value!r}")
            return
        if id(value) in self._seen:
            self._write(f"again {self._seen[id(value)]}")
            return
        self._seen[id(value)] = len(self._seen)
        self._alive.append(value)
        if depth > _DEPTH or len(self._seen) > _MOST:
            self._write(_name(kind))
        elif isinstance(value, PLAIN):  # of a class that inherits from one of these
            self._parts(f"{kind.__name__} {_shown(value)}", [("class", kind)], depth)
        elif isinstance(value, Tensor):
            self._tensor(value, depth)
        elif isinstance(value, ModuleType):
            self._write(f"module {value.__name__} {_version(value.__name__)}")
        elif isinstance(value, functools.partial):
            self.code = True
            self._parts("partial", [("", value.func), ("args", value.args), ("keywords", value.keywords)], depth)
        elif isinstance(value, MethodType):
            self._called.add(value.__name__)
            self._parts("method", [("", value.__func__), ("of", value.__self__)], depth)
        elif isinstance(value, FunctionType):
            self._function(value, depth)
        elif isinstance(value, type):
            self._class(value, depth)
        elif isinstance(value, BuiltinFunctionType):
            owner = [] if value.__self__ is None or inspect.ismodule(value.__self__) else [("of", value.__self__)]
            self._parts(f"builtin {value.__qualname__}", owner, depth)
        elif isinstance(value, torch._ops.OpOverload | torch._ops.OpOverloadPacket):
            self._write(f"operator {value}")
        elif isinstance(value, Mapping | set | frozenset | list | tuple):
            self._container(value, depth)
        elif isinstance(value, weakref.ref | contextvars.ContextVar | threading.local):
            self._parts(kind.__name__, _pointed_at(value), depth)
        elif hasattr(kind, "__array__") and hasattr(value, "dtype"):  # NumPy, JAX, a series of pandas
            self.code = True
            array = np.ascontiguousarray(value)
            self._write(f"array {array.shape} {array.dtype}")
            self.digest.update(array.tobytes() if array.dtype.kind in "biufcVSUmM" else b"")
            if array.dtype.kind == "O":
                self._parts("objects", enumerate(array.ravel()), depth)
        elif isinstance(value, nn.Module):
            self._module(value, depth)
        elif callable(getattr(kind, "get_weights", None)):  # Keras
            self.code = True
            self._parts(_name(kind), enumerate(value.get_weights()), depth)
        elif callable(getattr(value, "__wrapped__", None)):  # a cached or compiled function
            self._parts("wrapped", [("", value.__wrapped__)], depth)
        else:
            self._object(value, depth)

    def _parts(self, kind: str, parts: Iterable[tuple[object, object]], depth: int) -> None:
        self._write(kind)
        for name, part in parts:
            self._add(name, part, depth + 1)
        self._write("end")

    def _container(self, value: Any, depth: int) -> None:
        if not _installed(type(value).__module__):
            self._object(value, depth)
        if isinstance(value, Mapping):
            self._parts("mapping", ((_shown(key), value[key]) for key in sorted(value, key=_shown)), depth)
        elif isinstance(value, set | frozenset):
            self._parts("set", enumerate(sorted(value, key=_shown)), depth)
        else:
            self._parts(type(value).__name__, enumerate(value), depth)

    def _tensor(self, tensor: Tensor, depth: int) -> None:
        self.code = True
        self._write(f"tensor {tuple(tensor.shape)} {tensor.dtype}")
        noted = [(name, part) for name, part in sorted(vars(tensor).items()) if name in self._called]
        if noted:
            self._parts("noted on it", noted, depth)
        if tensor.is_meta:
            return
        self.digest.update(bytes_of(tensor.dequantize() if tensor.is_quantized else tensor.to_dense()))

    def _function(self, fn: FunctionType, depth: int) -> None:
        self._write(_name(fn))
        if _installed(fn.__module__, fn.__code__.co_filename):
            inner = getattr(fn, "__wrapped__", None)  # of a decorator, such as torch.no_grad()
            own = [("wrapped", inner)] if inner is not None else [(name, part) for name, part in reads(fn, False)]
            own += [("cases", getattr(fn, "registry", None))] if inner is not None else []  # of a single dispatch
            self._parts("installed", own, depth)
            return
        self.code = True
        for piece in compiled(fn.__code__):
            self.digest.update(piece)
        loaded, caches = names(fn.__code__), changed([fn.__code__])
        self._called |= loaded
        parts: list[tuple[str, object]] = [("defaults", fn.__defaults__), ("keywords", fn.__kwdefaults__)]
        written = assigned([fn.__code__])
        parts += [
            (name, part) for name, part in sorted(vars(fn).items()) if not _is_written(name, part, written, caches)
        ]
        for name, part in reads(fn):
            if not (name in caches and isinstance(part, CONTAINERS)):
                parts += [(name, part), *self._members(name, part, loaded)]
        self._parts("function", parts, depth)

    def _members(self, name: str, module: object, loaded: set[str]) -> list[tuple[str, object]]:
        """What a function may read from a module of the user's, and from the modules in it.

        Of an installed module only the functions that the user has put there.
        """
        if not isinstance(module, ModuleType) or id(module) in self._opened:
            return []
        if _installed(module.__name__):
            return [(f"{name}.{each}", part) for each, part in members(module, loaded) if _is_own_function(part)]
        self._opened.add(id(module))
        found = [(f"{name}.{each}", part) for each, part in members(module, loaded)]
        deeper = [pair for each, part in found for pair in self._members(each, part, loaded)]
        self._opened.discard(id(module))
        return found + deeper

    def _class(self, kind: type, depth: int) -> None:
        self._write(_name(kind))
        above = type(kind)
        if isinstance(above.__module__, str) and not _installed(above.__module__):  # compiled ones may have none
            self._add("metaclass", above, depth + 1)
        if patches := _patches(kind):
            self._parts("patches", patches, depth)
        if _installed(kind.__module__):
            return
        self.code = True
        codes = _codes(kind)
        written, caches = assigned(codes), changed(codes)
        found = [
            (name, _inside(member))
            for base in _own_bases(kind)
            for name, member in vars(base).items()
            if not _is_written(name, member, written, caches)
        ]
        plain = [(name, member) for name, member in found if _acts(member) or not name.startswith("__")]
        called = set(self._called)
        self._parts("class", plain, depth)
        self._called = called  # what methods call counts only if they are called

    def _module(self, module: nn.Module, depth: int) -> None:
        self._class(type(module), depth)
        parts = _source(module)
        self.code = self.code or bool(parts)
        parts += [(name, part) for name, part in module._parameters.items() if part is not None]
        parts += [(name, part) for name, part in module._buffers.items() if part is not None]
        parts += [(name, list(getattr(module, name).values())) for name in _HOOKS if getattr(module, name, None)]
        parts += self._attributes(module)
        parts += module._modules.items()
        self._parts("module", parts, depth)

    def _object(self, value: Any, depth: int) -> None:
        kind = type(value)
        self._class(kind, depth)
        if _installed(kind.__module__) and isinstance(getattr(value, "__qualname__", None), str):
            self._write(_name(value))  # a compiled function
        if source := _source(value):
            self.code = True
            self._parts("source", source, depth)
        elif callable(getattr(value, "tocoo", None)):  # a sparse matrix of SciPy, whose state has caches
            entries = value.tocoo()
            self._parts("sparse", enumerate([entries.shape, entries.row, entries.col, entries.data]), depth)
        elif not _installed(kind.__module__) or kind.__module__.partition(".")[0] in ("gralis", "sklearn"):
            state = value.__getstate__() if kind.__module__ == "sklearn.tree._tree" else None
            self._parts("object", [("state", state), *self._attributes(value)], depth)
        elif kind.__module__.partition(".")[0] in _STATE_COUNTS and not _name(kind).startswith(_RANDOM):
            self._parts("state", self._kept_by_pickle(value), depth)

    def _kept_by_pickle(self, value: Any) -> list[tuple[object, object]]:
        """The parts of an object of an installed package from which pickle would make it again."""
        if hasattr(value, "__next__"):  # it is used up by being read
            return []
        try:
            registered = copyreg.dispatch_table.get(type(value))
            reduced = value.__reduce_ex__(4) if registered is None else registered(value)
        except Exception:  # it cannot be pickled
            return []
        if isinstance(reduced, str):
            return [("global", reduced)]
        self.code = True
        return list(enumerate([*reduced[:3], *(list(each) for each in reduced[3:5] if each is not None)]))

    def _attributes(self, value: object) -> list[tuple[object, object]]:
        """The attributes that no method writes, except to set the object up."""
        called = {"forward", *self._called} if isinstance(value, nn.Module) else None
        codes = _codes(type(value), called)
        cached = {name for base in type(value).__mro__ for name, part in vars(base).items() if _is_cached(part)}
        written, caches = assigned(codes) | _OWN | cached, changed(codes)
        own = {name: getattr(value, name) for name in _slots(type(value)) if hasattr(value, name)}
        own |= getattr(value, "__dict__", {})
        return [(name, own[name]) for name in sorted(own) if not _is_written(name, own[name], written, caches)]


def _is_written(name: str, value: object, written: set[str], caches: set[str]) -> bool:
    return name in written or (name in caches and isinstance(value, CONTAINERS))


def _is_cached(member: object) -> bool:
    """Whether what a member of a class computes is kept among the attributes."""
    return isinstance(member, functools.cached_property)


def _acts(member: object) -> bool:
    """Whether a member of a class is called, or bound when it is read."""
    return callable(member) or isinstance(member, functools.partialmethod)


def _is_own_function(member: object) -> bool:
    """Whether the code of a function is the user's, and not that of an installed package."""
    if not isinstance(member, FunctionType):
        return False
    file = member.__code__.co_filename
    return not _installed(member.__module__) or (os.path.exists(file) and not _installed(None, file))


def _patches(kind: type) -> list[tuple[str, object]]:
    """The methods of installed classes that the user has replaced."""
    return [
        (f"{base.__qualname__}.{name}", _inside(member))
        for base in kind.__mro__
        if _installed(base.__module__)
        for name, member in vars(base).items()
        if _is_own_function(_inside(member))
    ]


def _pointed_at(value: Any) -> list[tuple[object, object]]:
    """What a reference or a variable leads to, in this thread."""
    if isinstance(value, threading.local):
        return sorted(vars(value).items())
    try:
        return [("to", value() if isinstance(value, weakref.ref) else value.get())]
    except LookupError:  # a variable without a value
        return []


def _codes(kind: type, called: set[str] | None = None) -> list[Any]:
    """The code of the methods of the user's classes: all, or those with these names and what they call in turn."""
    methods: dict[str, list[FunctionType]] = {}
    for base in _own_bases(kind):
        for name, member in vars(base).items():
            function = inspect.unwrap(_inside(member))  # type: ignore[arg-type]
            if inspect.isfunction(function) and name not in _SET_UP:
                methods.setdefault(name, []).append(function)
    if called is None:
        return [function.__code__ for each in methods.values() for function in each]
    found: dict[str, list[Any]] = {}
    waiting = [name for name in methods if name in called or name.startswith("__")]
    while waiting:
        name = waiting.pop()
        if name in methods and name not in found:
            found[name] = [function.__code__ for function in methods[name]]
            waiting += [each for code in found[name] for each in names(code)]
    return [code for each in found.values() for code in each]


def _slots(kind: type) -> list[str]:
    """The names of attributes that are not in the dictionary of an object."""
    return [name for base in kind.__mro__ for name, part in vars(base).items() if inspect.ismemberdescriptor(part)]


def _source(value: object) -> list[tuple[object, object]]:
    """The code and the constants of a scripted, traced or exported function or module."""
    if not isinstance(getattr(value, "code", None), str):
        return []
    graph: Any = getattr(value, "inlined_graph", None) or getattr(value, "graph", None)
    found: list[tuple[object, object]] = [("code", value.code)]  # type: ignore[attr-defined]
    if hasattr(graph, "findAllNodes"):  # of TorchScript, where the code does not show tensors
        constants = [node for node in graph.findAllNodes("prim::Constant") if node.hasAttribute("value")]
        found += [("constant", node.t("value")) for node in constants if node.kindOf("value") == "t"]
    return found


def _inside(member: object) -> object:
    """The function inside a member of a class, if there is one; everything else as it is."""
    if isinstance(member, property):
        return member.fget
    if isinstance(member, staticmethod | classmethod):
        return member.__func__
    if isinstance(member, functools.cached_property):
        return member.func
    return member


def _own_bases(kind: type) -> list[type]:
    return [base for base in kind.__mro__ if not _installed(base.__module__)]


def _shown(value: object) -> str:
    """The repr without addresses."""
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))


def _name(value: Any) -> str:
    module = getattr(value, "__module__", None)
    return f"{module}.{value.__qualname__} {_version(module)}"


def _version(module: str | None) -> str:
    """The version of an installed package, where it gives one."""
    version = getattr(sys.modules.get((module or "").partition(".")[0]), "__version__", "")
    return version if isinstance(version, str) else ""


def _installed(module: str | None, file: str | None = None) -> bool:
    """Whether code belongs to Python, to gralis or to an installed package, by its module and its file."""
    package = (module or "").partition(".")[0]
    if package in ("gralis", "torch", "builtins", "pybind11_builtins") or package.startswith("_cython"):
        return True
    file = file or getattr(sys.modules.get(module or ""), "__file__", None)
    if file is None:
        return package in sys.stdlib_module_names and package != "__main__"
    return file.startswith("<frozen") or _real(file).startswith(_INSTALLED)


_real = functools.cache(os.path.realpath)
