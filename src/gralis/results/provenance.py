"""The versions, hashes and options of an explanation. Together with the model they suffice to compute it again."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np
import scipy
import torch

from gralis.kernels import Kernel, to_dict
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
    """The versions, the hashes, and every choice that was made for one target of a problem."""
    return {
        "gralis": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "hashes": hashes,
        "target": describe(problem.targets[target]),
        "class": problem.class_of(problem.targets[target]),
        "baseline": problem.baselines.name,
        "features": repr(problem.features),
        "choices": list(problem.choices),  # what was decided for the user, in sentences
        "kernels": [to_dict(kernel, problem.n_features) for kernel in kernels],
        "plan": plan.name,
        "plan_options": plan.options(),
        "layer": problem.layer,
        "discrete": [problem.features.names[int(i)] for i in np.flatnonzero(problem.features.discrete)],
        "input_dtype": [str(dtype).removeprefix("torch.") for dtype in problem.input_dtypes],
        "dtype": ", ".join(dict.fromkeys(str(dtype).removeprefix("torch.") for dtype in problem.dtypes)),
        "asked_together": {"inputs": n_inputs, "targets": len(problem.targets)},  # on the same rays
        **{field.name: getattr(options, field.name) for field in fields(options)},
    }
