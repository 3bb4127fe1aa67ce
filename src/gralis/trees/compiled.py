"""Functions of numbers and arrays that numba compiles if it is installed (the extra `trees`)."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

__all__ = ["Compiled", "has_numba"]


def has_numba() -> bool:
    """Whether numba can compile the loops over nodes. Without it the same sums are computed by NumPy."""
    try:
        import numba  # noqa: F401
    except ImportError:
        return False
    return True


class Compiled:
    """A function that is compiled at its first call, so that numba is imported only where trees are explained.

    Sums may be reordered, but infinities and NaN are kept.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def __call__(self, *arguments: Any) -> Any:
        return self._fast(*arguments)

    @cached_property
    def _fast(self) -> Any:
        if not has_numba():
            return self._function
        import numba

        options = {"cache": True, "nogil": True, "error_model": "numpy", "fastmath": {"reassoc", "contract", "nsz"}}
        return numba.njit(self._function, **options)

    @property
    def _numba_type_(self) -> Any:
        """What numba asks for where one compiled function calls another."""
        return self._fast._numba_type_
