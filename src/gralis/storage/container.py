"""Files that hold arrays and a JSON text in an uncompressed zip, without pickle.

A `.gralis` file is a NumPy `.npz`, which any tool can read, with the member `meta.json` and a checksum per array. Files
are written atomically. A file of up to 64 MiB is read whole, and its checksums are those of the bytes in memory, so
later changes of the file have no effect. Arrays of larger files are checked and then mapped into memory.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import re
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

from gralis.checks import as_path
from gralis.errors import GralisError

__all__ = ["put_arrays", "read_arrays", "replacing", "write_arrays", "write_text", "write_whole"]

SCHEMA = 1
_ALIGNMENT = 64  # bytes; a mapped array that is aligned is as fast as one in memory
_PADDING = 0xD935  # the extra field that zip files use for this
_WHOLE = 2**26  # bytes; larger files are mapped
_KINDS = "biuf"  # of numbers; no text, no objects
#: What zipfile, json and the .npy reader raise on a file that is not what it should be.
_BROKEN: tuple[type[Exception], ...] = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError)
_BROKEN += (ArithmeticError, AttributeError, IndexError, KeyError, RuntimeError, TypeError, ValueError)


@contextmanager
def replacing(path: Path, *, durable: bool = False) -> Iterator[Path]:
    """Give a temporary file beside `path` and rename it to `path` at the end, so that no half-written file appears.

    Parameters
    ----------
    path : Path
        The file to be replaced.
    durable : bool, default=False
        Whether the content must reach the disk before the name does.
    """
    temporary = path.parent / f".gralis-{secrets.token_hex(8)}"
    try:
        yield temporary
        if durable:
            with temporary.open("rb") as stream:
                os.fsync(stream.fileno())
        os.replace(temporary, path)
    finally:
        with suppress(OSError):  # the first error is the one that the user should see
            temporary.unlink(missing_ok=True)


def write_whole(path: str | Path, produce: Callable[[Path], object]) -> Path:
    """Let `produce` write a file that appears whole or not at all.

    Parameters
    ----------
    path : str or Path
        The file to be written. Its folder must exist.
    produce : callable
        Writes the content to the path that it is called with.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    GralisError
        If the disk refuses, with its reason.
    """
    path = as_path(path)
    if not path.parent.is_dir():
        raise GralisError(f"Cannot write {path}: the folder {path.parent} does not exist.")
    try:
        with replacing(path) as temporary:
            produce(temporary)
    except OSError as error:
        raise GralisError(f"Cannot write {path}: {error.strerror or error}.") from error
    return path


def write_text(path: str | Path, text: str) -> Path:
    """Write a text file in UTF-8, whole or not at all.

    Parameters
    ----------
    path : str or Path
        The file to be written. Its folder must exist.
    text : str
        The content. Lines end with \\n on every system. Surrogates, which UTF-8 cannot represent, are written out.

    Returns
    -------
    Path
        The file.
    """
    content = text.encode("utf-8", "backslashreplace")
    return write_whole(path, lambda temporary: temporary.write_bytes(content))


def write_arrays(path: str | Path, arrays: Mapping[str, NDArray[Any]], meta: Mapping[str, Any]) -> Path:
    """Write arrays and meta to one file, whole or not at all.

    Parameters
    ----------
    path : str or Path
        The file to be written.
    arrays : mapping of str to ndarray
        The arrays by name; none may hold Python objects.
    meta : mapping
        What JSON can hold, with the key "kind", which `read_arrays` compares.

    Returns
    -------
    Path
        The file.
    """

    def produce(temporary: Path) -> None:
        with temporary.open("xb") as stream:
            put_arrays(stream, arrays, meta)

    return write_whole(path, produce)


def put_arrays(stream: IO[bytes], arrays: Mapping[str, NDArray[Any]], meta: Mapping[str, Any]) -> None:
    """Write arrays and meta to an open file. The same content gives the same bytes."""
    blobs = {name: _npy(np.asarray(array, order="C")) for name, array in arrays.items()}
    text = json.dumps(
        {"schema": SCHEMA, "sha256": {name: hashlib.sha256(b).hexdigest() for name, b in blobs.items()}, **meta},
        allow_nan=True,
    )
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        for name, blob in {"meta.json": text.encode(), **{f"{k}.npy": b for k, b in blobs.items()}}.items():
            archive.writestr(_member(name, stream.tell()), blob)


def read_arrays(
    path: str | Path, kind: str, known: re.Pattern[str] | None = None, content: bytes | None = None
) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Read the arrays and the meta of a file; every array is checked against its sha256 and its length.

    Parameters
    ----------
    path : str or Path
        A file that `write_arrays` wrote.
    kind : str
        The kind of content that is expected.
    known : re.Pattern, optional
        What the name of an array may be. A file with another array is refused.
    content : bytes, optional
        The content, if it is already in memory; the path is then only named in errors.

    Returns
    -------
    arrays : dict of str to ndarray
        The arrays by name, read-only; those of a large file are mapped.
    meta : dict
        The rest, with the keys "schema" and "kind".
    """
    path = as_path(path, "load")
    if content is None and not path.is_file():
        raise GralisError(f"There is no file {path}.")
    try:
        if content is None and path.stat().st_size <= _WHOLE:
            content = path.read_bytes()
        size = path.stat().st_size if content is None else len(content)
        with zipfile.ZipFile(path if content is None else io.BytesIO(content)) as archive:
            members = {info.filename: info for info in archive.infolist()}
            if any(info.compress_type != zipfile.ZIP_STORED for info in members.values()):
                raise ValueError("its parts are compressed")  # a small file must not become a large one
            if sum(info.file_size for info in archive.infolist()) > size:
                raise ValueError("its parts are together larger than the file")  # so they overlap
            meta = json.loads(archive.read("meta.json"))
            digests = meta.pop("sha256")
            schema, kind_in_file = int(meta["schema"]), str(meta["kind"])
            if schema in range(1, SCHEMA + 1) and kind_in_file == kind:
                if unknown := [name for name in digests if known is not None and not known.fullmatch(name)]:
                    raise ValueError(f"it holds the array {unknown[0]!r}, which is not part of such a file")
            else:
                digests = {}
            arrays = {
                name: _array(None if content is not None else path, archive, members[f"{name}.npy"], digest)
                for name, digest in digests.items()
            }
    except _BROKEN as error:
        raise GralisError(f"{path} is not a whole gralis file ({error}); it may be truncated or altered.") from error
    if schema not in range(1, SCHEMA + 1):
        raise GralisError(f"{path} has schema {schema}, this gralis reads up to {SCHEMA}; update gralis.")
    if kind_in_file != kind:
        raise GralisError(f"{path} holds another kind of content: expected {kind}, got {kind_in_file}.")
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


def _array(path: Path | None, archive: zipfile.ZipFile, info: zipfile.ZipInfo, digest: str) -> NDArray[Any]:
    """One array: in memory, or mapped from this path."""
    if path is None:
        blob = archive.read(info)
        if hashlib.sha256(blob).hexdigest() != digest:
            raise ValueError(f"checksum of {info.filename} does not match")
        shape, dtype, skip = _header(io.BytesIO(blob), info)
        return np.frombuffer(blob, dtype=dtype, offset=skip).reshape(shape)
    with archive.open(info) as member:
        if hashlib.file_digest(member, "sha256").hexdigest() != digest:  # type: ignore[arg-type]
            raise ValueError(f"checksum of {info.filename} does not match")
    with archive.open(info) as member:
        shape, dtype, skip = _header(member, info)
    if 0 in shape:
        return np.zeros(shape, dtype=dtype)
    with path.open("rb") as raw:  # the lengths in the local header may differ, so they are read here
        raw.seek(info.header_offset + 26)
        name_length, extra_length = np.frombuffer(raw.read(4), dtype="<u2")
    start = info.header_offset + 30 + int(name_length) + int(extra_length) + skip
    return np.memmap(path, dtype=dtype, mode="r", offset=start, shape=shape)


def _header(member: IO[bytes], info: zipfile.ZipInfo) -> tuple[tuple[int, ...], np.dtype[Any], int]:
    """Shape, dtype and the length of the header of an array whose numbers fill its member exactly."""
    version = np.lib.format.read_magic(member)
    header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, fortran, dtype = header(member)
    if dtype.kind not in _KINDS or fortran:
        raise ValueError(f"{info.filename} is not a plain array of numbers")
    skip = member.tell()
    if min(shape, default=0) < 0 or skip + math.prod(shape) * dtype.itemsize != info.file_size:
        raise ValueError(f"{info.filename} has the shape {shape}, which does not fit its length")
    return shape, dtype, skip
