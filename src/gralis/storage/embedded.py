"""The saved explanation inside a report: the bytes that `Explanation.save` writes, compressed, as text."""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from pathlib import Path
from typing import Any

from gralis.checks import as_path
from gralis.errors import GralisError

__all__ = ["archive_of", "content_of", "pack"]

_MOST_BYTES = 24 * 2**20  # compressed
_MOST_UNPACKED = 256 * 2**20
_BEGIN, _END = b'<script type="application/json" id="gralis-report">', b"</script>"


def pack(data: bytes) -> dict[str, Any]:
    """The bytes of a saved explanation as JSON can hold them, or the sentence that says why they are missing."""
    compressed = zlib.compress(data, 9) if len(data) <= _MOST_UNPACKED else data
    if len(compressed) > _MOST_BYTES:
        size = f"{len(compressed) / 2**20:.0f} MiB"
        return {
            "missing": f"The saved explanation is too large for a page ({size}); keep the file of explanation.save."
        }
    return {
        "encoding": "zlib+base64",
        "bytes": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
        "data": base64.b64encode(compressed).decode(),
    }


def content_of(path: str | Path) -> dict[str, Any]:
    """The content of a report, from the page or from its JSON.

    Parameters
    ----------
    path : str or Path
        A report that `gralis.report` wrote, as HTML or as JSON.

    Returns
    -------
    dict
        What the page shows, as plain values.
    """
    path = as_path(path, "archive_of")
    if not path.is_file():
        raise GralisError(f"There is no file {path}.")
    try:
        text = path.read_bytes()
    except OSError as error:
        raise GralisError(f"Cannot read {path}: {error.strerror or error}.") from error
    if not text.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
        begin = text.find(_BEGIN)
        end = text.find(_END, begin)
        if begin < 0 or end < 0:
            raise GralisError(f"{path} is not a gralis report: it has no whole element with the id gralis-report.")
        text = text[begin + len(_BEGIN) : end]
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise GralisError(f"{path} is not a whole gralis report ({error}); it may be truncated or altered.") from error
    if not isinstance(content, dict) or not str(content.get("schema", "")).startswith("gralis.report/"):
        raise GralisError(f"{path} is not a gralis report: its JSON has no schema gralis.report/1.")
    return content


def archive_of(path: str | Path) -> bytes:
    """The saved explanation (the bytes of a .gralis file) inside a report, checked against its sha256.

    Parameters
    ----------
    path : str or Path
        A report that `gralis.report` wrote, as HTML or as JSON.

    Returns
    -------
    bytes
        What `Explanation.save` writes.

    Examples
    --------
    >>> import gralis, tempfile, torch
    >>> explanation = gralis.explain(lambda z: z.prod(1), torch.ones(3))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     archive_of(explanation.report(f"{folder}/why.html"))[:2]
    b'PK'
    """
    archive = content_of(path).get("archive", {})
    if not isinstance(archive, dict) or "data" not in archive:
        archive = archive if isinstance(archive, dict) else {}
        raise GralisError(f"{path} holds no saved explanation. {archive.get('missing', '')}".rstrip())
    try:
        data = _unpacked(base64.b64decode(archive["data"], validate=True))
    except (ValueError, TypeError, zlib.error) as error:
        raise GralisError(f"The explanation inside {path} cannot be unpacked ({error}); it may be altered.") from error
    if hashlib.sha256(data).hexdigest() != archive.get("sha256"):
        raise GralisError(f"The explanation inside {path} does not match its sha256; it was altered.")
    return data


def _unpacked(compressed: bytes) -> bytes:
    """The bytes behind compressed ones, if they are not more than `pack` would have taken."""
    unpacking = zlib.decompressobj()
    data = unpacking.decompress(compressed, _MOST_UNPACKED + 1)
    if len(data) > _MOST_UNPACKED:
        raise ValueError(f"it is larger than {_MOST_UNPACKED // 2**20} MiB")
    if not unpacking.eof or unpacking.unused_data:
        raise ValueError("it is truncated, or something follows it")
    return data
