"""Where images come from: any object that names them and loads them one by one; here, a folder of pictures."""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

import torch

from gralis.errors import GralisError
from gralis.features import Features, slic
from gralis.files.images import SUFFIXES, Preprocessing


@dataclass(frozen=True, eq=False)
class Item:
    """One input, ready for methods and metrics."""

    name: str
    x: Any
    features: Features | None = None
    target: int | None = None  # the class; None: the predicted one
    about: Mapping[str, str] = field(default_factory=dict)  # label, patient, ...
    annotation: Any = None  # (H, W), true where an expert marked


class Source(Protocol):
    """Names and loads items; it is sent to other processes, so it must be picklable."""

    def names(self) -> Sequence[str]: ...

    def settings(self) -> Mapping[str, Any]:
        """What decides how an item is made, as plain JSON."""
        ...

    def digest(self, index: int) -> str:
        """Changes when the content of the item does."""
        ...

    def load(self, index: int) -> Item: ...


@dataclass(frozen=True)
class Pictures:
    """Pictures of a folder in the order of their labels, cut into superpixels.

    `labels` has a line per picture with the column `file`; `label` and others are kept with the results; `annotation`
    is a mask beside the pictures, not black where an expert marked, or nothing. `classes`: the names of the model's
    outputs; then the class that is explained is that of the label, else the predicted one.
    """

    folder: Path
    labels: tuple[Mapping[str, str], ...]
    preprocessing: Preprocessing = field(default_factory=Preprocessing)
    segments: int = 30
    compactness: float = 50.0
    classes: tuple[str, ...] = ()

    def names(self) -> list[str]:
        return [row["file"] for row in self.labels]

    def settings(self) -> dict[str, Any]:
        how = {
            key: list(value) if isinstance(value, tuple) else value for key, value in asdict(self.preprocessing).items()
        }
        return {**how, "segments": self.segments, "compactness": self.compactness, "classes": list(self.classes)}

    def digest(self, index: int) -> str:
        """Of the picture, of its annotation and of its line of the labels."""
        row = self.labels[index]
        total = hashlib.sha256(json.dumps(dict(row), sort_keys=True).encode())
        try:
            for name in filter(None, (row["file"], row.get("annotation"))):
                total.update(hashlib.sha256(self._path(name).read_bytes()).digest())
        except (OSError, GralisError):  # `load` says it
            return f"missing {total.hexdigest()}"
        return total.hexdigest()

    def load(self, index: int) -> Item:
        row = self.labels[index]
        path = self._path(row["file"])
        picture = self.preprocessing.picture(path)
        x: torch.Tensor = self.preprocessing.tensor(picture)
        features = slic(picture, self.segments, self.compactness, channel_axis=2, shape=tuple(x.shape))
        about = {key: value for key, value in row.items() if key != "file"}
        marked = row.get("annotation")
        mask = self.preprocessing.mask(self._path(marked), path) if marked else None
        return Item(row["file"], x, features, self._class(row), about, mask)

    def _path(self, name: str) -> Path:
        path = (self.folder / name).resolve()
        if not path.is_relative_to(self.folder.resolve()):
            raise GralisError(f"{name} lies outside the folder {self.folder}.")
        return path

    def _class(self, row: Mapping[str, str]) -> int | None:
        if not self.classes:
            return None
        if row.get("label") not in self.classes:
            raise GralisError(f"{row['file']} has the label {row.get('label')!r}, which is none of the classes.")
        return self.classes.index(row["label"])


def read_labels(path: Path) -> tuple[dict[str, str], ...]:
    """The lines of a labels.csv; it must name the column `file`."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as stream:
            reader = csv.DictReader(stream, restkey="", restval=None)
            lines = [dict(row) for row in reader]
            names = reader.fieldnames or []
        if b"\0" in path.read_bytes():
            raise csv.Error("it has a NUL")
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise GralisError(f"{path} cannot be read as CSV in UTF-8 ({error}).") from error
    if "file" not in names:
        raise GralisError(f"{path} must have a column 'file'; it has {', '.join(map(repr, names)) or 'none'}.")
    for number, row in enumerate(lines):
        if "" in row or None in row.values() or not row["file"]:
            raise GralisError(f"{path}: line {number + 2} does not have one cell for each of its {len(names)} columns.")
    files = [row["file"] for row in lines]
    if not files or len(set(files)) < len(files):
        raise GralisError(f"{path} names {'a file twice' if files else 'no file'}.")
    return tuple(lines)


def every_picture(folder: Path) -> tuple[dict[str, str], ...]:
    """A line for every picture of a folder, where there are no labels."""
    if not folder.is_dir():
        raise GralisError(f"There is no folder {folder}.")
    files = sorted(path.name for path in folder.iterdir() if path.suffix.lower() in SUFFIXES)
    if not files:
        raise GralisError(f"{folder} holds no pictures.")
    return tuple({"file": name} for name in files)
