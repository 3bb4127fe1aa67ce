"""A torch.export program (.pt2). Such a program is code, so it is loaded only with --allow-pickle.

Loading a program unpickles its sample inputs, evaluates shape expressions and guards as Python, writes the names of its
inputs into source code, and calls registered operators, some of which write files. A screen in front of torch would
have to know all of this for every version of torch, so there is none.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import torch
from torch import nn

from gralis.errors import GralisError

__all__ = ["load_program"]


def load_program(path: Path, *, allow_pickle: bool = False) -> nn.Module:
    """The program as a module in evaluation mode."""
    if not allow_pickle:
        raise GralisError(
            f"{path} is a program, which can run any code when it is loaded; add --allow-pickle if you trust whoever "
            f"made it, else use --model pkg.module:factory with --weights."
        )
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
