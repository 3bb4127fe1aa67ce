"""A JAX function as a gralis Model: compiled once for every size of batch, differentiated by jax.vjp."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from gralis.errors import GralisError, bad
from gralis.models.failures import full_name, kind
from gralis.models.framework import FrameworkModel, Weights
from gralis.models.points import call, rebuild
from gralis.models.protocol import Points
from gralis.targets import Target, check

__all__ = ["JaxFunction", "JaxPass", "jax_model"]

_LEAST_ROWS = 8  # smaller batches are filled up to this size


def jax_model(fn: Callable[..., Any], target: Target = None, *, dtype: torch.dtype | None = None) -> FrameworkModel:
    """F(point) = target(fn(point)), for a JAX function (rows, *shape) -> (rows,) or (rows, classes, ...).

    Batches are filled up to powers of two, so that few programs are compiled. The compiled programs stay with the
    adapter, so make it once and explain often.

    Parameters
    ----------
    fn : callable
        A function written with jax.numpy throughout. Bind the parameters of a network first, for instance with
        `functools.partial(network.apply, parameters)`.
    target : int, tuple of int, callable or None, default=None
        What F reads off the outputs: None if fn returns one number per row, otherwise an index, a readout from
        `gralis.targets`, or a function that receives the JAX arrays that fn returns.
    dtype : torch.dtype or None, default=None
        `torch.float64` computes in float64 inside these calls, whatever JAX's x64 mode is. None computes in float32,
        or in the dtype of the points if the x64 mode is on. The mode itself is left as it is.

    Returns
    -------
    FrameworkModel

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> model = jax_model(lambda x: jnp.stack([x.sum(1), (x**2).sum(1)], axis=1), target=1)
    >>> model.value_and_gradient(torch.tensor([[1.0, 3.0]]))
    (tensor([10.]), tensor([[2., 6.]]))
    """
    if isinstance(fn, type) or not callable(fn):
        raise bad("fn", "models.jax", "a function of JAX arrays", kind(fn))
    if not any(dtype is each for each in (None, torch.float32, torch.float64)):
        raise bad("dtype", "models.jax", "None, torch.float32 or torch.float64", repr(dtype))
    return FrameworkModel(JaxFunction(fn, dtype), check(target, "models.jax"), fn)


class JaxFunction:
    """The compiled forward, and the compiled forward with its pull-back."""

    advice = "(Inside models.jax a function must be written with jax.numpy throughout.)"

    def __init__(self, fn: Callable[..., Any], dtype: torch.dtype | None, name: str | None = None) -> None:
        try:
            import jax
        except ImportError as error:
            raise GralisError('A JAX function needs JAX: pip install "gralis[jax]".') from error

        forward = partial(call, fn)
        self.name = name or full_name(fn)
        self._jax = jax
        self._dtype = dtype
        self._forward = jax.jit(forward)
        # The pull-back is itself a tree of arrays, so it can leave the compiled function and enter the next.
        self._linear = jax.jit(lambda points: jax.vjp(forward, points))
        self._pull = jax.jit(lambda pull, weights: pull(weights)[0])

    @property
    def dtype(self) -> torch.dtype | None:
        """float32, as JAX computes by default; with x64 on, that of the points."""
        return self._dtype or (None if self._jax.config.jax_enable_x64 else torch.float32)

    def precision(self) -> AbstractContextManager[Any]:
        """JAX's x64 mode for the calls inside, if the dtype is float64."""
        if self._dtype != torch.float64:
            return nullcontext()
        mode: AbstractContextManager[Any]
        if hasattr(self._jax, "enable_x64"):
            mode = self._jax.enable_x64(True)
        else:  # before JAX 0.8
            from jax.experimental import enable_x64

            mode = enable_x64()
        return mode

    def run(self, points: list[NDArray[Any]], form: Points, *, gradient: bool) -> JaxPass:
        """Run on the points, filled up with copies of the last row."""
        rows = len(points[0])
        size = max(_LEAST_ROWS, 1 << (rows - 1).bit_length())
        filled: list[Any] = [np.concatenate([leaf, np.repeat(leaf[-1:], size - rows, axis=0)]) for leaf in points]
        packed = rebuild(form, filled)
        with self.precision():
            outputs, pull = self._linear(packed) if gradient else (self._forward(packed), None)
        return JaxPass(self, outputs, pull, rows, size, tuple(form) if isinstance(form, Mapping) else ())

    def gradients(self, pull: Any, weights: Any) -> Any:
        """The pull-back applied."""
        with self.precision():
            return self._pull(pull, weights)

    @property
    def n_compilations(self) -> int:
        """How many programs have been compiled so far."""
        return int(sum(part._cache_size() for part in (self._forward, self._linear, self._pull)))


@dataclass(frozen=True, eq=False)
class JaxPass:
    """The outputs of one run of `size` rows, of which the first `rows` count, and its pull-back."""

    function: JaxFunction
    outputs: Any
    back: Any
    rows: int
    size: int
    keys: tuple[str, ...]  # of the points, if they are a dict

    def arrays(self) -> list[NDArray[Any]]:
        """The arrays in the outputs, without the rows that only fill up."""
        return [self._counted(np.asarray(part)) for part in self._tree.leaves(self.outputs)]

    def put(self, parts: list[Any]) -> Any:
        """The outputs with these parts in the places of their arrays."""
        return self._tree.unflatten(self._tree.structure(self.outputs), parts)

    def read(self, target: Callable[[Any], Any], *, gradient: bool) -> tuple[NDArray[Any], Weights]:
        """The target on JAX arrays, and its derivative; the rows that fill up are read too, and dropped."""
        import jax

        with self.function.precision():
            if not gradient:
                return self._counted(np.asarray(target(self.outputs))), []
            value, pull = jax.vjp(target, self.outputs)
            if not jax.numpy.issubdtype(value.dtype, jax.numpy.floating):
                return self._counted(np.asarray(value)), []
            weights = self._tree.leaves(pull(jax.numpy.ones_like(value))[0])
        return self._counted(np.asarray(value)), [np.asarray(weight) for weight in weights]

    def pull(self, weights: Weights) -> list[NDArray[Any]]:
        """The gradient at the points that count, leaf by leaf."""
        outputs = self._tree.leaves(self.outputs)
        full = [self._full(weight, output) for weight, output in zip(weights, outputs, strict=True)]
        gradient = self.function.gradients(self.back, self.put(full))
        if self.keys:
            gradient = tuple(gradient[key] for key in self.keys)  # a tree sorts the keys of a dict
        parts = gradient if isinstance(gradient, tuple) else (gradient,)
        return [np.asarray(part)[: self.rows] for part in parts]

    @property
    def _tree(self) -> Any:
        import jax

        return jax.tree

    def _counted(self, array: NDArray[Any]) -> NDArray[Any]:
        """The array without the rows that fill up, in a dtype that NumPy has."""
        if array.dtype.kind not in "biufc":  # bfloat16 and similar types
            array = array.astype(np.float32)
        return array[: self.rows] if array.ndim and len(array) == self.size else array

    def _full(self, weight: NDArray[Any] | None, part: Any) -> Any:
        """The weights of one output, 0 on the rows that fill up; those of integers have JAX's empty type float0."""
        import jax

        if not jax.numpy.issubdtype(part.dtype, jax.numpy.floating):
            return np.zeros(part.shape, dtype=jax.dtypes.float0)
        full = np.zeros(part.shape, dtype=part.dtype)
        if weight is not None:
            full[tuple(slice(n) for n in weight.shape)] = weight
        return full
