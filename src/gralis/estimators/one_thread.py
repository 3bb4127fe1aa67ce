"""Fits run on one thread of the linear algebra library.

Their matrices have a few hundred rows. Threads that wait for each other on matrices of that size take longer than one
thread alone, twenty times longer on a busy machine. The model keeps its threads.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from threadpoolctl import ThreadpoolController

__all__ = ["one_thread"]


@contextmanager
def one_thread() -> Iterator[None]:
    """Inside the block, or inside a function that this decorates, matrices are multiplied and factored on one thread.

    The number of threads is then what it was before.
    """
    with _libraries().limit(limits=1, user_api="blas"):
        yield


@cache
def _libraries() -> ThreadpoolController:
    """The libraries that this process has loaded."""
    return ThreadpoolController()
