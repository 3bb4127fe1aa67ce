"""Signs that a model may not be a function of its input, which cost no forward.

Plans that count forwards evaluate no coalition twice, and often have no forward to spare. They ask for F(x) again only
if there is a sign: a global generator of random numbers that has moved on, or batch normalisation without running
statistics. A function that is no torch module is also asked if all its coalitions leave room in the budget.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

__all__ = ["Generators", "uses_batch_statistics"]


@dataclass(frozen=True, eq=False)
class Generators:
    """The states of the global generators of torch, NumPy and Python at one moment."""

    states: tuple[Any, ...]
    device: torch.device | None

    @classmethod
    def now(cls, device: torch.device | None) -> Generators:
        """The states at this moment.

        Parameters
        ----------
        device : torch.device or None
            Where the model runs; the generator of a GPU counts too.

        Returns
        -------
        Generators
        """
        _, keys, *place = np.random.get_state()  # noqa: NPY002
        on_gpu = [torch.cuda.get_rng_state(device)] if device is not None and device.type == "cuda" else []
        of_torch = tuple(state.numpy().tobytes() for state in (torch.get_rng_state(), *on_gpu))
        return cls((random.getstate(), np.asarray(keys).tobytes(), tuple(place), of_torch), device)

    def moved(self) -> bool:
        """Whether a random number was drawn since then, or a seed set."""
        return Generators.now(self.device).states != self.states


def uses_batch_statistics(model: object) -> bool:
    """Whether a torch module normalises by the statistics of each batch.

    Parameters
    ----------
    model : object
        The adapted model.

    Returns
    -------
    bool
        False for a model that is not a torch module.
    """
    module = getattr(model, "module", None)
    if not isinstance(module, nn.Module):
        return False
    kinds = nn.modules.batchnorm._BatchNorm
    return any(isinstance(part, kinds) and part.running_mean is None for part in module.modules())
