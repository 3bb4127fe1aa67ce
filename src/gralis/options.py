"""The options of `explain` that are not about the problem itself, their types and their checks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypedDict, TypeVar

import numpy as np
import torch

from gralis.checks import is_auto, non_negative, one_of, positive, probability, whole
from gralis.errors import bad
from gralis.plans import Plan
from gralis.rays.quadrature import NAMES as QUADRATURES

_MOST = 2**20  # nodes on a ray, and replicates; a larger number is a mistake that would run for ever

Value = TypeVar("Value")

#: The gradients of a run whose budget the user left open.
DEFAULT_BUDGET = 1024


class Choices(TypedDict, total=False):
    """The options of `explain` that other functions (cost, compare, explain_batch, multiscale, ...) pass on to it."""

    baseline: object
    features: object
    kernel: object
    plan: str | Plan
    budget: int | Literal["auto"] | None
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
    """The checked options of `explain` that are not about the problem itself.

    `automatic` says that the user left the budget open, so that a run may choose a smaller one for a slow model;
    `paced` says that it did.
    """

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
    automatic: bool = False
    paced: bool = False

    @classmethod
    def checked(cls, given: Mapping[str, Any]) -> Options:
        """The options after all checks. A bad option raises an error that says what is allowed."""
        budget, tolerance, batch_size = given["budget"], given["tolerance"], given["batch_size"]
        progress, automatic = given["progress"], isinstance(budget, str) and budget == "auto"
        is_function = callable(progress) and not isinstance(progress, type)
        if progress is not None and not isinstance(progress, bool) and not is_function:
            raise bad("progress", "explain", "None, True, False or a function of (done, total)", repr(progress))
        return cls(
            budget=DEFAULT_BUDGET if automatic else _optional(whole, budget, "budget", 1),
            tolerance=_optional(positive, tolerance, "tolerance"),
            level=probability(given["level"], "level", "explain"),
            quadrature=one_of(given["quadrature"], (None, *QUADRATURES), "quadrature", "explain"),
            n_nodes=_optional(partial(whole, most=_MOST), given["n_nodes"], "n_nodes", 1),
            replicates=_optional(partial(whole, most=_MOST), given["replicates"], "replicates", 2),
            coalition_values=bool(one_of(given["coalition_values"], (True, False), "coalition_values", "explain")),
            atol=non_negative(given["atol"], "atol", "explain"),
            max_seconds=_optional(positive, given["max_seconds"], "max_seconds"),
            seed=_seed(given["seed"]),
            batch_size=None if is_auto(batch_size) else whole(batch_size, "batch_size", 1),
            max_memory=_optional(whole, given["max_memory"], "max_memory", 1),
            on_interrupt=one_of(given["on_interrupt"], ("raise", "return"), "on_interrupt", "explain"),
            automatic=automatic,
        )


def _optional(check: Callable[..., Value], value: object, name: str, *bounds: int) -> Value | None:
    """None if the value is None, otherwise the checked value."""
    return None if value is None else check(value, name, *bounds, owner="explain")


def _seed(seed: int | None) -> int:
    """The seed, or a fresh seed if it is None. The result stores it in both cases."""
    if seed is None:
        return int(np.random.SeedSequence().generate_state(1)[0])
    return whole(seed, "seed", 0)
