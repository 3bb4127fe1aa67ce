"""The README's code runs, block by block, as a reader would paste it."""

from __future__ import annotations

from pathlib import Path

import pytest

from pages import ROOT, broken_links, n_blocks, run

README = ROOT / "README.md"


def test_readme_code_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert n_blocks(README) >= 2
    run(README)
    assert (tmp_path / "why.gralis").is_file()


def test_readme_links_exist() -> None:
    assert broken_links(README) == []
