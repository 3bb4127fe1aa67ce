"""Functions of numbers and arrays that numba compiles if it is installed (the extra `trees`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["compiled", "has_numba"]


def has_numba() -> bool:
    """Whether numba can compile the loops over nodes. Without it the same sums are computed by NumPy."""
    try:
        import numba  # noqa: F401
    except ImportError:
        return False
    return True


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, compiled at its first call. Sums may be reordered, but infinities and NaN are kept."""
    if not has_numba():
        return function
    import numba

    options = {"cache": True, "nogil": True, "error_model": "numpy", "fastmath": {"reassoc", "contract", "nsz"}}
    return numba.njit(function, **options)  # type: ignore[no-any-return]
