"""Kernels in plain JSON values, as files and reports hold them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, NoReturn

from gralis.arrays import Array, Masks
from gralis.errors import GralisError, bad
from gralis.kernels.functions import MaskKernel, SizeKernel
from gralis.kernels.gaussian import Gaussian, Uniform
from gralis.kernels.kernel import Kernel
from gralis.laws import Law
from gralis.registry import Registry

__all__ = ["TableOfSizes", "UnsavedKernel", "from_dict", "register", "to_dict"]

_SHOWN = 4  # weights in the repr of a table of sizes
_REGISTERED: Registry[type[Any]] = Registry("kernels.register", {})


@dataclass(frozen=True, repr=False)
class TableOfSizes:
    """The function of a `SizeKernel` that was read from a file: its weights on the sizes 0 .. n - 1.

    Parameters
    ----------
    weights : tuple of float
        The weight of a coalition of size 0, 1, 2, ...

    Examples
    --------
    >>> table = TableOfSizes((1.0, 0.5, 0.25))
    >>> table(2), SizeKernel(table)
    (0.25, SizeKernel(fn=TableOfSizes(1, 0.5, 0.25)))
    """

    weights: tuple[float, ...]

    def __call__(self, size: int) -> float:
        if not 0 <= size < len(self.weights):
            raise GralisError(
                f"This size kernel was loaded from a file, which holds its weights for the sizes "
                f"0 .. {len(self.weights) - 1} only; size {size} is not among them."
            )
        return self.weights[size]

    def __repr__(self) -> str:
        shown = [f"{weight:g}" for weight in self.weights[:_SHOWN]]
        rest = [f"... {len(self.weights)} sizes"] if len(self.weights) > _SHOWN else []
        return f"TableOfSizes({', '.join(shown + rest)})"


@dataclass(frozen=True)
class UnsavedKernel:
    """A kernel that was Python code: a file holds its name only, and whoever needs its weights must give it again.

    Parameters
    ----------
    name : str
        How the kernel was called when it was saved.

    Examples
    --------
    >>> UnsavedKernel("my_kernel")
    UnsavedKernel(name='my_kernel')
    """

    name: str

    def bind(self, squared_distance: Array) -> Law:
        self._refuse()

    def log_weight(self, masks: Masks, squared_distance: Array) -> Array:
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise GralisError(
            f"The kernel {self.name} was Python code, which a file cannot hold; give it again: "
            f"explanation.with_kernel(kernel)."
        )


def register(name: str, kernel_class: type[Any]) -> None:
    """Let files hold kernels of a class of your own; `explain` accepts such kernels without it.

    Parameters
    ----------
    name : str
        The name under which files know the class.
    kernel_class : type
        A dataclass with the methods of `Kernel`, whose fields JSON can hold.

    Examples
    --------
    >>> @dataclass(frozen=True)
    ... class Sharper(Gaussian):
    ...     power: float = 2.0
    ...     def log_p(self, squared_distance):
    ...         return self.power * super().log_p(squared_distance)
    >>> register("sharper", Sharper)
    >>> from_dict(to_dict(Sharper(0.75), n_features=3)) == Sharper(0.75)
    True
    """
    if not (isinstance(kernel_class, type) and issubclass(kernel_class, Kernel) and is_dataclass(kernel_class)):
        allowed = "a dataclass with the methods bind and log_weight"
        raise bad("kernel_class", "kernels.register", allowed, repr(kernel_class))
    _REGISTERED[str(name)] = kernel_class


def to_dict(kernel: Kernel, n_features: int) -> dict[str, Any]:
    """The kernel in plain JSON values; `from_dict` reads them.

    Parameters
    ----------
    kernel : Kernel
        A `SizeKernel` is written as its table of weights. A function of masks, and an object of a class that is not
        registered, is written as its name, and comes back as `UnsavedKernel`.
    n_features : int
        The number of features, which is how many weights the table of a `SizeKernel` needs.

    Returns
    -------
    dict

    Examples
    --------
    >>> to_dict(Gaussian(0.75), n_features=3)
    {'type': 'gaussian', 'sigma': 0.75, 'distance': 'relative'}
    >>> to_dict(SizeKernel(lambda size: 0.5**size), n_features=3)
    {'type': 'sizes', 'weights': [1.0, 0.5, 0.25]}
    """
    if type(kernel) is Uniform:  # not isinstance: a subclass may weigh differently
        return {"type": "uniform"}
    if type(kernel) is Gaussian:
        return {"type": "gaussian", "sigma": kernel.sigma, "distance": kernel.distance}
    if name := next((name for name, known in _REGISTERED.items() if type(kernel) is known), None):
        options = {field.name: getattr(kernel, field.name) for field in fields(_REGISTERED[name])}
        return {"type": "registered", "name": name, "options": options}
    if type(kernel) is SizeKernel:
        fn = kernel.fn
        table = fn.weights if isinstance(fn, TableOfSizes) else map(float, map(fn, range(n_features)))
        return {"type": "sizes", "weights": list(table)}
    if isinstance(kernel, UnsavedKernel):
        return {"type": "forgotten", "name": kernel.name}
    code = kernel.fn if isinstance(kernel, MaskKernel) else kernel
    text = type(code).__qualname__ if type(code).__repr__ is object.__repr__ else repr(code)
    return {"type": "forgotten", "name": getattr(code, "__qualname__", text)}


def from_dict(values: Mapping[str, Any]) -> Kernel:
    """The kernel that `to_dict` wrote.

    Parameters
    ----------
    values : mapping
        What `to_dict` returned, perhaps after a way through JSON.

    Returns
    -------
    Kernel
        An `UnsavedKernel` if the kernel was Python code, or of a class that is not registered.

    Examples
    --------
    >>> from_dict({"type": "gaussian", "sigma": 0.75, "distance": "relative"})
    Gaussian(sigma=0.75, distance='relative')
    """
    if not isinstance(values, Mapping) or not isinstance(values.get("type"), str):
        raise bad("values", "kernels.from_dict", "what kernels.to_dict returns", f"a {type(values).__name__}")
    match values["type"]:
        case "registered" if values["name"] in _REGISTERED:
            kernel: Kernel = _REGISTERED[values["name"]](**values["options"])
            return kernel
        case "registered" | "forgotten":
            return UnsavedKernel(values["name"])
        case "sizes":
            return SizeKernel(TableOfSizes(tuple(values["weights"])))
        case "gaussian":
            return Gaussian(values["sigma"], values["distance"])
        case "uniform":
            return Uniform()
        case other:
            raise ValueError(f"a kernel of type {other!r}")
