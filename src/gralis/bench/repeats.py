"""Methods that are run again: on a perturbed image, with another seed, or on a randomised model.

A metric that runs a method again names one method at a time. `Repeats` runs all methods together, so that those that
read a ledger share it, and keeps the attributions. The metrics perturb with the seed of the image, so every method
needs the same few runs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from torch import nn

from gralis import methods
from gralis.arrays import to_numpy
from gralis.errors import GralisError
from gralis.methods import FROM_LEDGER, Method
from gralis.models.fingerprint import of_function, of_module
from gralis.results import Attribution

__all__ = ["Repeats", "digest", "fingerprint"]


class Repeats:
    """The methods of a study on one image, kept by image, seed, model and baseline."""

    def __init__(self, names: Sequence[str], options: Mapping[str, Any]) -> None:
        self._names, self._options = tuple(names), dict(options)
        self._known: dict[tuple[str, int, str, str, str], Attribution] = {}

    def run(
        self, names: Sequence[str], model: object, x: object, *, seed: int, **changed: Any
    ) -> dict[str, Attribution]:
        """`methods.run` with the options of the study, except those that are changed."""
        return methods.run(names, model, x, seed=seed, **{**self._options, **changed})

    def method(self, name: str) -> Method:
        """One of the methods, as a function that a metric can call."""

        def again(model: object, x: object, *, seed: int = 0, ledger: object = None, **changed: Any) -> Attribution:
            key = (name, seed, digest(x), fingerprint(model), repr(changed.get("baseline")))
            if key not in self._known:
                together = [other for other in self._names if other in FROM_LEDGER] if name in FROM_LEDGER else [name]
                try:
                    attributions = self.run(together, model, x, seed=seed, **changed)
                except GralisError:  # another method fails, so this one is run alone
                    attributions = self.run([name], model, x, seed=seed, **changed)
                self._known.update({(other, *key[1:]): values for other, values in attributions.items()})
            return self._known[key]

        return again


def digest(x: object) -> str:
    """The sha256 of the numbers of one array."""
    return hashlib.sha256(np.ascontiguousarray(to_numpy(x)).tobytes()).hexdigest()


def fingerprint(model: object) -> str:
    """A text that differs between models. No model is called for it.

    >>> fingerprint(nn.ReLU()) == fingerprint(nn.ReLU()), fingerprint(nn.ReLU()) == fingerprint(nn.Tanh())
    (True, False)
    """
    return of_module(model) if isinstance(model, nn.Module) else of_function(model)  # type: ignore[arg-type]
