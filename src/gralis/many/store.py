"""The folder of a run: every file is there whole or not at all, and a manifest says which of them count.

run.json                 what was asked, once
manifest.jsonl           one line per finished block: its ids, and size and sha256 of its files; each line checks itself
values/  inputs/         the tables, a Parquet file per block
ledgers/                 the explanations, if they were kept, under a hash of the id

A block counts once its line is in the manifest, which is written after its files are on the disk.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import warnings
import zlib
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from gralis.errors import GralisError
from gralis.many.tables import SCHEMA
from gralis.storage.container import replacing
from gralis.storage.lock import Lock

_NAME = re.compile(r"(values|inputs)/\d{8}\.parquet|ledgers/[0-9a-f]{32}\.gralis")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_FOLDERS = ("values", "inputs", "ledgers")


@dataclass(frozen=True)
class Entry:
    """One line of the manifest."""

    block: int
    ids: list[str]
    failed: int
    seconds: float
    files: dict[str, list[Any]]  # name within the folder: size, sha256


class Entries(MutableMapping[int, Entry]):
    """The entries by block, packed: ten million ids should not fill the memory."""

    def __init__(self) -> None:
        self._packed: dict[int, bytes] = {}

    def __getitem__(self, block: int) -> Entry:
        return Entry(**json.loads(zlib.decompress(self._packed[block])))

    def __setitem__(self, block: int, entry: Entry) -> None:
        self._packed[block] = zlib.compress(json.dumps(asdict(entry)).encode())

    def __delitem__(self, block: int) -> None:
        del self._packed[block]

    def __iter__(self) -> Iterator[int]:
        return iter(self._packed)

    def __len__(self) -> int:
        return len(self._packed)


def table_name(table: str, block: int) -> str:
    return f"{table}/{block:08d}.parquet"


def ledger_name(item_id: str) -> str:
    """Where the explanation of an input is: a hash, so that no id can name a place of its own.

    >>> ledger_name("../../etc/passwd")
    'ledgers/3754d6cb3a38e1185e5b382d5f3ef3f1.gralis'
    """
    return f"ledgers/{hashlib.sha256(item_id.encode()).hexdigest()[:32]}.gralis"


class Store:
    """Reads what is there. Only `writing` changes anything."""

    def __init__(self, path: str | Path) -> None:
        if not isinstance(path, str | os.PathLike) or not str(path) or "\0" in str(path):
            raise GralisError(f"The folder of a run must be a path, such as 'results'. Got {path!r} instead.")
        self.path = Path(path)
        if self.path.is_file():
            raise GralisError(f"{self.path} is a file, where the folder of a run must be; choose another with out=.")
        self.entries = Entries()
        self.settings: dict[str, Any] = {}

    @classmethod
    def read(cls, path: str | Path) -> Store:
        """The store of a run, finished or not."""
        store = cls(path)
        settings = store._settings()
        if settings is None:
            raise GralisError(f"{path} is not the folder of a run: it has no run.json that can be read.")
        store.settings = settings
        store._read_manifest()
        return store

    @contextmanager
    def writing(self, settings: Mapping[str, Any]) -> Iterator[Store]:
        """The folder is this run's until the end; what an earlier run with the same settings finished counts."""
        with told(self.path):
            for folder in ("", *_FOLDERS):
                (self.path / folder).mkdir(parents=True, exist_ok=True)
            lock = Lock(self.path)
        with lock:
            with told(self.path):
                self._begin(dict(settings))
            yield self

    def _begin(self, settings: dict[str, Any]) -> None:
        for folder in ("", *_FOLDERS):
            for left in (self.path / folder).glob(".gralis-*"):  # by a run that was killed
                left.unlink(missing_ok=True)
        known = self._settings()
        if known is not None:
            _require_same(known, settings, self.path)
        self.settings = settings
        if known is None:
            if (self.path / "run.json").exists():
                _warn(f"{self.path / 'run.json'} is truncated or altered; it is written again.")
            self._write("run.json", json.dumps({"schema": SCHEMA, "settings": settings}, indent=1).encode())
        if self._read_manifest():
            lines = b"".join(map(self._line, self.entries.values()))
            self._write("manifest.jsonl", lines)

    def finished(self, block: int, ids: Sequence[str]) -> Entry | None:
        """The entry of a block that is there, whole and of these inputs."""
        entry = self.entries.get(block)
        if entry is None:
            return None
        if entry.ids != list(ids):
            if entry.ids == list(ids)[: len(entry.ids)]:  # the last block, and there are more inputs now
                return None
            raise GralisError(
                f"The inputs are not those of the run in {self.path}: block {block} was {_some(entry.ids)} and is "
                f"{_some(ids)} now; choose another folder with out=."
            )
        for name in entry.files:
            if self._content(entry, name) is None:
                _warn(f"{self.path / name} is missing, truncated or altered; {len(ids)} inputs are explained again.")
                return None
        return entry

    def commit(self, block: int, ids: Sequence[str], failed: int, seconds: float, files: Mapping[str, bytes]) -> None:
        """Write the files of a block, then its line."""
        entry = Entry(block, list(ids), failed, round(seconds, 6), {})
        with told(self.path):
            for name, content in files.items():
                self._write(name, content)
                entry.files[name] = [len(content), hashlib.sha256(content).hexdigest()]
            for folder in {name.partition("/")[0] for name in files}:
                _sync_folder(self.path / folder)
            with (self.path / "manifest.jsonl").open("ab") as stream:
                stream.write(self._line(entry))
                stream.flush()
                os.fsync(stream.fileno())
        self.entries[block] = entry

    def content(self, block: int, name: str) -> bytes:
        """A file of a block, checked against the manifest."""
        found = self._content(self.entries[block], name)
        if found is None:
            raise GralisError(
                f"{self.path / name} is missing, truncated or altered; run explain_many again to make it anew."
            )
        return found

    def _content(self, entry: Entry, name: str) -> bytes | None:
        size, digest = entry.files.get(name, (None, None))
        try:
            path = self.path / name
            if path.stat().st_size != size:
                return None
            content = path.read_bytes()
        except OSError:
            return None
        return content if hashlib.sha256(content).hexdigest() == digest else None

    def _settings(self) -> dict[str, Any] | None:
        try:
            known = json.loads((self.path / "run.json").read_bytes())
            version, settings = known["schema"], known["settings"]
        except (OSError, ValueError, KeyError, TypeError):
            return None
        if version != SCHEMA:
            raise GralisError(f"{self.path} has the schema {version!r}, this gralis reads {SCHEMA!r}; update gralis.")
        return settings if isinstance(settings, dict) else None

    def _read_manifest(self) -> bool:
        """The entries that can be trusted; True if there were lines that cannot."""
        self.entries = Entries()
        torn = False
        try:
            with (self.path / "manifest.jsonl").open("rb") as lines:
                for line in lines:
                    entry = self._entry(line)
                    if entry is None:  # altered, or what a killed run was writing
                        torn = True
                    else:
                        self.entries[entry.block] = entry
        except FileNotFoundError:
            return False
        return torn

    def _line(self, entry: Entry) -> bytes:
        text = json.dumps(asdict(entry), separators=(",", ":"))
        return f"{self._digest(text)} {text}\n".encode()

    def _entry(self, line: bytes) -> Entry | None:
        try:
            digest, _, text = line.decode("ascii").partition(" ")
            if not text.endswith("\n") or digest != self._digest(text[:-1]):
                return None
            text = text[:-1]
            entry = Entry(**json.loads(text))
        except (ValueError, TypeError):
            return None
        return entry if all(_NAME.fullmatch(name) for name in entry.files) else None

    def _digest(self, text: str) -> str:
        """Of a line together with what was asked: a line of another run does not count."""
        return hashlib.sha256(f"{json.dumps(self.settings, sort_keys=True)}\n{text}".encode()).hexdigest()

    def _write(self, name: str, content: bytes) -> None:
        """First beside its place, onto the disk, then renamed."""
        with replacing(self.path / name, durable=True) as temporary:
            temporary.write_bytes(content)


@contextmanager
def told(path: Path) -> Iterator[None]:
    """An error of the disk as one sentence."""
    try:
        yield
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        advice = "make room, then run the same call again" if full else "run the same call again when it can be written"
        sentence = f"Cannot write to {path}: {error.strerror or error}. What was finished before is intact; {advice}."
        raise GralisError(sentence) from error


def _require_same(known: Mapping[str, Any], asked: Mapping[str, Any], path: Path) -> None:
    for name in sorted({*known, *asked}, key=lambda name: (not name.startswith("inputs."), name)):
        before, now = known.get(name), asked.get(name)
        if before != now:
            hashed = _SHA256.search(str(before)) or _SHA256.search(str(now))  # tells a reader nothing
            differs = "different from what is given now" if hashed else f"= {before}, and now it is {now}"
            advice = "go on with the same settings, or choose another folder with out="
            raise GralisError(f"{path} holds a run with {name} {differs}; {advice}.")


def _sync_folder(path: Path) -> None:
    """Names reach the disk, too."""
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def _some(ids: Sequence[str]) -> str:
    return f"{ids[0]!r} ... {ids[-1]!r} ({len(ids)} inputs)" if ids else "empty"


def _warn(sentence: str) -> None:
    warnings.warn(sentence, UserWarning, stacklevel=5)
