"""Files of generations: what is wrong with a file or its folder is one sentence, whoever made the file."""

from __future__ import annotations

import json
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import gralis
from gralis import GralisError
from gralis.text import explain_generation, load
from text_models import network, tokenizer


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    g = explain_generation(network("gpt2"), tokenizer(bos=False), "the key is red", " good ?")
    return g.save(tmp_path_factory.mktemp("saved") / "why.zip")


def test_a_missing_folder_is_one_sentence(saved: Path, tmp_path: Path) -> None:
    g = load(saved)
    for write in (g.save, g.report):
        with pytest.raises(GralisError, match=r"Cannot write .*: the folder .* does not exist"):
            write(tmp_path / "nowhere" / "file")


def test_each_kind_of_file_names_its_reader(saved: Path, tmp_path: Path) -> None:
    with pytest.raises(GralisError, match=r"holds the explanation of an answer; gralis\.text\.load reads it"):
        gralis.load(saved)
    other = load(saved).total.save(tmp_path / "total.gralis")
    with pytest.raises(GralisError, match=r"A file of Explanation\.save is read by gralis\.load"):
        load(other)
    with pytest.raises(GralisError, match="there is no such file"):
        load(tmp_path / "nothing.zip")


@pytest.mark.parametrize(
    "change",
    [
        lambda about: about.pop("tokens"),
        lambda about: about.pop("spans"),
        lambda about: about["tokens"].append("one more"),
        lambda about: about["spans"].pop(),
        lambda about: about["spans"][0].pop(),
        lambda about: about.update(tokens=3),
    ],
)
def test_an_altered_file_is_one_sentence(change: Callable[[Any], Any], saved: Path, tmp_path: Path) -> None:
    altered = tmp_path / "altered.zip"
    with zipfile.ZipFile(saved) as before, zipfile.ZipFile(altered, "w") as after:
        for name in before.namelist():
            content = before.read(name)
            if name == "generation.json":
                about = json.loads(content)
                change(about)
                content = json.dumps(about).encode()
            after.writestr(name, content)
    with pytest.raises(GralisError, match=r"a file that Generation\.save wrote"):
        load(altered)


def test_a_small_file_does_not_become_a_large_one(saved: Path, tmp_path: Path) -> None:
    large = tmp_path / "large.zip"
    shutil.copy(saved, large)
    with zipfile.ZipFile(large, "a", zipfile.ZIP_DEFLATED) as archive, archive.open("zeros", "w") as part:
        for _ in range(260):
            part.write(bytes(2**20))
    with pytest.raises(GralisError, match="its parts are together larger than 256 MiB"):
        load(large)
