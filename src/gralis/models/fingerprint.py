"""Hashes that tell models apart without calling them: of a module's structure and state, or of a function's code.

The code of a module, its plain attributes, and the state of an object behind a method may change the numbers but not
these hashes, which provenance and replay compare; `identity` hashes those as well, for runs that are continued.
"""

from __future__ import annotations

import dis
import functools
import hashlib
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from types import CodeType, FunctionType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from gralis.models.device_map import state_of
from gralis.models.failures import full_name

__all__ = ["bytes_of", "of_function", "of_module", "of_object"]

_WRITES = dis.opmap["STORE_DEREF"]
PLAIN = (bool, int, float, complex, str, bytes, type(None))


def of_module(module: nn.Module) -> str:
    """A sha256 of the classes and constants of all parts, and of the names, shapes, dtypes and bytes of the state.

    >>> of_module(nn.LeakyReLU(0.1)) == of_module(nn.LeakyReLU(0.2)), of_module(nn.ReLU()) == of_module(nn.Tanh())
    (False, False)
    """
    digest = hashlib.sha256()
    for name, part in module.named_modules():
        kind = type(part)
        digest.update(f"{name}|{kind.__module__}.{kind.__qualname__}|".encode())
        constants = ((key, getattr(part, key, None)) for key in getattr(kind, "__constants__", ()))
        for piece in _pieces((key, value) for key, value in constants if _is_plain(value)):
            digest.update(piece)
    for piece in _pieces(state_of(module)):
        digest.update(piece)
    return digest.hexdigest()


def of_function(fn: Callable[..., Any]) -> str:
    """The full name of the function, with a hash of its code, its defaults and the constants it closes over.

    >>> of_function(lambda z: z + 1) == of_function(lambda z: z + 2), of_function(len)
    (False, 'builtins.len')
    """
    code = list(_code(fn))
    if not code:
        return full_name(fn)
    return f"{full_name(fn)} {hashlib.sha256(b'|'.join(code)).hexdigest()[:16]}"


def of_object(value: object) -> str:
    """A sha256 of the state of an object, such as a fitted estimator, and of all objects that it holds.

    >>> from sklearn.linear_model import Ridge
    >>> rows, y = np.array([[0.0], [1.0], [2.0]]), np.array([0.0, 1.0, 3.0])
    >>> of_object(Ridge().fit(rows, y)) == of_object(Ridge().fit(rows, y)), of_object(Ridge()) == of_object(Ridge(2.0))
    (True, False)
    """
    digest = hashlib.sha256()
    for piece in _state_pieces("", value, {}):
        digest.update(piece)
    return digest.hexdigest()


def _state_pieces(name: str, value: object, seen: dict[int, object]) -> Iterator[bytes]:
    """The bytes that tell the state of an object apart, part by part; an object that occurs again is only named."""
    yield f"{name}|{type(value).__module__}.{type(value).__qualname__}|".encode()
    if isinstance(value, bytes | bytearray):
        yield bytes(value)
    elif isinstance(value, np.generic) or (_is_plain(value) and not isinstance(value, tuple | list)):
        yield shown(value).encode()
    elif isinstance(value, np.ndarray) and value.dtype.kind != "O":
        yield from _pieces([(name, value)])
    elif id(value) not in seen:
        seen[id(value)] = value  # kept alive, so that no other object gets its id
        for key, part in _parts_of_state(value):
            yield from _state_pieces(f"{name}.{key}", part, seen)


def _parts_of_state(value: object) -> Iterable[tuple[object, object]]:
    """The named parts of an object: those of a container, or what pickle would keep."""
    if isinstance(value, Mapping):
        return [(str(key), part) for key, part in value.items()]
    if isinstance(value, set | frozenset):
        return enumerate(sorted(value, key=repr))
    if isinstance(value, tuple | list) or (isinstance(value, np.ndarray) and value.ndim):
        return enumerate(value)
    if isinstance(value, type) or callable(value):
        return [("code", piece) for piece in _code(value)]
    try:
        state = value.__getstate__()
    except Exception:  # compiled classes that cannot be pickled
        return ()
    return [("state", state)] if state is not None else ()


def _code(fn: object) -> Iterator[bytes]:
    if isinstance(fn, functools.partial):
        yield from _pieces([*enumerate(fn.args), *sorted(fn.keywords.items())])
        fn = fn.func
    if not inspect.isfunction(fn):
        return
    yield from compiled(fn.__code__)
    yield from _pieces(enumerate(fn.__defaults__ or ()))
    yield from _pieces(sorted((fn.__kwdefaults__ or {}).items()))
    yield from _pieces(sorted(_constants(fn).items()))


def _constants(fn: FunctionType) -> dict[str, object]:
    """The variables that the function closes over and does not write; lists, dicts and sets may be caches."""
    written = _written(fn.__code__)
    constants = {}
    for name, cell in zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True):
        with suppress(ValueError):  # not yet assigned
            if name not in written and not isinstance(cell.cell_contents, list | dict | set):
                constants[name] = cell.cell_contents
    return constants


def _written(code: CodeType) -> set[object]:
    """The names of the variables of outer functions, or for inner functions, that the code writes."""
    if _WRITES not in code.co_code[::2]:  # every other byte says what is done; to read all of it takes much longer
        return set()
    return {step.argval for step in dis.get_instructions(code) if step.opname == "STORE_DEREF"}


def compiled(code: Any) -> Iterator[bytes]:
    """The instructions, names and constants, also of inner functions; line numbers are left out."""
    yield code.co_code
    yield repr(code.co_names).encode()
    for constant in code.co_consts:
        if inspect.iscode(constant):
            yield from compiled(constant)
        elif _is_plain(constant):
            yield shown(constant).encode()


def _is_plain(value: object) -> bool:
    if isinstance(value, tuple | list | frozenset):
        return all(_is_plain(part) for part in value)
    return isinstance(value, PLAIN)


def shown(value: object) -> str:
    """A text that is the same in every process; the order of a set is not."""
    return repr(sorted(map(repr, value))) if isinstance(value, frozenset) else repr(value)


def bytes_of(tensor: Tensor) -> bytes:
    """The numbers of a tensor as bytes, row by row, for a hash.

    >>> bytes_of(torch.ones(2, dtype=torch.float16)[::2]) == bytes_of(torch.ones(1, dtype=torch.float16))
    True
    """
    # A copy: contiguous() keeps the stride of a single number, and view(torch.uint8) needs a stride of one.
    flat = tensor.detach().cpu().clone(memory_format=torch.contiguous_format).reshape(-1)
    return flat.view(torch.uint8).numpy().tobytes()


def _pieces(entries: Iterable[tuple[object, object]]) -> Iterator[bytes]:
    """The bytes that tell entries apart; quantised modules keep tuples of tensors and plain values in their state."""
    for name, entry in entries:
        if isinstance(entry, tuple | list):
            yield from _pieces((f"{name}.{i}", part) for i, part in enumerate(entry))
        elif isinstance(entry, Tensor):
            yield f"{name}|{tuple(entry.shape)}|{entry.dtype}|".encode()
            yield bytes_of(entry.dequantize() if entry.is_quantized else entry.to_dense())
        elif isinstance(entry, Mapping):
            yield from _pieces((f"{name}.{key}", entry[key]) for key in sorted(entry, key=str))
        elif hasattr(entry, "__array__") and hasattr(entry, "dtype"):  # NumPy, JAX
            array = np.ascontiguousarray(entry)
            yield f"{name}|{array.shape}|{array.dtype}|".encode()
            yield array.tobytes() if array.dtype.kind in "biufcV" else b""
        elif callable(getattr(entry, "get_weights", None)):  # Keras
            yield f"{name}|{type(entry).__qualname__}|".encode()
            yield from _pieces(enumerate(entry.get_weights()))  # type: ignore[attr-defined]
        elif isinstance(entry, nn.Module):
            yield f"{name}|{of_module(entry)}|".encode()
        elif inspect.isfunction(entry):  # without its closure, which may lead back here
            yield f"{name}|{full_name(entry)}|".encode()
            yield from compiled(entry.__code__)
        elif _is_plain(entry):
            yield f"{name}|{shown(entry)}|".encode()
        else:  # without its repr, which may show an address
            yield f"{name}|{type(entry).__module__}.{type(entry).__qualname__}|".encode()
