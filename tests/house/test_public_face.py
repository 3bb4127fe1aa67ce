"""What a user sees: the names of `gralis`, their signatures, and documentation for every parameter."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
from types import FunctionType, ModuleType

import pytest

import gralis

PACKAGES = [
    importlib.import_module(f"gralis.{module.name}") for module in pkgutil.iter_modules(gralis.__path__) if module.ispkg
]
PUBLIC = [
    gralis,
    *(getattr(gralis, name) for name in gralis.__all__ if isinstance(getattr(gralis, name), ModuleType)),
]


def public_members() -> dict[str, object]:
    """Every function and class that the public modules export."""
    members = {}
    for module in PUBLIC:
        for name in module.__all__:
            member = getattr(module, name)
            if isinstance(member, FunctionType | type):
                members[f"{module.__name__}.{name}"] = member
    return members


MEMBERS = public_members()


def parameters(member: object) -> list[str]:
    """The parameters of a function, or of the constructor of a class that users construct."""
    try:
        signature = inspect.signature(member)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return []
    return [name for name in signature.parameters if not name.startswith("_") and name not in ("args", "kwargs")]


def test_dir_shows_the_public_names_and_nothing_else() -> None:
    shown = [name for name in dir(gralis) if not (name.startswith("__") and name != "__version__")]
    assert sorted(shown) == sorted(gralis.__all__)


@pytest.mark.parametrize("package", [gralis, *PACKAGES], ids=lambda package: package.__name__)
def test_no_function_shadows_a_module(package: ModuleType) -> None:
    modules = {module.name for module in pkgutil.iter_modules(package.__path__)}
    shadowed = [name for name in modules if not isinstance(getattr(package, name, package), ModuleType)]
    assert not shadowed


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.__name__)
def test_every_package_lists_its_names(package: ModuleType) -> None:
    names = getattr(package, "__all__", None)
    assert names is not None
    assert list(names) == sorted(names, key=lambda name: (not name.isupper(), not name[0].isupper(), name))
    assert all(hasattr(package, name) for name in names)


@pytest.mark.parametrize("name", sorted(MEMBERS))
def test_every_parameter_is_documented(name: str) -> None:
    member = MEMBERS[name]
    family = inspect.getmro(member) if isinstance(member, type) else [member]  # a subclass adds what is new
    document = "\n".join(inspect.getdoc(each) or "" for each in family)
    missing = [p for p in parameters(member) if not re.search(rf"(^|[ ,*`]){re.escape(p)}\b", document, re.M)]
    assert not missing, f"{name} says nothing about {', '.join(missing)}"


@pytest.mark.parametrize("name", sorted(name for name, member in MEMBERS.items() if isinstance(member, FunctionType)))
def test_no_function_hides_its_options(name: str) -> None:
    kinds = [parameter.kind for parameter in inspect.signature(MEMBERS[name]).parameters.values()]  # type: ignore[arg-type]
    assert inspect.Parameter.VAR_KEYWORD not in kinds


def test_methods_of_an_explanation_document_their_parameters() -> None:
    methods = {n: m for n, m in inspect.getmembers(gralis.Explanation, inspect.isfunction) if not n.startswith("_")}
    wrong = {
        name: [p for p in parameters(method) if p != "self" and f"{p}" not in (inspect.getdoc(method) or "")]
        for name, method in methods.items()
    }
    assert not {name: missing for name, missing in wrong.items() if missing}


def test_class_names_are_used_once() -> None:
    names: dict[str, str] = {}
    for package in [gralis, *PACKAGES]:
        for module in pkgutil.iter_modules(package.__path__):
            if module.name == "__main__":
                continue
            try:
                loaded = importlib.import_module(f"{package.__name__}.{module.name}")
            except ImportError:  # an extra that is not installed
                continue
            for name, member in vars(loaded).items():
                if isinstance(member, type) and member.__module__ == loaded.__name__ and not name.startswith("_"):
                    assert names.setdefault(member.__name__, loaded.__name__) == loaded.__name__, member.__name__


def test_import_brings_the_neighbours_module_but_no_neighbour() -> None:
    code = (
        "import sys, gralis; gralis.interop.captum.Gralis; "
        "neighbours = {'shap', 'quantus', 'sklearn', 'matplotlib', 'pandas', 'pyarrow', 'ray', 'typer'}; "
        "assert not ({'numba', 'scipy.stats'} | neighbours) & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
