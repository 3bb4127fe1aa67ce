"""A folder (with a space in its name) that holds what the examples of --help speak of."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

import gralis
from cli.workshop import NET, TABLE, network


def forest(path: Path) -> None:
    """A forest for the first three columns of table.csv."""
    from pandas import DataFrame
    from sklearn.ensemble import RandomForestRegressor
    from skops.io import dump

    rows = DataFrame(np.random.default_rng(0).normal((33, 1.7, 67), (9, 0.1, 9), (40, 3)), columns=list("abc"))
    rows.columns = ["age", "height", "weight"]
    dump(RandomForestRegressor(5, random_state=0).fit(rows, rows["age"] * rows["height"]), path)


@pytest.fixture(scope="session")
def furnished(tmp_path_factory) -> Path:
    """The folder as it is furnished once; tests work on copies."""
    from PIL import Image
    from safetensors.torch import save_file

    folder = tmp_path_factory.mktemp("cli") / "a folder"
    folder.mkdir()
    rng = np.random.default_rng(0)
    picture = np.kron(rng.integers(0, 255, (4, 5, 3)), np.ones((12, 12, 1))).astype(np.uint8)
    Image.fromarray(picture).save(folder / "photo.jpg", quality=95)
    Image.fromarray(picture[::-1]).save(folder / "other.png")
    (folder / "net.py").write_text(NET)
    net = network()
    torch.save(net.state_dict(), folder / "net.pt")
    save_file(net.state_dict(), folder / "net.safetensors")
    (folder / "names.txt").write_text("cat\n<img src=x onerror=alert(1)>\n[red]dog\x1b[31m\n")
    (folder / "prompt.txt").write_text("the film was good .\n\nwhere is the key ?")
    (folder / "table.csv").write_text(TABLE.replace("\\n", "\n"))
    forest(folder / "forest.skops")
    x = torch.tensor([31, 1.8, 80], dtype=torch.float64)
    gralis.explain(network("rows"), x, baseline=torch.tensor([33, 1.7, 67.0])).save(folder / "rows.gralis")
    return folder


@pytest.fixture
def folder(furnished, tmp_path, monkeypatch) -> Path:
    """A copy of the folder to work in, with a space in its name."""
    own = tmp_path / "a folder"
    shutil.copytree(furnished, own)
    monkeypatch.chdir(own)
    monkeypatch.setattr(sys, "path", [path for path in sys.path if not (Path(path) / "net.py").exists()])
    monkeypatch.delitem(sys.modules, "net", raising=False)
    return own


@pytest.fixture
def gralis_run(folder, capsys) -> Callable[..., tuple[int, str, str]]:
    """Run a command line in this process: exit code, standard output, standard error."""
    from gralis.cli.app import run

    def call(*arguments: str) -> tuple[int, str, str]:
        with torch.random.fork_rng():
            code = run([str(argument) for argument in arguments])
        said = capsys.readouterr()
        return code, said.out, said.err

    return call
