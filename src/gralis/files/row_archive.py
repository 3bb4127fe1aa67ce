"""Many explanations in one `.gralis` file; arrays that several of them have in common are written once."""

from __future__ import annotations

import hashlib
import json
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gralis.checks import as_path
from gralis.errors import GralisError
from gralis.files.archive import Shared, checked, contents
from gralis.files.archive import load as load_one
from gralis.results.explanations import Explanations
from gralis.storage.container import read_arrays, write_arrays
from gralis.storage.packed import has_part

__all__ = ["ROWS", "load", "load_rows", "save_rows"]

ROWS = "explanations"


def load(path: str | Path) -> Any:
    """The explanation in a file, as it was saved, without the model; or many explanations.

    The ledger of a file of more than 64 MiB stays on disk until it is used; do not change such a file meanwhile.

    Parameters
    ----------
    path : str or Path
        A file that `Explanation.save` or `Explanations.save` wrote, or a report (HTML or JSON), which holds the saved
        explanation.

    Returns
    -------
    Explanation or Explanations
        The same numbers, bit for bit. What needs the model, such as more rays, needs `gralis.replay`.

    Raises
    ------
    GralisError
        If the file is truncated, altered, or of another kind.

    Examples
    --------
    >>> import gralis, tempfile, torch
    >>> explanation = gralis.explain(lambda z: z.prod(1), torch.ones(3))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     again = load(explanation.save(f"{folder}/why.gralis"))
    >>> repr(again) == repr(explanation)
    True
    """
    path = as_path(path, "load")
    if has_part(path, "generation.json"):
        raise GralisError(f"{path} holds the explanation of an answer; gralis.text.load reads it.")
    return load_rows(path) if path.is_file() and _kind(path) == ROWS else load_one(path)


def _kind(path: Path) -> object:
    """The kind of a file that looks like one of ours; None otherwise, and then its reader says what is wrong."""
    with suppress(Exception), zipfile.ZipFile(path) as archive:
        about = archive.getinfo("meta.json")
        if about.compress_type == zipfile.ZIP_STORED:  # a small file must not become a large one
            return json.loads(archive.read(about))["kind"]
    return None


def save_rows(explanations: Explanations, path: str | Path) -> Path:
    """Write explanations to one file, which appears whole or not at all.

    Parameters
    ----------
    explanations : Explanations
        What is saved.
    path : str or Path
        The file to be written.

    Returns
    -------
    Path
        The file.
    """
    arrays: dict[str, NDArray[Any]] = {}
    parts = []
    for one in explanations:
        own, meta = contents(one)
        where = {}
        for name, array in own.items():
            where[name] = f"shared.{_digest(array)}"
            arrays.setdefault(where[name], array)
        parts.append({"meta": meta, "arrays": where})
    return write_arrays(path, arrays, {"kind": ROWS, "labels": list(explanations.labels), "each": parts})


def load_rows(path: str | Path) -> Explanations:
    """The explanations in a file that `Explanations.save` wrote, without the model.

    Parameters
    ----------
    path : str or Path
        The file.

    Returns
    -------
    Explanations
    """
    stored, meta = read_arrays(path, ROWS)
    arrays = {name: np.array(array) for name, array in stored.items()}  # once, however many parts have them in common
    shared: Shared = {}
    try:
        each = [
            checked({name: arrays[known] for name, known in part["arrays"].items()}, part["meta"], path, shared)
            for part in meta["each"]
        ]
        return Explanations(tuple(each), tuple(map(str, meta["labels"])))
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise GralisError(f"{path} does not hold whole explanations ({error}); it may be altered.") from error


def _digest(array: NDArray[Any]) -> str:
    """What tells arrays apart: type, shape and bytes."""
    digest = hashlib.sha256(f"{array.dtype}|{array.shape}|".encode())
    digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:32]
