"""Modules that are split over devices (`hf_device_map`): where their inputs go, and weights that are kept elsewhere.

`accelerate` puts parts of a module on several devices, or on disk. Hooks on the parts move inputs to the device of each
part, and load weights that are kept elsewhere while the part computes; between calls such weights are on the device
'meta', which has no numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

__all__ = ["input_device", "is_loaded", "state_of"]


def input_device(module: nn.Module) -> torch.device | None:
    """Where the first part of the module that reads the input computes; None for a module without tensors.

    That is the device of the input embeddings, if the module has them, and of the first parameter otherwise.

    >>> input_device(nn.Linear(2, 1)), input_device(nn.ReLU())
    (device(type='cpu'), None)
    """
    named = getattr(module, "input_device", None)
    if isinstance(named, torch.device):
        return named
    find = getattr(module, "get_input_embeddings", None)
    try:
        table = find() if callable(find) else None
    except (NotImplementedError, AttributeError):
        table = None
    for whole in (table, module):
        if isinstance(whole, nn.Module):
            for part, tensor in _in_order(whole):
                hook = _hook(part) if tensor.is_meta else None
                return tensor.device if hook is None else torch.device(hook.execution_device)
    return None


def is_loaded(module: nn.Module) -> bool:
    """Whether all parts of the module have numbers, or hooks that load them when the part computes."""
    own = ((part, name, tensor) for part in module.modules() for name, tensor in _own(part))
    return all(not tensor.is_meta or _kept(part, name) is not None for part, name, tensor in own)


def state_of(module: nn.Module) -> Iterator[tuple[str, Any]]:
    """The state of the module in the order of its names, buffers that are not saved included.

    Weights that are kept elsewhere are read when their turn comes, so that not all of them are in memory at once.
    """
    elsewhere = {
        f"{prefix}.{name}" if prefix else name: (part, name)
        for prefix, part in module.named_modules(remove_duplicate=False)
        for name, tensor in _own(part)
        if tensor.is_meta
    }
    state: dict[str, Any] = {**dict(module.named_buffers()), **module.state_dict()}
    for path in sorted(state):
        kept = _kept(*elsewhere[path]) if path in elsewhere else None
        yield path, state[path] if kept is None else kept


def _in_order(module: nn.Module) -> Iterator[tuple[nn.Module, Tensor]]:
    """All parameters with the parts that hold them, then all buffers."""
    yield from ((part, tensor) for part in module.modules() for tensor in part.parameters(recurse=False))
    yield from ((part, tensor) for part in module.modules() for tensor in part.buffers(recurse=False))


def _own(part: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """The parameters and the buffers of a part, without those of its own parts."""
    yield from part.named_parameters(recurse=False)
    yield from part.named_buffers(recurse=False)


def _hook(part: nn.Module) -> Any:
    """The hook of accelerate that places this part, if there is one; several hooks stand in a sequence."""
    hook = getattr(part, "_hf_hook", None)
    several = getattr(hook, "hooks", None) or [hook]
    return next((each for each in several if getattr(each, "execution_device", None) is not None), None)


def _kept(part: nn.Module, name: str) -> Tensor | None:
    """The weight that a hook loads when the part computes."""
    weights = getattr(_hook(part), "weights_map", None)
    try:
        found = None if weights is None else weights[name]
    except KeyError:
        return None
    return found if isinstance(found, Tensor) else None
