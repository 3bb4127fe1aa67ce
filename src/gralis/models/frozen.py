"""While a session is open, a module is in eval mode with frozen parameters; afterwards every flag is as it was before.

Every flag counts its sessions, because sessions may nest, run in several threads, and overlap on shared submodules.
The last session that holds a flag restores the value that the first one read. A thread that trains the same module
meanwhile finds its parameters frozen, and if it writes them nevertheless, a warning says so: train a copy, or explain
one.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeAlias

import torch
from torch import Tensor, nn

from gralis.models.failures import class_of

__all__ = ["frozen"]

_Owner: TypeAlias = nn.Module | Tensor


@dataclass
class _Flag:
    """`training` of a module or `requires_grad` of a parameter, as the first session that holds it read it."""

    owner: _Owner  # a strong reference: the key of the tables below is id(owner)
    initial: bool
    holders: int = 0


@dataclass
class _Session:
    """All open sessions of one module, the flags that they hold, and how often its parameters had been written."""

    module: nn.Module
    holders: int = 0
    flags: list[_Flag] = field(default_factory=list)
    elsewhere: list[tuple[nn.Module, str, bool]] = field(default_factory=list)
    versions: list[tuple[Tensor, int]] = field(default_factory=list)


_lock = threading.Lock()
_flags: dict[int, _Flag] = {}  # entries exist only while they are held, so no id is reused
_sessions: dict[int, _Session] = {}


@contextmanager
def frozen(module: nn.Module) -> Iterator[None]:
    """Eval mode and no parameter gradients inside; everything is restored afterwards, also after an error."""
    was_training = _enter(module)
    try:
        if was_training:
            warnings.warn(
                f"The model {class_of(module)} was in train mode; it is explained in eval mode, then put back.",
                UserWarning,
                stacklevel=3,
            )
        yield
    finally:
        with _lock:
            written = _leave(module)
    if written:
        warnings.warn(
            f"The parameters of the model {class_of(module)} were written while it was explained, by another thread "
            f"or by the model itself, so the numbers belong to no single state of it; explain a copy.deepcopy of it.",
            UserWarning,
            stacklevel=3,
        )


def _enter(module: nn.Module) -> bool:
    """Hold every flag of the module; True if any part of it was switched out of train mode."""
    with _lock:
        session = _sessions.setdefault(id(module), _Session(module))
        session.holders += 1
        if session.holders > 1:
            return False
        try:
            parts = list(module.modules())
            was_training = any(part.training for part in parts)
            session.elsewhere = [
                (part, name, tensor.requires_grad)
                for part in parts
                for name, tensor in part.named_parameters(recurse=False)
                if tensor.is_meta
            ]
            session.versions = [(p, p._version) for p in module.parameters() if not p.is_inference()]
            owners: list[_Owner] = [*parts, *module.parameters()]
            for owner in owners:
                flag = _flags.setdefault(id(owner), _Flag(owner, _read(owner)))
                flag.holders += 1
                session.flags.append(flag)
                _write(owner, False)
        except BaseException:
            _leave(module)
            raise
        return was_training


def _leave(module: nn.Module) -> bool:
    """The opposite of _enter; the caller holds the lock. True at the end if parameters were written meanwhile."""
    session = _sessions[id(module)]
    session.holders -= 1
    if session.holders:
        return False
    del _sessions[id(module)]
    for flag in session.flags:
        flag.holders -= 1
        if not flag.holders:
            del _flags[id(flag.owner)]
            _write(flag.owner, flag.initial)
    for part, name, initial in session.elsewhere:  # accelerate has put new parameters in the place of the old ones
        _write(part.get_parameter(name), initial)
    return any(parameter._version != before for parameter, before in session.versions)


def _read(owner: _Owner) -> bool:
    return owner.training if isinstance(owner, nn.Module) else owner.requires_grad


def _write(owner: _Owner, on: bool) -> None:
    # The flag itself, not .eval(): an overridden train() may do more than can be undone (merge weights, ...).
    if _read(owner) == on:
        return
    if isinstance(owner, nn.Module):
        owner.training = on
    else:
        with torch.inference_mode(owner.is_inference()):  # such a tensor takes the flag only in the mode that made it
            owner.requires_grad_(on)
