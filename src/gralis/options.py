"""The options of `explain` that are not about the problem itself: what they may be, and the check."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypedDict, TypeVar

import numpy as np
import torch

from gralis.checks import whole
from gralis.errors import bad
from gralis.plans import Plan
from gralis.rays.quadrature import NAMES as QUADRATURES

Choice = TypeVar("Choice")


class Choices(TypedDict, total=False):
    """Every option that the doors beside `explain` (cost, compare, explain_batch, multiscale) hand on to it."""

    baseline: object
    features: object
    kernel: object
    plan: str | Plan
    budget: int | None
    tolerance: float | None
    level: float
    quadrature: str | None
    n_nodes: int | None
    replicates: int | None
    coalition_values: bool
    layer: object
    atol: float
    max_seconds: float | None
    seed: int | None
    batch_size: int | Literal["auto"]
    max_memory: int | None
    device: torch.device | str | None
    dtype: torch.dtype | None
    progress: bool | Callable[[int, int], None] | None
    on_interrupt: Literal["raise", "return"]


@dataclass(frozen=True)
class Options:
    """The checked options of `explain` that are not about the problem itself."""

    budget: int | None
    tolerance: float | None
    level: float
    quadrature: str | None
    n_nodes: int | None
    replicates: int | None
    coalition_values: bool
    atol: float
    max_seconds: float | None
    seed: int
    batch_size: int | None
    max_memory: int | None
    on_interrupt: Literal["raise", "return"]

    @classmethod
    def checked(cls, given: Mapping[str, Any]) -> Options:
        """Every option, or the sentence that says what it may be."""
        budget, tolerance, batch_size = given["budget"], given["tolerance"], given["batch_size"]
        progress = given["progress"]
        if progress is not None and not isinstance(progress, bool) and not callable(progress):
            raise bad("progress", "explain", "None, True, False or a function of (done, total)", repr(progress))
        return cls(
            budget=_whole(budget, "budget", 1),
            tolerance=None if tolerance is None else _number(tolerance, "tolerance", 0.0),
            level=_number(given["level"], "level", 0.0, 1.0),
            quadrature=_one_of(given["quadrature"], "quadrature", (None, *QUADRATURES)),
            n_nodes=_whole(given["n_nodes"], "n_nodes", 1),
            replicates=_whole(given["replicates"], "replicates", 2),
            coalition_values=bool(_one_of(given["coalition_values"], "coalition_values", (True, False))),
            atol=_number(given["atol"], "atol", 0.0, or_equal=True),
            max_seconds=None if given["max_seconds"] is None else _number(given["max_seconds"], "max_seconds", 0.0),
            seed=_seed(given["seed"]),
            batch_size=None if batch_size == "auto" else whole(batch_size, "batch_size", 1),
            max_memory=_whole(given["max_memory"], "max_memory", 1),
            on_interrupt=_one_of(given["on_interrupt"], "on_interrupt", ("raise", "return")),
        )


def _whole(value: object, name: str, least: int) -> int | None:
    return None if value is None else whole(value, name, least)


def _one_of(value: Choice, name: str, allowed: tuple[Choice, ...]) -> Choice:
    if not isinstance(value, str | bool | np.bool_ | None) or value not in allowed:
        raise bad(name, "explain", f"one of {', '.join(map(repr, allowed))}", repr(value))
    return value


def _number(value: object, name: str, above: float, below: float = np.inf, *, or_equal: bool = False) -> float:
    number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if not number or not (above < value < below or (or_equal and value == above)):  # type: ignore[operator]
        at_least = f"a number {'>=' if or_equal else '>'} {above:g}"
        raise bad(name, "explain", at_least if np.isinf(below) else f"{at_least} and < {below:g}", repr(value))
    return float(value)  # type: ignore[arg-type]


def _seed(seed: int | None) -> int:
    """None: a seed of its own, which is stored like any other."""
    if seed is None:
        return int(np.random.SeedSequence().generate_state(1)[0])
    return whole(seed, "seed", 0)
