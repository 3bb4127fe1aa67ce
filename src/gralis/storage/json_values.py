"""Values as JSON can hold them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

__all__ = ["plain", "strict"]


def plain(value: Any) -> Any:
    """The value as JSON can hold it: NumPy numbers and arrays made plain, anything unknown by its repr."""
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        return float(value)
    return value if value is None or isinstance(value, str) else repr(value)


def strict(value: Any) -> Any:
    """`plain`, with null for what is not a finite number: JSON has none."""
    if isinstance(value, float | np.floating):
        return float(value) if np.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): strict(each) for key, each in value.items()}
    if isinstance(value, np.ndarray):
        return strict(value.tolist())
    return [strict(each) for each in value] if isinstance(value, list | tuple) else plain(value)
