"""The folder of a study: the record of every finished image, and the explanations if they are kept.

images/    one JSON file per image, under a hash of its name
ledgers/   the explanations, under the same hash
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gralis.storage.folder import RunFolder, hashed_name

__all__ = ["Store"]


class Store(RunFolder):
    """Records by the name of their image.

    A record counts only for the same settings and the same content of the image.

    Parameters
    ----------
    path : str or Path
        The folder. It is created by `writing`.
    settings : mapping
        Everything that the records depend on, as JSON can hold it.
    """

    schema = "gralis.bench/2"
    older_schemas = (1,)
    folders = ("images", "ledgers")
    block_type = str
    file_names = re.compile(r"images/[0-9a-f]{32}\.json")

    def get(self, name: str, digest: str) -> dict[str, Any] | None:
        """The record of an image, or None if there is none for these settings and this content.

        Parameters
        ----------
        name : str
            The name of the image.
        digest : str
            A text that changes with the content of the image.
        """
        key, place = self._key(name, digest), _place(name)
        content = self.content(key, place)
        if content is None:
            return _record_of_schema_1(self.path / place, key)
        record: dict[str, Any] = json.loads(content)
        return record

    def put(self, name: str, digest: str, record: Mapping[str, Any]) -> None:
        """Keep the record of an image; `get` lists the parameters. To be called inside `writing`."""
        content = json.dumps(record).encode()  # keys keep their order: tables must not depend on it
        seconds = record.get("timings", {}).get("all", 0.0)
        self.commit(self._key(name, digest), [name], int("error" in record), seconds, {_place(name): content})

    def ledger(self, name: str) -> Path:
        """The file of the explanation of an image; it exists if the study kept explanations."""
        return self.path / "ledgers" / f"{hashed_name(name)}.gralis"

    def _key(self, name: str, digest: str) -> str:
        text = json.dumps([name, digest, self.settings], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    @staticmethod
    def _parse_run(content: bytes) -> Any:
        run = json.loads(content)
        return _unsealed(run) if "content" in run else run


def _place(name: str) -> str:
    return f"images/{hashed_name(name)}.json"


def _record_of_schema_1(path: Path, key: str) -> dict[str, Any] | None:
    """The record in a file of schema 1, which had no manifest: every file carried its key and its checksum."""
    if not path.is_file():  # a pipe would never end
        return None
    try:
        known = _unsealed(json.loads(path.read_bytes()))
        return dict(known["record"]) if known["key"] == key else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _unsealed(sealed: Mapping[str, Any]) -> Any:
    """The content of a JSON file of schema 1, checked."""
    if hashlib.sha256(str(sealed["content"]).encode()).hexdigest() != sealed["sha256"]:
        raise ValueError("the checksum does not match")
    return json.loads(sealed["content"])
