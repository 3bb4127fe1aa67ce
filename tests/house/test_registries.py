"""Registries: those of gralis are known to the fixture that forgets what a test registers, and keep their own names."""

from __future__ import annotations

import sys

import pytest

from gralis import GralisError
from gralis.registry import Registry


def registries() -> dict[int, Registry]:
    """Every registry that is a variable of a module of gralis."""
    modules = [module for name, module in sys.modules.items() if name.startswith("gralis.")]
    return {id(value): value for module in modules for value in vars(module).values() if isinstance(value, Registry)}


def test_what_a_test_registers_is_forgotten(nothing_stays_registered: list[dict]) -> None:
    restored = {id(entries) for entries in nothing_stays_registered}
    assert len(registries()) == 7
    assert all(id(registry.data) in restored for registry in registries().values())


def test_no_entry_of_gralis_can_be_replaced() -> None:
    for registry in registries().values():
        for name in registry:
            with pytest.raises(GralisError, match="must be a string other than the names of gralis itself"):
                registry[name] = print


@pytest.mark.parametrize("name", ["", 3, None])
def test_a_name_is_a_text(name: object) -> None:
    empty: Registry[object] = Registry("somewhere.register", {}, "title")
    with pytest.raises(GralisError, match=r"'title' parameter of somewhere\.register must be a text\. Got"):
        empty[name] = print
    assert not empty
