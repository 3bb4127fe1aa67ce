"""Decorators for functions that pass keywords on: signature and documentation then show the keywords."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection
from typing import Any, TypeVar

from gralis.api.explain import explain

Function = TypeVar("Function", bound=Callable[..., Any])

__all__ = ["keywords_of", "options_of_explain"]


def options_of_explain(*, without: Collection[str] = ()) -> Callable[[Function], Function]:
    """Replace `**options` in a function's signature by the options of `explain`, and document them.

    Parameters
    ----------
    without : collection of str
        Options of `explain` that the function does not take.
    """
    return keywords_of(explain, without=without)


def keywords_of(source: Callable[..., Any], *, without: Collection[str] = ()) -> Callable[[Function], Function]:
    """Replace `**keywords` in a function's signature by the keyword-only parameters of `source`, and document them.

    Parameters
    ----------
    source : callable
        The function, or the class with keyword-only fields, that takes the keywords in the end. The `Parameters`
        section of its docstring describes them; a class may leave some of them to the classes that it derives from.
    without : collection of str
        Keywords of `source` that the function does not take.
    """
    texts: dict[str, str] = {}
    for part in reversed(getattr(source, "__mro__", (source,))):
        texts |= _parameter_texts(inspect.cleandoc(part.__doc__ or ""))
    keywords = [p for p in inspect.signature(source).parameters.values() if p.kind is p.KEYWORD_ONLY]

    def decorate(function: Function) -> Function:
        signature = inspect.signature(function)
        named = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
        taken = {p.name for p in named} | set(without)
        added = [p for p in keywords if p.name not in taken]
        function.__signature__ = signature.replace(parameters=[*named, *added])  # type: ignore[attr-defined]
        section = "\n".join(dict.fromkeys(texts[p.name] for p in added if p.name in texts))
        document, marker, examples = inspect.cleandoc(function.__doc__ or "").partition("\nExamples\n--------")
        other = f"\nOther Parameters\n----------------\n{section}\n"
        function.__doc__ = f"{document.rstrip()}\n{other}{marker}{examples}"
        return function

    return decorate


def _parameter_texts(document: str) -> dict[str, str]:
    """The entries of a numpydoc `Parameters` section by name."""
    _, _, rest = document.partition("Parameters\n----------\n")
    section = re.split(r"\n\n[A-Z][A-Za-z ]+\n-+\n", rest)[0]
    entries = re.split(r"\n(?=\w[\w, ]* : )", section)
    return {name.strip(): entry for entry in entries for name in entry.split(" : ")[0].split(",")}
