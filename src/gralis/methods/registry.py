"""The methods by name: those of gralis, and those that other code registers."""

from __future__ import annotations

from collections.abc import Callable, Set

from gralis.checks import function
from gralis.methods.from_ledger import gralis, gralis_uniform, integrated_gradients, kernel_shap, lime, singles
from gralis.methods.gradcam_maps import gradcam, gradcam_lin
from gralis.methods.method import Method
from gralis.methods.occlude import occlusion
from gralis.methods.random_values import random
from gralis.registry import Registry
from gralis.results import Attribution

__all__ = ["FROM_LEDGER", "METHODS", "register"]

_ALL: tuple[Callable[..., Attribution], ...] = (
    *(gralis, gralis_uniform, singles, integrated_gradients, gradcam, gradcam_lin),
    *(kernel_shap, lime, occlusion, random),
)

#: Every method by name, those that were registered included.
METHODS: Registry[Method] = Registry("methods.register", {method.__name__: method for method in _ALL})
_from_ledger = dict.fromkeys(("gralis", "gralis_uniform", "singles", "integrated_gradients", "kernel_shap", "lime"))
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
    METHODS[name] = function(method, "method", "methods.register", "with the signature of a method of gralis")
    _from_ledger.pop(name, None)
    if from_ledger:
        _from_ledger[name] = None
