"""Fits run on one thread of the linear algebra library.

Their matrices have a few hundred rows. Threads that wait for each other on matrices of that size take longer than one
thread alone, twenty times longer on a busy machine. The model keeps its threads.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

from threadpoolctl import LibController, ThreadpoolController

__all__ = ["one_thread"]


@contextmanager
def one_thread() -> Iterator[None]:
    """Inside the block, or inside a function that this decorates, matrices are multiplied and factored on one thread.

    The number of threads is then what it was before.
    """
    several = [(library, library.num_threads) for library in _libraries(len(sys.modules)) if library.num_threads > 1]
    try:
        for library, _ in several:
            library.set_num_threads(1)
        yield
    finally:
        for library, n_threads in several:
            library.set_num_threads(n_threads)


@lru_cache(maxsize=1)
def _libraries(n_modules: int) -> list[LibController]:
    """The libraries of linear algebra that this process has loaded; an import may bring another one."""
    return list(ThreadpoolController().select(user_api="blas").lib_controllers)
