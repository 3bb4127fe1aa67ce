"""Several methods on one input: the same features for all, and one ledger for all methods that can read it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from inspect import signature
from types import MappingProxyType
from typing import Any, Unpack

from torch import nn

from gralis.api.signature import keywords_of
from gralis.checks import several
from gralis.errors import bad
from gralis.kernels import Gaussian
from gralis.methods.registry import FROM_LEDGER, METHODS
from gralis.methods.settings import MethodKeywords, MethodSettings
from gralis.results import Attribution

__all__ = ["run"]


@keywords_of(MethodSettings)
def run(
    names: Iterable[str],
    model: object,
    x: object,
    *,
    kernel: object = Gaussian(0.75),
    layer: str | nn.Module | None = None,
    options: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
    **keywords: Unpack[MethodKeywords],
) -> dict[str, Attribution]:
    """The attributions of several methods, by name, over the same features; those in `FROM_LEDGER` share one ledger.

    Parameters
    ----------
    names : iterable of str
        Names of methods, which are the keys of `METHODS`. A single name is allowed.
    model : object
        The model F, in any form that `gralis.explain` takes.
    x : object
        One input, without a batch axis.
    kernel : Kernel, default=Gaussian(0.75)
        The kernel of the explanation that is made for the methods in `FROM_LEDGER`.
    layer : str, torch.nn.Module or None, default=None
        The layer for the methods that have this keyword, such as `gradcam`. None leaves the choice to them.
    options : mapping from str to mapping, default={}
        Further keywords of single methods, by name: `options={"lime": {"ridge": 0.5}}`.

    Returns
    -------
    dict from str to Attribution

    Examples
    --------
    >>> import torch
    >>> attributions = run(["gralis", "occlusion"], lambda z: z @ torch.tensor([1.0, -2.0]), torch.ones(2))
    >>> {name: attribution.values.round(6).tolist() for name, attribution in attributions.items()}
    {'gralis': [1.0, -2.0], 'occlusion': [1.0, -2.0]}
    """
    chosen = (names,) if isinstance(names, str) else several(names, "names", "methods.run", "a list of methods")
    if not isinstance(options, Mapping) or not all(isinstance(further, Mapping) for further in options.values()):
        raise bad("options", "methods.run", "a dict from methods to dicts of their keywords", repr(options)[:200])
    for name in [*chosen, *options]:
        if not isinstance(name, str) or name not in METHODS:
            raise bad("names", "methods.run", f"made of {', '.join(map(repr, METHODS))}", repr(name))
    settings = MethodSettings.of(run, keywords)
    if settings.ledger is None and FROM_LEDGER & set(chosen):
        settings = replace(settings, ledger=settings.explain(model, x, kernel))
    if settings.ledger is not None and settings.features is None:
        settings = replace(settings, features=settings.ledger.features)
    attributions = {}
    for name in chosen:
        method: Callable[..., Attribution] = METHODS[name]  # which may have further keywords
        has_layer = layer is not None and "layer" in signature(method).parameters
        further = {**({"layer": layer} if has_layer else {}), **options.get(name, {})}
        attributions[name] = method(model, x, **vars(settings), **further)
    return attributions
