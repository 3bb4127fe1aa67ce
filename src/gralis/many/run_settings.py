"""All that the results of `explain_many` depend on, in plain text: a run continues only with the same settings."""

from __future__ import annotations

import functools
import hashlib
import json
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from gralis.arrays import real_numbers
from gralis.baselines import Sample
from gralis.features import Features
from gralis.many.block_worker import ManyOptions
from gralis.many.items import ItemStream
from gralis.models import adapt
from gralis.models.failures import full_name
from gralis.models.identity import holds_code, identity
from gralis.models.layer import Layer
from gralis.targets import describe
from gralis.version import __version__

__all__ = ["CLOCK_OPTIONS", "settings_of"]

CLOCK_OPTIONS = ("max_seconds", "on_interrupt")  # with these, a result would depend on the speed of the machine
_NO_EFFECT = {"target", "progress", "device", "max_memory", *CLOCK_OPTIONS}  # on the numbers, or named elsewhere


def settings_of(model: object, options: ManyOptions, block_size: int, stream: ItemStream) -> dict[str, Any]:
    """The settings that `run.json` keeps."""
    adapted = adapt(model, None)
    fingerprint = getattr(adapted, "fingerprint", None)
    return {
        "gralis": __version__,
        "torch": str(torch.__version__),
        "numpy": np.__version__,
        "model": str(fingerprint()) if fingerprint else type(adapted).__qualname__,
        "model.code": identity(model),
        "target": options.target if isinstance(options.target, str) else _told_apart(describe, options.target),
        "block_size": block_size,
        "ledgers": options.ledgers,
        "residuals": options.residuals,
        **{name: _text(value) for name, value in options.explain.items() if name not in _NO_EFFECT},
        "layer": _layer(model, options.explain["layer"]),
        **{f"inputs.{name}": value for name, value in stream.settings.items()},
    }


def _layer(model: object, layer: object) -> Any:
    """A layer by its name: two layers of a model may be equal."""
    return Layer.find(model, layer).name if isinstance(layer, torch.nn.Module) else _text(layer)


def _text(value: Any) -> Any:
    """A setting as JSON can hold it: an array by its sha256, code by its name and its sha256."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Features):
        content = json.dumps([value.fingerprint(), value.names, value.discrete.tolist()])
        return hashlib.sha256(content.encode()).hexdigest()
    if isinstance(value, Sample):
        return ["sample", _text(value.X), repr(value)]
    if isinstance(value, torch.Tensor):
        value = real_numbers(value, "options", "explain_many", "numbers in a dense tensor", kinds="biufc")
    if isinstance(value, np.ndarray):
        return f"{value.shape} {value.dtype} {hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()}"
    if isinstance(value, list | tuple):
        return [_text(each) for each in value]
    if isinstance(value, dict):
        return {str(key): _text(each) for key, each in value.items()}
    return _told_apart(full_name if _is_function(value) else repr, value)


def _is_function(value: object) -> bool:
    return isinstance(value, functools.partial) or (callable(value) and hasattr(value, "__qualname__"))


def _told_apart(describe: Callable[[Any], str], value: object) -> str:
    """The description without addresses, followed by a hash if code of the user's is part of the value."""
    text = re.sub(r" at 0x[0-9a-f]+", "", describe(value))
    return f"{text} {identity(value)}" if holds_code(value) else text
