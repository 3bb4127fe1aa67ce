"""The methods by name: those of gralis, and those that other code registers."""

from __future__ import annotations

from collections.abc import Mapping, Set
from types import MappingProxyType

from gralis.checks import free_name, function
from gralis.methods.from_ledger import gralis, gralis_uniform, integrated_gradients, kernel_shap, lime, singles
from gralis.methods.gradcam_maps import gradcam, gradcam_lin
from gralis.methods.method import Method
from gralis.methods.occlude import occlusion
from gralis.methods.random_values import random

__all__ = ["FROM_LEDGER", "METHODS", "register"]

_methods: dict[str, Method] = {
    "gralis": gralis,
    "gralis_uniform": gralis_uniform,
    "singles": singles,
    "integrated_gradients": integrated_gradients,
    "gradcam": gradcam,
    "gradcam_lin": gradcam_lin,
    "kernel_shap": kernel_shap,
    "lime": lime,
    "occlusion": occlusion,
    "random": random,
}
_from_ledger = dict.fromkeys(("gralis", "gralis_uniform", "singles", "integrated_gradients", "kernel_shap", "lime"))
_BUILT_IN = tuple(_methods)

#: Every method by name, those that were registered included.
METHODS: Mapping[str, Method] = MappingProxyType(_methods)
#: The names of the methods that read their values from a ledger, if one is given.
FROM_LEDGER: Set[str] = _from_ledger.keys()


def register(name: str, method: Method, *, from_ledger: bool = False) -> None:
    """Let `methods.run`, the metrics that run methods, and `gralis bench` find a method of your own.

    Parameters
    ----------
    name : str
        The name of the method. It replaces a method that was registered under it before; the names of the methods of
        gralis itself are taken.
    method : callable
        A function with the signature of `gralis.methods.occlusion`, and possibly other keywords with defaults.
    from_ledger : bool, default=False
        Whether the method reads its values from an explanation that is given as `ledger=`. `methods.run` then makes
        one explanation for all such methods.

    Examples
    --------
    A registration is one line, `gralis.methods.register("shapley", shapley)`. Names of gralis itself are refused:

    >>> register("lime", lime)
    Traceback (most recent call last):
        ...
    gralis.errors.GralisError: The 'name' parameter of methods.register must be a string other than ...
    """
    owner = "methods.register"
    role = "with the signature of a method of gralis"
    _methods[free_name(name, _BUILT_IN, "name", owner)] = function(method, "method", owner, role)
    _from_ledger.pop(name, None)
    if from_ledger:
        _from_ledger[name] = None
