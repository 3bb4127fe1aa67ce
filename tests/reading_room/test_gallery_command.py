"""`gralis gallery` on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from gallery_cases import small_run
from gralis.cli import main


def test_the_command_writes_the_site(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    small_run(tmp_path / "results", n=4)
    Path("names.txt").write_text("healthy\nill\nunclear\n")
    assert main(["gallery", "results", "--labels", "names.txt", "--title", "Ward 3"]) == 0
    assert capsys.readouterr().out == "Written to gallery/index.html\n"
    assert '"Ward 3"' in Path("gallery/data/head.js").read_text()
    assert "healthy" in Path("gallery/data/rows-00000.js").read_text()
    assert main(["gallery", "results", "--out", "."]) == 2
    assert "'out' parameter of gallery" in capsys.readouterr().err
    assert main(["gallery", "nowhere"]) == 2
