"""Memory: how much a batch may use, and how much autograd keeps for the backward pass."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

__all__ = ["saved_by_autograd", "spare_memory"]


@contextmanager
def saved_by_autograd() -> Iterator[dict[int, int]]:
    """The bytes that autograd saves for the backward pass inside the block, by address of their storage."""
    saved_bytes: dict[int, int] = {}

    def save(tensor: Tensor) -> tuple[Tensor, int]:
        saved_bytes[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        saved = tensor.detach()  # the tensor itself would keep its graph alive, and for ever if the model fails
        return saved, saved._version

    def restore(saved: tuple[Tensor, int]) -> Tensor:
        if saved[0]._version != saved[1]:  # with these hooks installed autograd does not check it
            raise RuntimeError("a tensor needed for the gradient has been modified by an inplace operation")
        return saved[0]

    with torch.autograd.graph.saved_tensors_hooks(save, restore):
        yield saved_bytes


def spare_memory(device: torch.device) -> int:
    """Half of the memory that is free on the device, in bytes."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0] // 2)
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    except (ValueError, OSError, AttributeError):  # not every system says
        return 2**31
