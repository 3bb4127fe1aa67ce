"""The folder of a study: run.json says what was asked, images/ has one file for every finished image.

A file is written beside its place and renamed, so it is there whole or not at all; it checks itself, and it counts
only for the same settings, the same model and the same content of the image.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gralis.errors import GralisError
from gralis.storage.container import replacing
from gralis.storage.lock import Lock

_SCHEMA = 1


class Store:
    """Records by the name of their image."""

    def __init__(self, path: str | Path, settings: Mapping[str, Any]) -> None:
        self.path, self.settings = Path(path), dict(settings)
        try:
            (self.path / "images").mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _cannot(self.path, error) from error
        about = self.path / "run.json"
        known = _read(about)
        if known is None:
            if about.exists():
                warnings.warn(
                    f"{about} cannot be read, so it is written anew; images count if they were made with the same "
                    f"settings as now.",
                    stacklevel=2,
                )
            self._write(about, _sealed({"schema": _SCHEMA, "settings": self.settings}))
        elif known.get("schema") != _SCHEMA:
            raise GralisError(f"{self.path} has schema {known.get('schema')}, this gralis writes {_SCHEMA}.")
        else:
            _require_same(known["settings"], json.loads(json.dumps(self.settings)), self.path)

    @classmethod
    def read(cls, path: str | Path) -> Store:
        """The store of a study that was run there."""
        known = _read(Path(path) / "run.json")
        if known is None:
            raise GralisError(f"{path} is not the folder of a study: it has no run.json that can be read.")
        return cls(path, known["settings"])

    @contextmanager
    def writing(self) -> Iterator[None]:
        """The folder for one run alone; what a killed one left half-written is cleared."""
        with Lock(self.path):
            for left in (*self.path.glob(".gralis-*"), *(self.path / "images").glob(".gralis-*")):
                left.unlink(missing_ok=True)
            yield

    def get(self, name: str, digest: str) -> dict[str, Any] | None:
        """The record of an image that is finished: whole, of these settings and this content."""
        found = _read(self._place(name))
        if found is None or found.get("key") != self._key(name, digest):
            return None
        record: dict[str, Any] = found["record"]
        return record

    def put(self, name: str, digest: str, record: Mapping[str, Any]) -> None:
        self._write(self._place(name), _sealed({"key": self._key(name, digest), "record": dict(record)}))

    def ledger(self, name: str) -> Path:
        """Where the explanation of an image is, if it was kept."""
        try:
            (self.path / "ledgers").mkdir(exist_ok=True)
        except OSError as error:
            raise _cannot(self.path / "ledgers", error) from error
        return self.path / "ledgers" / f"{_hashed(name)}.gralis"

    def _key(self, name: str, digest: str) -> str:
        text = json.dumps([name, digest, self.settings], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    def _place(self, name: str) -> Path:
        return self.path / "images" / f"{_hashed(name)}.json"

    def _write(self, path: Path, content: bytes) -> None:
        try:
            with replacing(path, durable=True) as temporary:
                temporary.write_bytes(content)
        except OSError as error:
            raise _cannot(self.path, error) from error


def _hashed(name: str) -> str:
    """A file name, so that no name can lead out of the folder."""
    return hashlib.sha256(name.encode()).hexdigest()[:32]


def _sealed(content: Mapping[str, Any]) -> bytes:
    text = json.dumps(content)  # in their order: tables must not depend on whether a record was read or made
    return json.dumps({"sha256": hashlib.sha256(text.encode()).hexdigest(), "content": text}).encode()


def _read(path: Path) -> dict[str, Any] | None:
    """The content of a sealed file; None if it is missing, torn or altered."""
    try:
        sealed = json.loads(path.read_bytes())
        if hashlib.sha256(sealed["content"].encode()).hexdigest() != sealed["sha256"]:
            return None
        content = json.loads(sealed["content"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return content if isinstance(content, dict) else None


def _require_same(known: Mapping[str, Any], asked: Mapping[str, Any], path: Path) -> None:
    for name in sorted({*known, *asked}):
        if known.get(name) != asked.get(name):
            raise GralisError(
                f"{path} holds a study with {name} = {known.get(name)}, and now it is {asked.get(name)}; go on with "
                f"the same settings, or choose another folder."
            )


def _cannot(path: Path, error: OSError) -> GralisError:
    return GralisError(
        f"Cannot write to {path}: {error.strerror or error}. What was finished before is intact; run the same again."
    )
