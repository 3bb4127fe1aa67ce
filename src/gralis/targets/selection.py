"""From the outputs of a model to one number per row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor

from gralis.errors import GralisError
from gralis.targets.outputs import as_tensor, kind_of, position, shape_in_rows
from gralis.targets.readouts import describe
from gralis.targets.target import Target, check

__all__ = ["select", "total"]


def select(outputs: object, target: Target, owner: str = "explain") -> Tensor:
    """One number per row, (rows,), from whatever the model returned; the graph of the gradient is kept.

    Parameters
    ----------
    outputs : object
        What the model returned: a tensor, an object with `.logits`, or anything that a function as target accepts.
    target : Target
        None, an index, a tuple of indices, or a function of the outputs.
    owner : str, default='explain'
        The function that error messages name.

    Returns
    -------
    Tensor of shape (rows,)

    Examples
    --------
    >>> import torch
    >>> select(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), -1)
    tensor([2., 4.])
    """
    target = check(target, owner)
    if callable(target):
        return _called(outputs, target)
    tensor = as_tensor(outputs, f"target={target!r}")
    if tensor.ndim == 0:
        raise GralisError("The model returns a single number for the whole batch; it must return one per row.")
    if target is None:
        return _scalar(tensor)
    if isinstance(target, tuple):
        return _indexed(tensor, target)
    if tensor.ndim == 1:
        raise GralisError(f"The model returns one number per row, so target={target} has no choice; use target=None.")
    if tensor.ndim > 2:
        raise GralisError(
            f"target={target} does not give one number per row: the model returns outputs of shape "
            f"{shape_in_rows(tensor)}; use a tuple of {tensor.ndim - 1} indices, or a function of the outputs"
            f"{' (and give x without its batch axis, if it has one)' if tensor.shape[1] == 1 else ''}."
        )
    return _indexed(tensor, (target,))


def total(outputs: Any) -> Tensor:
    """The sum of all outputs of a row, which depends on everything on which any output depends."""
    tensor = as_tensor(outputs, "target='all'")
    return tensor.flatten(1).sum(1) if tensor.ndim > 1 else _scalar(tensor)


def _scalar(outputs: Tensor) -> Tensor:
    if outputs.ndim == 1:
        return outputs
    if outputs.ndim == 2 and outputs.shape[1] == 1:
        return outputs[:, 0]
    if outputs.ndim == 2:
        n = outputs.shape[1]
        what, choice = f"{n} outputs per row", f"target=k (0..{n - 1}), a tuple"
    else:
        what, choice = f"outputs of shape {shape_in_rows(outputs)}", f"a tuple of {outputs.ndim - 1} indices"
    raise GralisError(f"The model returns {what}; choose one with {choice}, or a function from gralis.targets.")


def _indexed(outputs: Tensor, indices: tuple[int, ...]) -> Tensor:
    if len(indices) != outputs.ndim - 1:
        raise GralisError(
            f"target={indices} has {len(indices)} indices, but outputs of shape {shape_in_rows(outputs)} need "
            f"{outputs.ndim - 1} to give one number per row."
        )
    for index, size in zip(indices, outputs.shape[1:], strict=True):
        position(index, size, f"target={indices[0] if len(indices) == 1 else indices}")
    values = outputs
    for index in indices:
        values = values[:, index]
    return values


def _called(outputs: object, target: Callable[[Any], Tensor]) -> Tensor:
    try:
        values: object = target(outputs)
    except (TypeError, AttributeError) as error:
        if not isinstance(outputs, Tensor) or isinstance(target, type):
            raise GralisError(
                f"The target {describe(target)} failed on {kind_of(outputs)} outputs: {error}."
            ) from error
        raise
    rows = outputs.shape[0] if isinstance(outputs, Tensor) and outputs.ndim else None
    if isinstance(values, Tensor) and values.ndim == 1 and rows in (None, values.shape[0]):
        return values
    got = f"shape {tuple(values.shape)}" if isinstance(values, Tensor) else f"a {type(values).__name__}"
    of = f"outputs of shape {tuple(outputs.shape)}" if isinstance(outputs, Tensor) else f"{kind_of(outputs)} outputs"
    wanted = "(rows,)" if rows is None else f"({rows},)"
    raise GralisError(f"The target {describe(target)} must return a tensor {wanted} from {of}. Got {got} instead.")
