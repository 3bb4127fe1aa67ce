"""A .pt2 program is code: three programs that do more than compute are never handed to torch without the option."""

from __future__ import annotations

import contextlib
import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from gralis.cli.app import run
from gralis.cli.model import load_model
from gralis.errors import GralisError


class Linear(torch.nn.Module):
    def forward(self, x):
        return x * 2.0


class Filled(torch.nn.Module):
    def forward(self, x):
        return x * torch.zeros(4, dtype=torch.uint8).fill_(7).sum()


def exported(model: torch.nn.Module, path: Path) -> Path:
    free = ({0: torch.export.Dim("batch")},)
    torch.export.save(torch.export.export(model, (torch.ones(2, 3),), dynamic_shapes=free), path)
    return path


def altered(path: Path, change: Callable[[bytes], bytes]) -> Path:
    """The program with another text of its graph."""
    with zipfile.ZipFile(path) as old:
        contents = {name: old.read(name) for name in old.namelist()}
    graph = next(name for name in contents if name.endswith("models/model.json"))
    assert change(contents[graph]) != contents[graph]
    contents[graph] = change(contents[graph])
    with zipfile.ZipFile(path, "w") as new:
        for name, content in contents.items():
            new.writestr(name, content)
    return path


def with_guard(folder: Path) -> Path:
    """A guard that looks like a comparison of shapes and holds a text, which torch writes into source code."""
    guard = b"L['x'].size()[0] >= __import__('os').mkdir('owned')"
    program = exported(Linear(), folder / "guard.pt2")
    return altered(program, lambda old: old.replace(b'"guards_code": []', b'"guards_code": ["' + guard + b'"]'))


def with_name(folder: Path) -> Path:
    """An input whose name is an expression, which torch writes into the signature of a function."""
    name = b"\"x=__import__('os').mkdir('owned')\""
    return altered(exported(Linear(), folder / "name.pt2"), lambda old: old.replace(b'"x"', name))


def with_operators(folder: Path) -> Path:
    """Operators that are registered and ordinary; together they write to a file."""
    (folder / "precious").write_bytes(b"\1\1\1\1")
    arguments = {
        "filename": {"as_string": str(folder / "precious")},
        "shared": {"as_bool": True},
        "size": {"as_int": 4},
    }

    def change(old: bytes) -> bytes:
        content = json.loads(old)
        node = content["graph_module"]["graph"]["nodes"][0]
        node["target"] = node["target"].replace("zeros", "from_file")
        given = [{"name": name, "arg": value, "kind": 1} for name, value in arguments.items()]
        node["inputs"] = given + [each for each in node["inputs"] if each["name"] == "dtype"]
        return json.dumps(content).encode()

    return altered(exported(Filled(), folder / "operators.pt2"), change)


def harmed(folder: Path) -> bool:
    precious = folder / "precious"
    return (folder / "owned").exists() or (precious.exists() and precious.read_bytes() != b"\1\1\1\1")


@pytest.mark.parametrize("make", [with_guard, with_name, with_operators])
def test_no_program_reaches_torch_without_the_option(tmp_path, monkeypatch, capsys, make) -> None:
    program = make(tmp_path)
    monkeypatch.chdir(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(torch.export, "load", lambda *_, **__: pytest.fail("torch loads the program"))
        with pytest.raises(GralisError, match=r"is a program, which can run any code.*--allow-pickle"):
            load_model(str(program))
        (tmp_path / "table.csv").write_text("a,b,c\n1,2,3\n")
        for command in (("explain", "--data", "table.csv", "--row", "0"), ("batch", "table.csv", "--out", "results")):
            assert run([*command, "--model", str(program)]) == 2
            assert "--allow-pickle" in capsys.readouterr().err
        assert not harmed(tmp_path)
    with contextlib.suppress(GralisError, TypeError):  # the trap works: it is the refusal that protects
        load_model(str(program), allow_pickle=True)(torch.ones(2, 3))
    assert harmed(tmp_path)
