"""What the instructions of a function read, and what they write, without running them.

A container that the code changes may be a cache, and an attribute that it assigns may count calls. Neither tells models
apart. Where the instructions do not show which container is changed, all that the function reads may be it.
"""

from __future__ import annotations

import dis
import inspect
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from types import CodeType, FunctionType, ModuleType

__all__ = ["CONTAINERS", "assigned", "changed", "names", "reads"]

CONTAINERS = (list, dict, set, deque, bytearray)
_MUTATORS = {"append", "appendleft", "add", "update", "setdefault", "pop", "popleft", "popitem", "extend", "insert"}
_MUTATORS |= {"clear", "remove", "discard"}
_LOADS = ("LOAD_ATTR", "LOAD_METHOD", "LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF", "LOAD_CLOSURE")
_ATTRIBUTES = ("LOAD_ATTR", "LOAD_METHOD")
_SUBSCRIPTS = {"STORE_SUBSCR": 1, "DELETE_SUBSCR": 1, "STORE_SLICE": 2}  # how far below the top the container is
_UNCERTAIN = {dis.opname[number] for number in (*dis.hasjrel, *dis.hasjabs)} | {"SWAP", "YIELD_VALUE", "RETURN_VALUE"}
_NEW = ("BINARY_OP", "UNARY_", "BUILD_", "COMPARE_OP", "LOAD_CONST")  # what these make is no container from elsewhere


def steps(code: CodeType) -> Iterator[dis.Instruction]:
    """The instructions of a function and of all functions that are defined in it."""
    for each in _codes(code):
        yield from dis.get_instructions(each)


def names(code: CodeType) -> set[str]:
    """The attributes that a function reads, of anything, and what it imports from modules.

    >>> sorted(names((lambda a: a.b(a.c)).__code__))
    ['b', 'c']
    """
    return {str(step.argval) for step in steps(code) if step.opname in (*_ATTRIBUTES, "IMPORT_FROM")}


def assigned(codes: Iterable[CodeType]) -> set[str]:
    """The attributes that functions assign, of anything."""
    return {str(step.argval) for code in codes for step in steps(code) if step.opname == "STORE_ATTR"}


def changed(codes: Iterable[CodeType]) -> set[str]:
    """The attributes and variables whose list, dict or set the functions may change, and perhaps a few more.

    >>> def inside(z):
    ...     z = z.clone()
    ...     z[0] = CONSTANTS["a"]
    ...     CACHE[len(z)] = z
    >>> "CACHE" in changed([inside.__code__]), "CONSTANTS" in changed([inside.__code__])
    (True, False)
    """
    return set().union(*(_changed(each) for code in codes for each in _codes(code)))


def reads(fn: FunctionType, beyond: bool = True) -> Iterator[tuple[str, object]]:
    """The variables that a function closes over and does not write, and if `beyond` the globals and imports too."""
    all_steps = list(steps(fn.__code__))
    written = {step.argval for step in all_steps if step.opname in ("STORE_DEREF", "STORE_GLOBAL")}
    for name, cell in zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True):
        with suppress(ValueError):  # not yet assigned
            if name not in written:
                yield name, cell.cell_contents
    if not beyond:
        return
    for name in sorted({step.argval for step in all_steps if step.opname in ("LOAD_GLOBAL", "LOAD_NAME")} - written):
        if name in fn.__globals__:
            yield name, fn.__globals__[name]
    for step in all_steps:
        if step.opname == "IMPORT_NAME":
            relative = step.argval not in sys.modules and fn.__globals__.get("__package__")
            module = sys.modules.get(f"{relative}.{step.argval}" if relative else step.argval)
            if module is not None:
                yield f"import {step.argval}", module


def members(module: ModuleType, wanted: Iterable[str]) -> list[tuple[str, object]]:
    """What a module holds under these names."""
    return [(name, vars(module)[name]) for name in sorted(wanted) if name in vars(module)]


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if inspect.iscode(constant):
            yield from _codes(constant)


def _changed(code: CodeType) -> set[str]:
    """For every instruction that changes a container: what was read to find that container."""
    instructions = list(dis.get_instructions(code))
    found: set[str] = set()
    for place, step in enumerate(instructions):
        below = _SUBSCRIPTS.get(step.opname)
        if step.opname in _ATTRIBUTES and step.argval in _MUTATORS:
            below = 0
        if below is not None:
            roots = _roots(instructions, place, below, frozenset())
            found |= _loaded(instructions) if roots is None else roots
    return found


def _roots(instructions: list[dis.Instruction], place: int, below: int, seen: frozenset[str]) -> set[str] | None:
    """The names that were read to make what lies so far below the top of the stack; None if that is not certain."""
    if place > 1 and instructions[place - 1].opname == instructions[place - 2].opname == "SWAP":  # a[b] += c
        place, below = place - 2, 2
    start, stop, height = place, None, 0  # counted from the top of the stack before this place
    while height > -1 - below:
        stop = start if stop is None and height == -below else stop  # the value is made, and nothing lies on it
        start -= 1
        if start < 0 or instructions[start + 1].is_jump_target or instructions[start].opname in _UNCERTAIN:
            return None
        height -= dis.stack_effect(instructions[start].opcode, instructions[start].arg)
    used = instructions[start:stop]
    if used[-1].opname.startswith(_NEW):
        return set()
    found = _loaded(used)
    for local in {step.argval for step in used if step.opname.startswith("LOAD_FAST")} - seen:
        for index, step in enumerate(instructions):
            if step.opname.startswith("STORE_FAST") and step.argval == local:
                deeper = _roots(instructions, index, 0, seen | {local})
                if deeper is None:
                    return None
                found |= deeper
    return found


def _loaded(instructions: Iterable[dis.Instruction]) -> set[str]:
    return {str(step.argval) for step in instructions if step.opname in _LOADS}
