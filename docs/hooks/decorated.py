"""Functions that a decorator documents show what `help` shows: the options that they hand on, with their texts."""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import Any

import griffe


class Decorated(griffe.Extension):
    """Take the docstring of a decorated function from the running package."""

    def on_function(self, *, func: griffe.Function, **_: Any) -> None:
        if func.docstring is None or not any("_of" in str(decorator.value) for decorator in func.decorators):
            return
        module, _dot, name = func.path.rpartition(".")
        try:
            member = getattr(import_module(module), name)
        except (ImportError, AttributeError):  # a method of a class, or a package that is not installed
            return
        func.docstring.value = inspect.getdoc(member) or func.docstring.value
