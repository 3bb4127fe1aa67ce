"""Every public function and method with arguments that work, and values of any kind to put in their place."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from hypothesis import strategies as st

import gralis

MODULES = (
    *("baselines", "canonical", "certificates", "faithfulness", "features", "games", "kernels", "many", "methods"),
    *("models", "plans", "report", "targets", "text", "views"),
)
#: What starts servers or writes into registries, and `resolve`, which the library calls with what it checked.
LEFT_OUT = {"verify", "explain_split", "register", "register_panel", "register_plot", "resolve"}
#: The classes that users construct; other classes are results, which functions return.
CLASSES = {"Features", "Gaussian", "SizeKernel", "MaskKernel", "Results", "Airport", "Glove", "Ishigami", "SobolG"}
#: The classes whose methods are called on a result.
RESULTS = {
    cls.__name__: cls
    for cls in (
        *(gralis.Attribution, gralis.Explanation, gralis.Explanations, gralis.Interactions, gralis.MultiScale),
        *(gralis.Sweep, gralis.many.Importance, gralis.many.Results),
    )
}


def model(z: torch.Tensor) -> torch.Tensor:
    return z.flatten(1).prod(1)


def net() -> torch.nn.Module:
    return torch.nn.Linear(3, 2).eval()


X = torch.linspace(0.5, 1.5, 3)


def valid(folder: Path) -> dict[str, Any]:
    """A value that works for parameters of these names."""
    explanation = gralis.explain(model, X, budget=40, progress=False)
    kept = gralis.many.Results(folder / "run")
    return {
        "Attribution": explanation.shapley(),
        "Explanation": explanation,
        "Explanations": gralis.explain_batch(model, [X, X], budget=40, progress=False),
        "Importance": gralis.global_importance(kept),
        "Interactions": explanation.interactions(),
        "MultiScale": gralis.multiscale(model, X, [gralis.features.coordinates((3,))], budget=40, progress=False),
        "Results": kept,
        "Sweep": explanation.sweep([0.5, 1.0]),
        "attribution": np.ones(3),
        "annotation": np.array([True, False, False]),
        "method": "occlusion",
        "others": [np.ones(3)],
        "rows": gralis.explain_batch(model, [X, X], budget=40, progress=False),
        "text": "One sentence. Another one.",
        "grain": "word",
        "template": "{a} and {b}",
        "slots": {"a": "x", "b": ["y", "z"]},
        "other": explanation,
        "b_n": np.ones(3),
        "b_z": 1.0,
        "pi_min": 0.5,
        "e_quad": 0.1,
        "m": 100,
        "delta": 0.05,
        "variance": 1.0,
        "reach": 2.0,
        "rule": "midpoint",
        "absolute_distance": np.ones(3),
        "squared_distance": np.ones(3),
        "smoothness": gralis.certificates.Smoothness(1.0, 1.0),
        "width": 4.0,
        "height": 3.0,
        "kernel": gralis.Gaussian(0.5),
        "call": lambda *_: [0.0],
        "model": model,
        "model_a": model,
        "model_b": model,
        "module": net(),
        "fn": lambda z: z.sum(1),
        "function": lambda z: z.sum(1),
        "value": lambda z: z.sum(1),
        "gradient": lambda z: np.ones_like(z),
        "x": X,
        "xs": [X, X],
        "X": np.linspace(0, 1, 12).reshape(4, 3),
        "inputs": torch.ones(2, 3),
        "data": np.linspace(0, 1, 12).reshape(4, 3),
        "explanation": explanation,
        "path": folder / "file",
        "out": folder / "out",
        "folder": folder,
        "labels": np.array([0, 0, 1]),
        "image": np.linspace(0, 1, 48).reshape(4, 4, 3),
        "shape": (3, 4, 4),
        "patch": 2,
        "names": ["a", "b", "c"],
        "tokens": ["a", "b", "c"],
        "k": 1,
        "n": 3,
        "sigma": 0.5,
        "levels": [3],
        "results": folder / "run",
        "n_features": 3,
        "budget": 40,
        "target": None,
        "progress": False,
    }


def doors() -> dict[str, Callable[..., Any]]:
    """Every public function, class and method of a result by its full name."""
    found: dict[str, Callable[..., Any]] = {}
    for where, module in [("gralis", gralis), *((name, getattr(gralis, name)) for name in MODULES)]:
        for name in getattr(module, "__all__", ()):
            value = getattr(module, name)
            wanted = inspect.isfunction(value) or name in CLASSES
            if wanted and name not in LEFT_OUT and _signature(value):
                found[f"{where}.{name}"] = value
    for owner, cls in RESULTS.items():
        for name, value in inspect.getmembers(cls, inspect.isfunction):
            if not name.startswith("_") and len(_signature(value)) > 1 and value.__module__.startswith("gralis"):
                found[f"{owner}.{name}"] = value
    return found


def _signature(value: Callable[..., Any]) -> list[inspect.Parameter]:
    try:
        parameters = list(inspect.signature(value).parameters.values())
    except (TypeError, ValueError):
        return []
    return [p for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]


def arguments(
    name: str, door: Callable[..., Any], known: dict[str, Any], junk: Iterator[Any], place: int
) -> dict[str, Any]:
    """What is required, with a value that works where one is known, and junk for the parameter at this place."""
    parameters = [parameter for parameter in _signature(door) if parameter.name != "self"]
    chosen = parameters[place % len(parameters)].name
    given: dict[str, Any] = {"self": known[owner]} if (owner := name.split(".")[0]) in RESULTS else {}
    for parameter in parameters:
        if parameter.name == chosen:
            given[chosen] = next(junk)
        elif parameter.default is parameter.empty or parameter.name in ("budget", "progress"):
            given[parameter.name] = known[parameter.name] if parameter.name in known else next(junk)
    return given


class Odd:
    """An object that is nothing in particular."""

    def __repr__(self) -> str:
        return "Odd()"


def odd_function(*_: Any, **__: Any) -> Any:
    return Odd()


JUNK = st.one_of(
    st.sampled_from([None, True, False, Odd(), Odd, odd_function, math.nan, math.inf, -math.inf, 1e308, 10**30, -1, 0]),
    st.sampled_from(["", "nope", "a\0b", "../x", "é\udcff", b"bytes", "auto", "all", "values"]),
    st.sampled_from([[], (), {}, set(), [[]], [None], [1, [2]], {"a": 1}, {1: 2}, (1, "a"), range(3), slice(2)]),
    st.sampled_from([Path("no/such/file"), Path("."), object(), 1j, iter([]), Ellipsis, NotImplemented]),
    st.sampled_from(
        [np.array([]), np.array(["a"]), np.array([None]), np.zeros((0, 3)), np.full(3, np.nan), np.array(1)]
    ),
    st.sampled_from([torch.empty(0), torch.ones(3, dtype=torch.complex64), torch.ones(3).bool(), torch.ones(2, 3, 4)]),
    st.sampled_from(
        [torch.empty(3, device="meta"), torch.ones(3).to_sparse(), np.ones(3, dtype="M8[s]"), np.float16(1)]
    ),
    st.integers(-5, 40),
    st.integers(2**30, 2**70),
    st.floats(),
    st.text(max_size=6),
    st.lists(st.one_of(st.integers(-3, 9), st.floats(), st.text(max_size=2), st.none()), max_size=4),
)
