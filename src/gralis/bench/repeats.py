"""Methods run again: on a perturbed image, with another seed, or on a randomised model.

A metric that runs a method again asks for one method at a time. Here they are all run together, so that those that
read a ledger share it also then, and what was run once is remembered: the metrics perturb with the image's seed, so
every method asks for the same few runs.
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
from gralis.explainers import Attribution
from gralis.methods.method import Method
from gralis.methods.several import FROM_LEDGER
from gralis.models.fingerprint import of_function, of_module


class Repeats:
    """The methods of a study on one image, remembered by (image, seed, parameters, baseline)."""

    def __init__(self, names: Sequence[str], options: Mapping[str, Any]) -> None:
        self._names, self._options = tuple(names), dict(options)
        self._known: dict[tuple[str, int, str, str, str], Attribution] = {}

    def run(
        self, names: Sequence[str], model: object, x: object, *, seed: int, **changed: Any
    ) -> dict[str, Attribution]:
        """`methods.run` with the options of the study."""
        return methods.run(names, model, x, seed=seed, **{**self._options, **changed})

    def method(self, name: str) -> Method:
        """One of them as a function that a metric can call."""

        def again(model: object, x: object, *, seed: int = 0, ledger: object = None, **changed: Any) -> Attribution:
            key = (name, seed, digest(x), fingerprint(model), repr(changed.get("baseline")))
            if key not in self._known:
                together = [one for one in self._names if one in FROM_LEDGER] if name in FROM_LEDGER else [name]
                try:
                    found = self.run(together, model, x, seed=seed, **changed)
                except GralisError:  # another one cannot: this one by itself
                    found = self.run([name], model, x, seed=seed, **changed)
                self._known.update({(one, *key[1:]): attribution for one, attribution in found.items()})
            return self._known[key]

        return again


def digest(x: object) -> str:
    """Of the numbers of one array."""
    return hashlib.sha256(np.ascontiguousarray(to_numpy(x)).tobytes()).hexdigest()


def fingerprint(model: object) -> str:
    """What tells models apart without calling them.

    >>> fingerprint(nn.ReLU()) == fingerprint(nn.ReLU()), fingerprint(nn.ReLU()) == fingerprint(nn.Tanh())
    (True, False)
    """
    return of_module(model) if isinstance(model, nn.Module) else of_function(model)  # type: ignore[arg-type]
