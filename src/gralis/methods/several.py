"""Several methods on one input: one ledger for all that can read it, the same features for all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Unpack

from torch import nn

from gralis.errors import bad
from gralis.explainers import Attribution
from gralis.kernels import Gaussian
from gralis.methods.at_random import random
from gralis.methods.from_ledger import gralis, gralis_uniform, integrated_gradients, kernel_shap, lime, singles
from gralis.methods.gradcam import gradcam, gradcam_lin
from gralis.methods.method import Method, Task, TaskWords
from gralis.methods.occlude import occlusion

METHODS: Mapping[str, Method] = MappingProxyType(
    {
        "gralis": gralis,
        "gralis_uniform": gralis_uniform,
        "singles": singles,
        "integrated_gradients": integrated_gradients,
        "gradcam": gradcam,
        "gradcam_lin": gradcam_lin,
        "kernel_shap": kernel_shap,
        "lime": lime,
        "occlusion": occlusion,
        "random": random,
    }
)
FROM_LEDGER = frozenset({"gralis", "gralis_uniform", "singles", "integrated_gradients", "kernel_shap", "lime"})
_WITH_LAYER = frozenset({"gradcam", "gradcam_lin"})


def run(
    names: Iterable[str],
    model: object,
    x: object,
    *,
    kernel: object = Gaussian(0.75),
    layer: str | nn.Module | None = None,
    options: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
    **asked: Unpack[TaskWords],
) -> dict[str, Attribution]:
    """The attributions of these methods, by name, over the same features; those in FROM_LEDGER read one ledger.

    `kernel` is that of GRALIS, `layer` that of GradCAM; `options` are further ones of single methods. `ledger`: an
    explanation of the same x and features to read; without it one is made.

    >>> import torch
    >>> found = run(["gralis", "occlusion"], lambda z: z @ torch.tensor([1.0, -2.0]), torch.ones(2))
    >>> {name: attribution.values.round(6).tolist() for name, attribution in found.items()}
    {'gralis': [1.0, -2.0], 'occlusion': [1.0, -2.0]}
    """
    chosen = [names] if isinstance(names, str) else list(names)
    for name in [*chosen, *options]:
        if name not in METHODS:
            raise bad("names", "methods.run", f"made of {', '.join(map(repr, METHODS))}", repr(name))
    task = Task.of(run, asked)
    if task.ledger is None and FROM_LEDGER & set(chosen):
        task = replace(task, ledger=task.explain(model, x, kernel))
    if task.ledger is not None and task.features is None:
        task = replace(task, features=task.ledger.features)
    found = {}
    for name in chosen:
        own = {"layer": layer} if name in _WITH_LAYER and layer is not None else {}
        method: Callable[..., Attribution] = METHODS[name]  # with options of its own
        found[name] = method(model, x, **vars(task), **{**own, **options.get(name, {})})
    return found
