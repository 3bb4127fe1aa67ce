"""Files: plain arrays and a JSON text in an uncompressed zip; no pickle, written atomically, mapped on reading.

A `.gralis` file is a NumPy `.npz` (any tool can read it) with the member `meta.json` and a checksum per array.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gralis.errors import GralisError

SCHEMA = 1


def write_arrays(path: str | Path, arrays: Mapping[str, NDArray[Any]], meta: Mapping[str, Any]) -> Path:
    """Write arrays and meta to path: first to a temporary file beside it, then renamed, so never half a file."""
    path = Path(path)
    blobs = {name: _npy(np.ascontiguousarray(array)) for name, array in arrays.items()}
    text = json.dumps(
        {"schema": SCHEMA, "sha256": {name: hashlib.sha256(b).hexdigest() for name, b in blobs.items()}, **meta},
        allow_nan=True,
    )
    if not path.parent.is_dir():
        raise GralisError(f"Cannot write {path}: the folder {path.parent} does not exist.")
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as stream, zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
            for name, blob in {"meta.json": text.encode(), **{f"{k}.npy": b for k, b in blobs.items()}}.items():
                archive.writestr(zipfile.ZipInfo(name), blob)  # a fixed date: same content, same bytes
        os.replace(temporary, path)
    except BaseException as error:
        Path(temporary).unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise GralisError(f"Cannot write {path}: {error.strerror or error}.") from error
        raise
    return path


def read_arrays(path: str | Path, kind: str) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Arrays (mapped from the file) and meta of a file of this kind; every array is checked against its sha256."""
    path = Path(path)
    if not path.is_file():
        raise GralisError(f"There is no file {path}.")
    try:
        with zipfile.ZipFile(path) as archive:
            meta = json.loads(archive.read("meta.json"))
            digests = meta.pop("sha256")
            members = {info.filename: info for info in archive.infolist()}
            arrays = {name: _mapped(path, archive, members[f"{name}.npy"], digest) for name, digest in digests.items()}
    except (zipfile.BadZipFile, KeyError, ValueError, OSError, EOFError) as error:
        raise GralisError(f"{path} is not a whole gralis file ({error}); it may be truncated or altered.") from error
    if meta["schema"] > SCHEMA:
        raise GralisError(f"{path} has schema {meta['schema']}, this gralis reads up to {SCHEMA}; update gralis.")
    if meta["kind"] != kind:
        raise GralisError(f"{path} holds a {meta['kind']}, not a {kind}.")
    return arrays, meta


def _npy(array: NDArray[Any]) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array(stream, array, allow_pickle=False)
    return stream.getvalue()


def _mapped(path: Path, archive: zipfile.ZipFile, info: zipfile.ZipInfo, digest: str) -> NDArray[Any]:
    with archive.open(info) as member:
        if hashlib.file_digest(member, "sha256").hexdigest() != digest:  # type: ignore[arg-type]
            raise ValueError(f"checksum of {info.filename} does not match")
    with archive.open(info) as member:
        version = np.lib.format.read_magic(member)
        header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, fortran, dtype = header(member)
        skip = member.tell()
        if dtype.hasobject or fortran:
            raise ValueError(f"{info.filename} is not a plain array")
        if 0 in shape or info.compress_type != zipfile.ZIP_STORED:
            return np.frombuffer(member.read(), dtype=dtype).reshape(shape)
    with path.open("rb") as raw:  # a local header has its own name and extra lengths, so its size is read here
        raw.seek(info.header_offset + 26)
        name_length, extra_length = np.frombuffer(raw.read(4), dtype="<u2")
    start = info.header_offset + 30 + int(name_length) + int(extra_length) + skip
    return np.memmap(path, dtype=dtype, mode="r", offset=start, shape=shape)
