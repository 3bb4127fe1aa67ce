"""What a run depends on, as one sha256: the code that is given, and all that this code closes over, reads or calls.

The walk goes from a value to its parts. Of a function it takes the instructions, the defaults, the closure and the
globals that the instructions name; of an object its class and its attributes; of a torch module also every parameter
and buffer, and the hooks. No address enters, so a new process gives the same hash. Code of an installed package counts
by its name and version. Attributes and variables that the code itself writes are left out: they may count or cache.
"""

from __future__ import annotations

import dataclasses
import dis
import functools
import hashlib
import inspect
import os
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import PurePath
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from gralis.models.fingerprint import PLAIN, bytes_of, compiled

__all__ = ["holds_code", "identity"]

_MOST = 100_000  # values; what a function reaches may be the whole program
_DEPTH = 60
_OWN = frozenset(vars(nn.Module()))  # the attributes that every module has: tables of its parts, and `training`
_HOOKS = ("_forward_pre_hooks", "_forward_hooks", "_backward_pre_hooks", "_backward_hooks")
_GLOBAL_HOOKS = ("_global_forward_pre_hooks", "_global_forward_hooks", "_global_backward_hooks")
#: A function that does one of these may fill a cache, so its lists, dicts and sets are left out.
_WRITES = {"STORE_SUBSCR", "DELETE_SUBSCR"}
_MUTATORS = {
    "append",
    "add",
    "update",
    "setdefault",
    "pop",
    "popitem",
    "extend",
    "insert",
    "clear",
    "remove",
    "discard",
}
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
    """Whether a function, class or module of the user's is part of the value, so that its repr does not tell it apart.

    >>> holds_code(eval("lambda z: z", {"__name__": "mine"})), holds_code((1, "a"))
    (True, False)
    """
    return _Walk(value).code


class _Walk:
    """One walk through a value and its parts; `digest` is the hash, `code` tells whether it met code of the user's."""

    def __init__(self, value: object) -> None:
        self.digest = hashlib.sha256()
        self.code = False
        self._seen: dict[int, int] = {}
        self._alive: list[object] = []  # so that no id is used twice
        self._add("", value, 0)
        hooks = [list(getattr(nn.modules.module, name, {}).values()) for name in _GLOBAL_HOOKS]
        if any(hooks):
            self._add("every module", hooks, 0)

    def _write(self, text: str) -> None:
        self.digest.update(f"{text}|".encode("utf-8", "backslashreplace"))

    def _add(self, name: object, value: Any, depth: int) -> None:
        self._write(str(name))
        if isinstance(value, (*PLAIN, PurePath, np.dtype, torch.dtype, torch.device)):
            self._write(f"{type(value).__name__} {value!r}")
            return
        if id(value) in self._seen:
            self._write(f"again {self._seen[id(value)]}")
            return
        self._seen[id(value)] = len(self._seen)
        self._alive.append(value)
        if depth > _DEPTH or len(self._seen) > _MOST:
            self._write(_name(type(value)))
        elif isinstance(value, Tensor):
            self._tensor(value)
        elif isinstance(value, ModuleType):
            self._write(f"module {value.__name__} {_version(value.__name__)}")
        elif isinstance(value, functools.partial):
            self._parts("partial", [("", value.func), ("args", value.args), ("keywords", value.keywords)], depth)
        elif isinstance(value, MethodType):
            self._parts("method", [("", value.__func__), ("of", value.__self__)], depth)
        elif isinstance(value, FunctionType):
            self._function(value, depth)
        elif isinstance(value, type):
            self._class(value, depth)
        elif isinstance(value, BuiltinFunctionType):
            owner = [] if value.__self__ is None or inspect.ismodule(value.__self__) else [("of", value.__self__)]
            self._parts(f"builtin {value.__qualname__}", owner, depth)
        elif isinstance(value, Mapping):
            self._parts("mapping", ((repr(key), value[key]) for key in sorted(value, key=repr)), depth)
        elif isinstance(value, set | frozenset):
            self._parts("set", enumerate(sorted(value, key=repr)), depth)
        elif isinstance(value, list | tuple):
            self._parts(type(value).__name__, enumerate(value), depth)
        elif hasattr(value, "__array__") and hasattr(value, "dtype"):  # NumPy, JAX
            array = np.ascontiguousarray(value)
            self._write(f"array {array.shape} {array.dtype}")
            self.digest.update(array.tobytes() if array.dtype.kind in "biufcVSUmM" else repr(array.tolist()).encode())
        elif isinstance(value, nn.Module):
            self._module(value, depth)
        elif callable(getattr(value, "get_weights", None)):  # Keras
            self._parts(_name(type(value)), enumerate(value.get_weights()), depth)
        elif inspect.isfunction(getattr(value, "__wrapped__", None)):  # a cached or compiled function
            self._parts("wrapped", [("", value.__wrapped__)], depth)
        else:
            self._object(value, depth)

    def _parts(self, kind: str, parts: Iterable[tuple[object, object]], depth: int) -> None:
        self._write(kind)
        for name, part in parts:
            self._add(name, part, depth + 1)
        self._write("end")

    def _tensor(self, tensor: Tensor) -> None:
        self._write(f"tensor {tuple(tensor.shape)} {tensor.dtype}")
        if tensor.is_meta:
            return
        self.digest.update(bytes_of(tensor.dequantize() if tensor.is_quantized else tensor.to_dense()))

    def _function(self, fn: FunctionType, depth: int) -> None:
        self._write(_name(fn))
        if _installed(fn.__module__, fn.__code__.co_filename):
            return
        self.code = True
        for piece in compiled(fn.__code__):
            self.digest.update(piece)
        caches = _may_cache([fn.__code__])
        parts: list[tuple[str, object]] = [("defaults", fn.__defaults__), ("keywords", fn.__kwdefaults__)]
        parts += [pair for pair in _reads(fn) if not (caches and isinstance(pair[1], list | dict | set))]
        self._parts("function", parts, depth)

    def _class(self, kind: type, depth: int) -> None:
        self._write(_name(kind))
        if _installed(kind.__module__):
            return
        self.code = True
        members = [(name, _function_in(member)) for base in _own_bases(kind) for name, member in vars(base).items()]
        self._parts("class", [(name, member) for name, member in members if member is not None], depth)

    def _module(self, module: nn.Module, depth: int) -> None:
        self._class(type(module), depth)
        source = getattr(module, "code", None)  # of a scripted or exported module
        parts: list[tuple[object, object]] = [("code", source)] if isinstance(source, str) else []
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
        package = kind.__module__.partition(".")[0]
        if _installed(kind.__module__) and package not in ("gralis", "sklearn"):
            return
        if kind.__module__ == "sklearn.tree._tree" and hasattr(value, "__getstate__"):
            self._parts("state", [("", value.__getstate__())], depth)
        elif dataclasses.is_dataclass(value):
            names = [field.name for field in dataclasses.fields(value)]
            self._parts("object", [(name, getattr(value, name, None)) for name in names], depth)
        else:
            self._parts("object", self._attributes(value), depth)

    @staticmethod
    def _attributes(value: object) -> list[tuple[object, object]]:
        """The attributes that no method but `__init__` writes."""
        members = [(name, _function_in(part)) for base in _own_bases(type(value)) for name, part in vars(base).items()]
        codes = [fn.__code__ for name, fn in members if isinstance(fn, FunctionType) and name != "__init__"]
        written = {step.argval for code in codes for step in _steps(code) if step.opname == "STORE_ATTR"}
        caches, own = _may_cache(codes), getattr(value, "__dict__", {})
        kept = [(name, own[name]) for name in sorted(own) if name not in written | _OWN]
        return [(name, part) for name, part in kept if not (caches and isinstance(part, list | dict | set))]


def _reads(fn: FunctionType) -> Iterator[tuple[str, object]]:
    """The variables of the closure and the globals that a function reads and does not write."""
    steps = list(_steps(fn.__code__))
    written = {step.argval for step in steps if step.opname in ("STORE_DEREF", "STORE_GLOBAL")}
    for name, cell in zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True):
        with suppress(ValueError):  # not yet assigned
            if name not in written:
                yield name, cell.cell_contents
    attributes = {step.argval for step in steps if step.opname in ("LOAD_ATTR", "LOAD_METHOD")}
    for name in sorted({step.argval for step in steps if step.opname in ("LOAD_GLOBAL", "LOAD_NAME")} - written):
        if name not in fn.__globals__:
            continue
        value = fn.__globals__[name]
        yield name, value
        if isinstance(value, ModuleType) and not _installed(value.__name__):
            yield from ((f"{name}.{each}", vars(value)[each]) for each in sorted(attributes & vars(value).keys()))


def _steps(code: CodeType) -> Iterator[dis.Instruction]:
    yield from dis.get_instructions(code)
    for constant in code.co_consts:
        if inspect.iscode(constant):
            yield from _steps(constant)


def _may_cache(codes: Iterable[CodeType]) -> bool:
    steps = [step for code in codes for step in _steps(code)]
    called = {step.argval for step in steps if step.opname in ("LOAD_ATTR", "LOAD_METHOD")}
    return bool(called & _MUTATORS) or any(step.opname in _WRITES for step in steps)


def _function_in(member: object) -> object:
    """The function inside a member of a class, if there is one; plain constants as they are."""
    if isinstance(member, property):
        return member.fget
    if isinstance(member, staticmethod | classmethod):
        return member.__func__
    if isinstance(member, functools.cached_property):
        return member.func
    return member if isinstance(member, FunctionType | bool | int | float | Tensor) else None


def _own_bases(kind: type) -> list[type]:
    return [base for base in kind.__mro__ if not _installed(base.__module__)]


def _name(value: Any) -> str:
    return f"{value.__module__}.{value.__qualname__} {_version(value.__module__)}"


def _version(module: str | None) -> str:
    """The version of an installed package, where it gives one."""
    version = getattr(sys.modules.get((module or "").partition(".")[0]), "__version__", "")
    return version if isinstance(version, str) else ""


def _installed(module: str | None, file: str | None = None) -> bool:
    """Whether code belongs to Python, to gralis or to an installed package, by its module and its file."""
    package = (module or "").partition(".")[0]
    if package in ("gralis", "torch", "builtins"):
        return True
    file = file or getattr(sys.modules.get(module or ""), "__file__", None)
    if file is None:
        return package in sys.stdlib_module_names and package != "__main__"
    return file.startswith("<frozen") or _real(file).startswith(_INSTALLED)


_real = functools.cache(os.path.realpath)
