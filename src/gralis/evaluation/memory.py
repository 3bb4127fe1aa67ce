"""Memory: how much a batch may use, and how much it holds at once while it is evaluated."""

from __future__ import annotations

import ctypes
import os
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

__all__ = ["Weighing", "give_back", "memory_alone", "resident_memory", "spare_memory"]

_STATM = "/proc/self/statm"  # Linux only
_BETWEEN_LOOKS = 0.0005  # seconds
_TURNS = 5  # at most, of looking at the process without a call and with it
_LONGEST_LOOK = 0.5  # seconds without the call
_CLOSE = 1.05  # times the tensors: what the process grows by beyond that is looked at again


class Weighing:
    """The most memory that the code in the block holds at once, beyond what was there when it began.

    The tensors of torch are counted one by one, those for the backward pass and temporary ones among them. If
    `since` is given, the memory of the process is looked at too, and compared with this number of bytes. It shows what
    libraries hold outside torch, and what they have not given back. Without `tensors` only the process is looked at:
    torch loads a large part of itself to count tensors, and a function of NumPy arrays has none.

    >>> with Weighing() as weighing:
    ...     kept = torch.zeros(1000, dtype=torch.float64) + 1
    >>> weighing.bytes
    16000
    """

    def __init__(self, since: int | None = None, *, tensors: bool = True) -> None:
        self.bytes, self.bytes_of_tensors = 0, 0
        self._tensors = _LiveTensors() if tensors else None
        self._resident = None if since is None else _ResidentMemory(since)

    def __enter__(self) -> Weighing:
        if self._resident is not None:
            self._resident.start()
        if self._tensors is not None:
            self._tensors.__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._tensors is not None:
            self._tensors.__exit__(kind, error, trace)  # type: ignore[no-untyped-call]
            self.bytes = self.bytes_of_tensors = self._tensors.peak
        if self._resident is not None:
            self.bytes = max(self.bytes, self._resident.stop())


def memory_alone(call: Callable[[], object], *, tensors: bool = True) -> int:
    """The memory that a call holds, without what other threads of the process hold meanwhile.

    The tensors are counted exactly. Only if the process holds more, which may be a library outside torch or another
    thread, the process is looked at without the call and with it, in turns: the least that the call added to the most
    that was there without it counts.
    """
    counted, without, quiet, seconds = 0, 0, 0, 0.0
    added: list[int] = []
    while len(added) < _TURNS and quiet < 2:
        give_back()
        before = resident_memory() or 0
        if added:
            most = before + _growth_within(before, min(seconds, _LONGEST_LOOK))
            without, quiet = max(without, most), quiet + (most - before <= (_CLOSE - 1) * min(added))
        began = time.perf_counter()
        with Weighing(max(before, without), tensors=tensors) as weighing:
            call()
        seconds = time.perf_counter() - began
        counted, added = max(counted, weighing.bytes_of_tensors), [*added, weighing.bytes]
        if min(added) <= _CLOSE * counted:
            break
    return max(counted, min(added))


def _growth_within(since: int, seconds: float) -> int:
    """By how many bytes the memory of the process grows at most within this time."""
    watcher = _ResidentMemory(since)
    watcher.start()
    time.sleep(seconds)
    return watcher.stop()


class _LiveTensors(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Adds up the storages that are made while it is active and not yet freed."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._bytes, self.peak = 0, 0
        self._alive: dict[int, weakref.ref[torch.UntypedStorage]] = {}

    def __torch_dispatch__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        out = func(*args, **(kwargs or {}))
        before = {_key(leaf) for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)}
        for leaf in tree_leaves(out):
            if isinstance(leaf, Tensor) and _key(leaf) not in before:
                self._add(leaf)
        return out

    def _add(self, tensor: Tensor) -> None:
        key, storage = _key(tensor), tensor.untyped_storage()
        if key in self._alive:
            return
        size = storage.nbytes()

        def freed(_: object) -> None:
            self._bytes -= size
            self._alive.pop(key, None)

        self._alive[key] = weakref.ref(storage, freed)
        self._bytes += size
        self.peak = max(self.peak, self._bytes)


def _key(tensor: Tensor) -> int:
    """What tells storages apart while they are alive. A sparse tensor has none."""
    return int(tensor.untyped_storage()._cdata) if tensor.layout is torch.strided else id(tensor)


class _ResidentMemory(threading.Thread):
    """Looks at the resident memory of the process again and again."""

    def __init__(self, since: int) -> None:
        super().__init__(daemon=True)
        self._done = threading.Event()
        self._since, self._most = since, since

    def run(self) -> None:
        while not self._done.wait(_BETWEEN_LOOKS):
            self._most = max(self._most, resident_memory() or 0)

    def stop(self) -> int:
        """By how many bytes the memory grew at most."""
        self._done.set()
        self.join()
        return max(self._most, resident_memory() or 0) - self._since


def resident_memory() -> int | None:
    """The bytes that the process itself has written and holds in memory now; None where the system does not say.

    Pages of files, such as the code of a library that runs for the first time, are not counted: no batch holds them.
    """
    try:
        with open(_STATM, "rb") as file:
            _, resident, of_files, *_ = map(int, file.read().split())
            return (resident - of_files) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return None


def give_back() -> None:
    """Return freed memory to the system; the C library of Linux keeps it otherwise, in pieces of many sizes."""
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (AttributeError, OSError, TypeError):  # another C library
        return


def spare_memory(device: torch.device) -> int:
    """Half of the memory that is free on the device, in bytes."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0] // 2)
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    except (ValueError, OSError, AttributeError):  # not every system says
        return 2**31
