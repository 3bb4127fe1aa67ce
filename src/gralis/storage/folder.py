"""The folder of a run that can be stopped at any moment and continued later.

run.json         the settings of the run, written once
manifest.jsonl   one line for every finished part: its inputs, and the size and the sha256 of its files
lock             held by the process that writes

A part counts once its line is in the manifest. The line is written after the files have reached the disk, and it
carries its own checksum, so a run that is killed loses at most the part that it was writing.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import warnings
import zlib
from collections import UserDict
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

from gralis.checks import as_path
from gralis.errors import GralisError
from gralis.storage.container import replacing
from gralis.storage.lock import Lock

__all__ = ["Entry", "RunFolder", "hashed_name", "warn"]

_SHA256 = re.compile(r"[0-9a-f]{64}")
_APPEND = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)


@dataclass(frozen=True)
class Entry:
    """One line of the manifest: a part of the run that is finished."""

    block: Any  # the number of a block of inputs, or the key of a single record
    ids: list[str]
    failed: int
    seconds: float
    files: dict[str, list[Any]]  # name within the folder: size, sha256
    doubted: int = 0  # inputs whose results have doubts


class _Entries(UserDict[Any, Any]):
    """The entries by block. They are kept compressed, because a run may have ten million ids."""

    def __getitem__(self, block: Any) -> Entry:
        return Entry(**json.loads(zlib.decompress(self.data[block])))

    def __setitem__(self, block: Any, entry: Entry) -> None:
        self.data[block] = zlib.compress(json.dumps(asdict(entry)).encode())


class RunFolder:
    """Settings, manifest and files of one run. Only code inside `writing` changes anything on disk.

    Parameters
    ----------
    path : str or Path
        The folder. It is created by `writing`.
    settings : mapping
        Everything that the results depend on, as JSON can hold it. A run continues only with the same settings.

    Attributes
    ----------
    entries : mapping
        The finished parts by block, filled by `read` and by `writing`.
    """

    schema: ClassVar[str]
    older_schemas: ClassVar[tuple[object, ...]] = ()
    folders: ClassVar[tuple[str, ...]]
    block_type: ClassVar[type]  # of the key of an entry
    file_names: ClassVar[re.Pattern[str]]  # what the manifest may name: nothing outside the folder

    def __init__(self, path: str | Path, settings: Mapping[str, Any] | None = None) -> None:
        if not isinstance(path, str | os.PathLike) or not str(path) or "\0" in str(path):
            raise GralisError(f"The folder of a run must be a path, such as 'results'. Got {path!r} instead.")
        self.path = as_path(path, "a run", "folder")
        if self.path.is_file():
            raise GralisError(f"{self.path} is a file, where the folder of a run must be; choose another with out=.")
        self.settings: dict[str, Any] = json.loads(json.dumps(dict(settings or {})))
        self.entries: MutableMapping[Any, Entry] = _Entries()
        self._manifest_size = -1

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Open the folder of a run, finished or not, without changing it."""
        folder = cls(path)
        settings = folder.known_settings()
        if settings is None:
            raise GralisError(f"{path} is not the folder of a run: it has no run.json that can be read.")
        folder.settings = settings
        folder._read_manifest()
        return folder

    @contextmanager
    def writing(self) -> Iterator[Self]:
        """Lock the folder, create what is missing, and count what an earlier run with the same settings finished."""
        with _disk_errors(self.path):
            for folder in ("", *self.folders):
                if folder and (self.path / folder).is_symlink():
                    raise GralisError(
                        f"{self.path / folder} is a link, and a run writes and deletes only inside its own folder; "
                        f"remove the link, or choose another folder with out=."
                    )
                (self.path / folder).mkdir(parents=True, exist_ok=True)
            lock = Lock(self.path)
        with lock:
            with _disk_errors(self.path):
                self._begin()
            yield self
            with _disk_errors(self.path):
                self._restore()

    def _begin(self) -> None:
        for folder in ("", *self.folders):
            for leftover in (self.path / folder).glob(".gralis-*"):  # from a run that was killed
                leftover.unlink(missing_ok=True)
        manifest = self.path / "manifest.jsonl"
        if manifest.exists() and not manifest.is_file():  # writing to a pipe would never end
            raise GralisError(f"{manifest} is not a file; remove it, or choose another folder with out=.")
        known = self.known_settings()
        if known is not None:
            _require_same(known, self.settings, self.path)
        else:
            if (self.path / "run.json").exists():
                warn(f"{self.path / 'run.json'} is truncated or altered; it is written again.")
            self._write_settings()
        if self._read_manifest():
            self._write_manifest()
        self._manifest_size = self._size()

    def _restore(self) -> None:
        """Write again what somebody removed or changed while the run was writing."""
        if self._size() != self._manifest_size:
            self._write_manifest()
        if not (self.path / "run.json").is_file():
            self._write_settings()

    def _write_manifest(self) -> None:
        self._write("manifest.jsonl", b"".join(map(self._line, self.entries.values())))
        self._manifest_size = self._size()

    def _size(self) -> int:
        path = self.path / "manifest.jsonl"
        return path.lstat().st_size if path.is_file() and not path.is_symlink() else -1

    def _write_settings(self) -> None:
        run = json.dumps({"schema": self.schema, "settings": self.settings}, indent=1)
        self._write("run.json", run.encode())

    def commit(
        self,
        block: Any,
        ids: Sequence[str],
        failed: int,
        seconds: float,
        files: Mapping[str, bytes],
        doubted: int = 0,
    ) -> None:
        """Write the files of a part, then its line of the manifest."""
        entry = Entry(block, list(ids), failed, round(seconds, 6), {}, doubted)
        with _disk_errors(self.path):
            for name, content in files.items():
                self._write(name, content)
                entry.files[name] = [len(content), hashlib.sha256(content).hexdigest()]
            for folder in {name.partition("/")[0] for name in files}:
                _sync_folder(self.path / folder)
            if self._size() != self._manifest_size:
                warn(f"{self.path / 'manifest.jsonl'} was removed or changed during the run; it is written again.")
                self._write_manifest()
            with os.fdopen(os.open(self.path / "manifest.jsonl", _APPEND, 0o644), "ab") as stream:
                stream.write(self._line(entry))
                stream.flush()
                os.fsync(stream.fileno())
            self._manifest_size = self._size()
        self.entries[block] = entry

    def content(self, block: Any, name: str) -> bytes | None:
        """A file of a finished part; None if it is missing or is not what the manifest says."""
        entry = self.entries.get(block)
        size, digest = (None, None) if entry is None else entry.files.get(name, (None, None))
        try:
            path = self.path / name
            if not path.is_file() or path.stat().st_size != size:
                return None
            content = path.read_bytes()
        except OSError:
            return None
        return content if hashlib.sha256(content).hexdigest() == digest else None

    def known_settings(self) -> dict[str, Any] | None:
        """The settings of the run that is in the folder; None if there is none that can be read."""
        try:
            if not (self.path / "run.json").is_file():  # a pipe would never end
                return None
            run = self._parse_run((self.path / "run.json").read_bytes())
            version, settings = run["schema"], run["settings"]
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return None
        if version not in (self.schema, *self.older_schemas):
            raise GralisError(
                f"{self.path} has the schema {version!r}, this gralis reads {self.schema!r}; update gralis."
            )
        return settings if isinstance(settings, dict) else None

    @staticmethod
    def _parse_run(content: bytes) -> Any:
        return json.loads(content)

    def _read_manifest(self) -> bool:
        """Read the entries that can be trusted; True if there were lines that cannot."""
        self.entries = _Entries()
        torn = False
        if not (self.path / "manifest.jsonl").is_file():
            return False
        try:
            with (self.path / "manifest.jsonl").open("rb") as lines:
                for line in lines:
                    entry = self._entry(line)
                    if entry is None:  # altered, or half written when the run was killed
                        torn = True
                    else:
                        self.entries[entry.block] = entry
        except FileNotFoundError:
            return False
        return torn

    def _line(self, entry: Entry) -> bytes:
        known = asdict(entry)
        if not entry.doubted:
            del known["doubted"]  # as in manifests from before there were doubts
        text = json.dumps(known, separators=(",", ":"))
        return f"{self._digest(text)} {text}\n".encode()

    def _entry(self, line: bytes) -> Entry | None:
        try:
            digest, _, text = line.decode("ascii").partition(" ")
            if not text.endswith("\n") or digest != self._digest(text[:-1]):
                return None
            entry = Entry(**json.loads(text))
        except (ValueError, TypeError, RecursionError):
            return None
        return entry if self._is_plain(entry) and all(map(self.file_names.fullmatch, entry.files)) else None

    def _is_plain(self, entry: Entry) -> bool:
        """Whether the parts of an entry have the types that they must have."""
        counts = (entry.failed, entry.seconds, entry.doubted)
        return (
            type(entry.block) is self.block_type
            and isinstance(entry.ids, list)
            and all(isinstance(name, str) for name in entry.ids)
            and all(isinstance(count, int | float) for count in counts)
            and isinstance(entry.files, dict)
            and all(isinstance(about, list) and len(about) == 2 for about in entry.files.values())
        )

    def _digest(self, text: str) -> str:
        """The checksum of a line together with the settings: a line of another run does not count."""
        return hashlib.sha256(f"{json.dumps(self.settings, sort_keys=True)}\n{text}".encode()).hexdigest()

    def _write(self, name: str, content: bytes) -> None:
        with replacing(self.path / name, durable=True) as temporary:
            temporary.write_bytes(content)


def hashed_name(name: str) -> str:
    """A file name for any id, so that no id can lead out of the folder.

    >>> hashed_name("../../etc/passwd")
    '3754d6cb3a38e1185e5b382d5f3ef3f1'
    """
    return hashlib.sha256(name.encode("utf-8", "backslashreplace")).hexdigest()[:32]


def warn(sentence: str) -> None:
    """Warn the user about the state of a folder."""
    warnings.warn(sentence, UserWarning, stacklevel=6)


@contextmanager
def _disk_errors(path: Path) -> Iterator[None]:
    """Turn an error of the disk into one sentence."""
    try:
        yield
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        advice = "make room, then run the same call again" if full else "run the same call again when it can be written"
        sentence = f"Cannot write to {path}: {error.strerror or error}. What was finished before is intact; {advice}."
        raise GralisError(sentence) from error


def _require_same(known: Mapping[str, Any], settings: Mapping[str, Any], path: Path) -> None:
    for name in sorted({*known, *settings}, key=lambda name: (not name.startswith("inputs."), name)):
        before, now = known.get(name), settings.get(name)
        if before != now:
            hashed = _SHA256.search(str(before)) or _SHA256.search(str(now))  # a hash tells a reader nothing
            differs = "different from what is given now" if hashed else f"= {before}, and now it is {now}"
            advice = "continue with the same settings, or choose another folder with out="
            raise GralisError(f"{path} holds a run with {name} {differs}; {advice}.")


def _sync_folder(path: Path) -> None:
    """Make sure that the names of new files reach the disk, too."""
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)
