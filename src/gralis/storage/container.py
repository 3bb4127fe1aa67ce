"""Files: plain arrays and a JSON text in an uncompressed zip; no pickle, written atomically, mapped on reading.

A `.gralis` file is a NumPy `.npz` (any tool can read it) with the member `meta.json` and a checksum per array.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import secrets
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from gralis.errors import GralisError

SCHEMA = 1
_ALIGNMENT = 64  # of every array in the file, so that a mapped one is as fast as one in memory
_PADDING = 0xD935  # the extra field that zip files use for this
#: What zipfile, json and the .npy reader raise on a file that is not what it should be.
_BROKEN: tuple[type[Exception], ...] = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError)
_BROKEN += (ArithmeticError, AttributeError, IndexError, KeyError, RuntimeError, TypeError, ValueError)


@contextmanager
def replacing(path: Path, *, durable: bool = False) -> Iterator[Path]:
    """A temporary file beside `path`, renamed to it in the end: never half a file, and nothing left behind.

    `durable`: the content reaches the disk before the name does.
    """
    temporary = path.parent / f".gralis-{secrets.token_hex(8)}"
    try:
        yield temporary
        if durable:
            with temporary.open("rb") as stream:
                os.fsync(stream.fileno())
        os.replace(temporary, path)
    finally:
        with suppress(OSError):  # the first error is the one to tell
            temporary.unlink(missing_ok=True)


def write_whole(path: str | Path, produce: Callable[[Path], object]) -> Path:
    """`produce` writes the file, which is there whole or not at all; an error of the disk is one sentence."""
    path = Path(path)
    if not path.parent.is_dir():
        raise GralisError(f"Cannot write {path}: the folder {path.parent} does not exist.")
    try:
        with replacing(path) as temporary:
            produce(temporary)
    except OSError as error:
        raise GralisError(f"Cannot write {path}: {error.strerror or error}.") from error
    return path


def write_text(path: str | Path, text: str) -> Path:
    """Write a text file, whole or not at all; lines end with \\n everywhere."""
    return write_whole(path, lambda temporary: temporary.write_text(text, encoding="utf-8", newline="\n"))


def write_arrays(path: str | Path, arrays: Mapping[str, NDArray[Any]], meta: Mapping[str, Any]) -> Path:
    """Write arrays and meta to path, whole or not at all."""

    def produce(temporary: Path) -> None:
        with temporary.open("xb") as stream:
            put_arrays(stream, arrays, meta)

    return write_whole(path, produce)


def put_arrays(stream: IO[bytes], arrays: Mapping[str, NDArray[Any]], meta: Mapping[str, Any]) -> None:
    """Write arrays and meta to an open file; the same content, the same bytes."""
    blobs = {name: _npy(np.asarray(array, order="C")) for name, array in arrays.items()}
    text = json.dumps(
        {"schema": SCHEMA, "sha256": {name: hashlib.sha256(b).hexdigest() for name, b in blobs.items()}, **meta},
        allow_nan=True,
    )
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        for name, blob in {"meta.json": text.encode(), **{f"{k}.npy": b for k, b in blobs.items()}}.items():
            archive.writestr(_member(name, stream.tell()), blob)


def read_arrays(path: str | Path, kind: str) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Arrays (mapped from the file) and meta of a file of this kind; every array is checked against its sha256."""
    path = Path(path)
    if not path.is_file():
        raise GralisError(f"There is no file {path}.")
    try:
        with zipfile.ZipFile(path) as archive:
            members = {info.filename: info for info in archive.infolist()}
            if any(info.compress_type != zipfile.ZIP_STORED for info in members.values()):
                raise ValueError("its parts are compressed")  # a small file must not become a large one
            meta = json.loads(archive.read("meta.json"))
            digests = meta.pop("sha256")
            schema, found = int(meta["schema"]), str(meta["kind"])
            arrays = {name: _mapped(path, archive, members[f"{name}.npy"], digest) for name, digest in digests.items()}
    except _BROKEN as error:
        raise GralisError(f"{path} is not a whole gralis file ({error}); it may be truncated or altered.") from error
    if schema not in range(1, SCHEMA + 1):
        raise GralisError(f"{path} has schema {schema}, this gralis reads up to {SCHEMA}; update gralis.")
    if found != kind:
        raise GralisError(f"{path} holds another kind of content: wanted {kind}, found {found}.")
    return arrays, meta


def _member(name: str, offset: int) -> zipfile.ZipInfo:
    """A member that begins at this offset: a fixed date (same content, same bytes), its data aligned."""
    info = zipfile.ZipInfo(name)
    padding = -(offset + 30 + len(name.encode()) + 4) % _ALIGNMENT
    info.extra = struct.pack("<HH", _PADDING, padding) + bytes(padding)
    return info


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
        if 0 in shape:
            return np.frombuffer(member.read(), dtype=dtype).reshape(shape)
    with path.open("rb") as raw:  # a local header has its own name and extra lengths, so its size is read here
        raw.seek(info.header_offset + 26)
        name_length, extra_length = np.frombuffer(raw.read(4), dtype="<u2")
    start = info.header_offset + 30 + int(name_length) + int(extra_length) + skip
    return np.memmap(path, dtype=dtype, mode="r", offset=start, shape=shape)
