"""gralis together with other packages: captum, shap, quantus and scikit-learn.

captum   `Gralis(model).attribute(...)` takes and returns what captum's methods do
shap     `to_shap` turns an explanation into a `shap.Explanation`, which shap's plots draw
quantus  `explain_func` is a function that quantus' metrics can call
sklearn  `explain_row` explains one row of a data frame under a scikit-learn pipeline

Each module is imported when it is used for the first time. The other package is imported only when a function needs it.
"""

from importlib import import_module
from types import ModuleType

__all__ = ["captum", "quantus", "shap", "sklearn"]


def __getattr__(name: str) -> ModuleType:
    if name not in __all__:
        raise AttributeError(f"module 'gralis.interop' has no attribute {name!r}; it has {', '.join(__all__)}.")
    return import_module(f"gralis.interop.{name}")


def __dir__() -> list[str]:
    return __all__
