"""A torch.export program (.pt2). Such a program is code, so without --allow-pickle it is screened before it is loaded.

Loading a program unpickles its sample inputs, evaluates shape expressions and looks operators up by name. The screen
admits plain tensors, arithmetic on shapes and registered operators, which is what torch.export.save writes for a
network. Anything else (pickled objects, compiled libraries, older formats) needs --allow-pickle.
"""

from __future__ import annotations

import ast
import io
import json
import logging
import pickle
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn

from gralis.errors import GralisError

__all__ = ["load_program", "screen"]

_PLAIN = re.compile(
    r"archive_format|archive_version|byteorder|version|\.data/\w+|extra/.*|models/model\.json"
    r"|data/weights/(weight_\d+|model_weights_config\.json)|data/constants/(tensor_\d+|model_constants_config\.json)"
)
_TENSORS = re.compile(r"data/sample_inputs/model\.pt")  # pickled, but of tensors only
_OPERATOR = re.compile(r"torch\.ops(\.\w+){2,3}|_operator\.[a-z]\w*|math\.[a-z]\w*|torch\.sym_\w+|torch\._sym_\w+")
_NODES: tuple[type[ast.AST], ...] = (
    ast.Expression,
    ast.Compare,
    ast.BoolOp,
    ast.BinOp,
    ast.UnaryOp,
    ast.Call,
    ast.Attribute,
    ast.Subscript,
)
_NODES += (ast.Name, ast.Constant, ast.Load, ast.keyword, ast.operator, ast.unaryop, ast.boolop, ast.cmpop)
_METHODS = {"size", "stride", "dim", "storage_offset", "numel"}


def load_program(path: Path, *, allow_pickle: bool = False) -> nn.Module:
    """The program as a module in evaluation mode."""
    if not allow_pickle:
        screen(path)
    level = logging.root.manager.disable
    logging.disable(logging.CRITICAL)  # torch logs a traceback before it raises
    try:
        program = torch.export.load(path)
        _require_batches(program, path)
        module: nn.Module = program.module()
    except GralisError:
        raise
    except Exception as error:
        first = str(error).partition("\n")[0]
        raise GralisError(f"{path} is not a whole torch.export program ({first}).") from error
    finally:
        logging.disable(level)
    for part in module.modules():  # an exported module has no eval() and keeps the mode it was exported in
        part.training = False
    return module


def screen(path: Path) -> None:
    """Refuse a program that could run more than a network when it is loaded."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = [name.partition("/")[2] for name in archive.namelist()]
            if len(set(members)) < len(members):
                raise _refused(path, "two members of the same name")
            for full, name in zip(archive.namelist(), members, strict=True):
                if _TENSORS.fullmatch(name):
                    torch.load(io.BytesIO(archive.read(full)), weights_only=True)
                elif not _PLAIN.fullmatch(name):
                    raise _refused(path, full)
                elif name.endswith(".json"):
                    _screen_json(path, json.loads(archive.read(full)))
    except pickle.UnpicklingError as error:
        raise _refused(path, "pickled objects") from error
    except (zipfile.BadZipFile, OSError, RuntimeError, EOFError, ValueError, KeyError) as error:
        if isinstance(error, GralisError):
            raise
        raise GralisError(f"{path} is not a whole torch.export program ({error}).") from error


def _screen_json(path: Path, content: Any) -> None:
    for key, value in _entries(content):
        if key == "use_pickle" and value:
            raise _refused(path, "pickled tensors")
        if key == "path_name" and not re.fullmatch(r"(weight|tensor)_\d+", str(value)):
            raise _refused(path, f"the member {value!r}")
        if key == "target" and isinstance(value, str) and not _OPERATOR.fullmatch(value):
            raise _refused(path, f"the operator {value!r}")
        if key == "expr_str" and not _arithmetic(str(value)):
            raise _refused(path, f"the expression {value!r}")
        if key == "guards_code" and not all(_arithmetic(str(each)) for each in value):
            raise _refused(path, "a guard that is more than arithmetic on shapes")


def _entries(content: Any) -> Iterator[tuple[str, Any]]:
    """Every key and value of nested JSON."""
    waiting = [content]
    while waiting:
        current = waiting.pop()
        if isinstance(current, dict):
            yield from current.items()
            waiting += current.values()
        elif isinstance(current, list):
            waiting += current


def _arithmetic(text: str) -> bool:
    """Whether the expression is arithmetic on symbols and shapes.

    >>> _arithmetic("Max(1, 2*s0)"), _arithmetic("L['x'].size()[0] >= 1"), _arithmetic("open('x')")
    (True, True, False)
    """
    try:
        nodes = list(ast.walk(ast.parse(text, mode="eval")))
    except (SyntaxError, RecursionError):
        return False
    return all(isinstance(node, _NODES) and _harmless(node) for node in nodes)


def _harmless(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):  # a shape method, or a function of SymPy: Symbol, Max, FloorDiv, ...
        called = node.func
        if isinstance(called, ast.Attribute):
            return called.attr in _METHODS
        return isinstance(called, ast.Name) and called.id[:1].isupper() and called.id.isalpha()
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    return not name.startswith("__")


def _refused(path: Path, what: str) -> GralisError:
    return GralisError(
        f"{path} holds {what}, and loading that can run any code; add --allow-pickle if you trust whoever made it."
    )


def _require_batches(program: Any, path: Path) -> None:
    """Refuse a program with a fixed first axis, because many points are evaluated at once."""
    inputs = set(program.graph_signature.user_inputs)
    for node in program.graph.nodes:
        value = node.meta.get("val") if node.op == "placeholder" and node.name in inputs else None
        if isinstance(value, torch.Tensor) and value.ndim and isinstance(value.shape[0], int):
            raise GralisError(
                f"{path} was exported for batches of exactly {value.shape[0]}, and an explanation evaluates many "
                f"points at once; export it again with dynamic_shapes=({{0: torch.export.Dim('batch')}},)."
            )
