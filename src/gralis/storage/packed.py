"""Several files in one zip, which is written whole and read within limits."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from gralis.storage.container import write_whole

__all__ = ["BROKEN", "has_part", "read_parts", "write_parts"]

_MOST_UNPACKED = 256 * 2**20  # bytes; more is stored without compression, so that no small file can stand for it
_KINDS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # the decoders of others have no limits
#: What `read_parts` raises on a file that is not what it should be.
BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, ValueError)


def write_parts(path: str | Path, parts: Mapping[str, bytes]) -> Path:
    """Write the parts under their names, compressed if they are together at most 256 MiB.

    Parameters
    ----------
    path : str or Path
        The file, which appears whole or not at all.
    parts : mapping of str to bytes
        The content of every part.

    Returns
    -------
    Path
        The file.
    """
    small = sum(map(len, parts.values())) <= _MOST_UNPACKED

    def produce(temporary: Path) -> None:
        with zipfile.ZipFile(temporary, "x", zipfile.ZIP_DEFLATED if small else zipfile.ZIP_STORED) as archive:
            for name, content in parts.items():
                archive.writestr(name, content)

    return write_whole(path, produce)


def read_parts(path: Path) -> dict[str, bytes]:
    """The parts of a file by name; a file that stands for much more than it is raises a ValueError.

    Parameters
    ----------
    path : Path
        A file that `write_parts` wrote.

    Returns
    -------
    dict of str to bytes
        The content of every part.
    """
    with zipfile.ZipFile(path) as archive:
        infos = archive.infolist()
        if any(info.compress_type not in _KINDS for info in infos):
            raise ValueError("its parts are compressed in an unknown way")
        packed = any(info.compress_type != zipfile.ZIP_STORED for info in infos)
        most = _MOST_UNPACKED if packed else path.stat().st_size
        if sum(info.file_size for info in infos) > most:
            raise ValueError(f"its parts are together larger than {most / 2**20:.0f} MiB")
        parts = {}
        for info in infos:
            with archive.open(info) as member:  # with a number, no more than that is unpacked, whatever the file says
                parts[info.filename] = member.read(max(info.file_size, 1))
        return parts


def has_part(path: Path, name: str) -> bool:
    """Whether a file is a zip with a part of this name.

    Parameters
    ----------
    path : Path
        The file; there may be none.
    name : str
        The name of the part.

    Returns
    -------
    bool
    """
    if not path.is_file():  # a pipe would never end
        return False
    with suppress(*BROKEN), zipfile.ZipFile(path) as archive:
        return name in archive.namelist()
    return False
