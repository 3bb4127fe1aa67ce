"""The public functions of the stages that the verification and the mutants must reach."""

from __future__ import annotations

import importlib
import inspect

from gralis.results.certified import Certified
from gralis.results.other_explainers import OtherExplainers

PACKAGES = (
    *("kernels", "laws", "plans", "estimators", "certificates", "explainers", "scales", "sobol", "faithfulness"),
)


def public_functions() -> set[str]:
    """The functions of the packages, the kernels and laws, and the methods of an explanation by stage."""
    found = set()
    for package in PACKAGES:
        module = importlib.import_module(f"gralis.{package}")
        for name in module.__all__:
            value = getattr(module, name)
            protocol = getattr(value, "_is_protocol", False)
            if inspect.isfunction(value) or (
                package in ("kernels", "laws") and inspect.isclass(value) and not protocol
            ):
                found.add(f"{package}.{name}")
    for part in (Certified, OtherExplainers):
        found |= {f"Explanation.{name}" for name in vars(part) if not name.startswith("_")}
    return found
