"""With what an explanation was made: enough, with the model, to make it again."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, is_dataclass
from typing import Any

import numpy as np
import scipy
import torch

from gralis.kernels import Kernel
from gralis.options import Options
from gralis.plans import Plan
from gralis.problem import Problem
from gralis.targets import describe
from gralis.version import __version__


def provenance(
    problem: Problem,
    target: int,
    kernels: Sequence[Kernel],
    plan: Plan,
    options: Options,
    *,
    hashes: Mapping[str, str],
    n_inputs: int,
) -> dict[str, Any]:
    """Of one target of a problem: versions, hashes, and every choice that was made."""
    return {
        "gralis": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "hashes": hashes,
        "target": describe(problem.targets[target]),
        "baseline": problem.baselines.name,
        "features": repr(problem.features),
        "kernels": [repr(kernel) for kernel in kernels],
        "plan": plan.name,
        "plan_options": _plan_options(plan),
        "layer": problem.layer,
        "input_dtype": [str(leaf.dtype).removeprefix("torch.") for leaf in problem.x],
        "dtype": ", ".join(dict.fromkeys(str(dtype).removeprefix("torch.") for dtype in problem.dtypes)),
        "asked_together": {"inputs": n_inputs, "targets": len(problem.targets)},  # on the same rays
        **asdict(options),
    }


def _plan_options(plan: Plan) -> dict[str, Any]:
    """What the plan was made with, so that it can be made again."""
    if not is_dataclass(plan):
        return {}
    known = {f.name: getattr(plan, f.name) for f in fields(plan) if f.name != "name"}
    return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in known.items()}
