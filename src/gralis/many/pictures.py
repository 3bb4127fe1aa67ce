"""Pictures of a folder as inputs: read one by one, cropped and normalised, with their labels and annotations."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from gralis.checks import as_path, is_whole
from gralis.errors import GralisError, bad
from gralis.features import slic
from gralis.files.images import IMAGENET_MEAN, IMAGENET_STD, SUFFIXES, Preprocessing
from gralis.many.items import Item, ItemStream, PendingItem
from gralis.many.result_tables import written
from gralis.many.rows import read_rows
from gralis.storage.json_values import plain

__all__ = ["Pictures", "every_picture", "folder", "read_labels"]


@dataclass(frozen=True)
class Pictures:
    """Pictures of a folder in the order of their labels, cut into superpixels.

    Parameters
    ----------
    folder : Path
        Where the pictures are. No file outside of it is read.
    labels : tuple of mapping
        One mapping per picture, as `read_labels` and `every_picture` return them. "file" is its path within the folder,
        "annotation" a mask of the same size that is not black where an expert marked the picture. Everything else,
        such as "label" and "patient", is kept with the results.
    preprocessing : Preprocessing, default=Preprocessing()
        Size and normalisation.
    segments : int or None, default=30
        The number of superpixels; None does not divide the pictures.
    compactness : float, default=50.0
        How square the superpixels are (SLIC).
    classes : tuple of str, default=()
        The names of the model's outputs. If they are given, the class of the label is explained; without them, the
        predicted class.
    """

    folder: Path
    labels: tuple[Mapping[str, str], ...]
    preprocessing: Preprocessing = field(default_factory=Preprocessing)
    segments: int | None = 30
    compactness: float = 50.0
    classes: tuple[str, ...] = ()

    def names(self) -> list[str]:
        """The files, in the order of the labels."""
        return [row["file"] for row in self.labels]

    def settings(self) -> dict[str, Any]:
        """What decides how a picture becomes an input, as plain JSON."""
        how = plain(asdict(self.preprocessing))
        return {**how, "segments": self.segments, "compactness": self.compactness, "classes": list(self.classes)}

    def digest(self, index: int) -> str:
        """The sha256 of the picture, its annotation and its line of the labels."""
        row = self.labels[index]
        total = hashlib.sha256(json.dumps(dict(row), sort_keys=True).encode())
        try:
            for name in filter(None, (row["file"], row.get("annotation"))):
                total.update(hashlib.sha256(self._path(name).read_bytes()).digest())
        except (OSError, GralisError):  # `load` raises the error
            return f"missing {total.hexdigest()}"
        return total.hexdigest()

    def load(self, index: int) -> Item:
        """The picture with this number, as an item."""
        row = self.labels[index]
        path = self._path(row["file"])
        picture = self.preprocessing.picture(path)
        x = self.preprocessing.tensor(picture)
        features = None
        if self.segments is not None:
            features = slic(picture, self.segments, self.compactness, channel_axis=2, shape=tuple(x.shape))
        about = {key: value for key, value in row.items() if key != "file"}
        marks = row.get("annotation")
        mask = self.preprocessing.mask(self._path(marks), path) if marks else None
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


def folder(
    path: str | Path,
    *,
    size: int | tuple[int, int] = 224,
    mean: Sequence[float] = IMAGENET_MEAN,
    std: Sequence[float] = IMAGENET_STD,
) -> ItemStream:
    """The pictures below a folder as inputs, in the order of their names.

    Each picture is turned upright (EXIF), cropped to the largest centred part with the shape of `size`, scaled, and
    normalised to (value - mean) / std. Its id is its path within the folder; bytes of a name that are not UTF-8 are
    written as \\udcff in the id. Pictures with more than 64 million pixels become inputs that fail, and so do links to
    files outside the folder.

    Parameters
    ----------
    path : str or Path
        The folder. Folders within it are searched as well; their names are not labels.
    size : int or (int, int), default=224
        The side of a square in pixels, or (height, width).
    mean, std : sequence of float, default=those of ImageNet
        For values in [0, 1]: one number for grey pictures, three for red, green and blue.

    Returns
    -------
    ItemStream
        To be given to `explain_many` as `inputs`.
    """
    root = as_path(path, "folder").resolve()
    if not root.is_dir():
        raise GralisError(f"There is no folder {path}.")
    height, width = _size(size)
    preprocessing = Preprocessing(height, width, _colours(mean, "mean"), _colours(std, "std"))
    files = sorted(_below(root))
    if not files:
        raise GralisError(f"There is no picture in {path} ({', '.join(sorted(SUFFIXES))} are read).")
    ids = [written(name) for name in files]
    if len(set(ids)) < len(files):
        raise GralisError(f"Two pictures in {path} have names that give the same id; rename one of them.")

    def begin() -> Iterator[PendingItem]:
        for name, file in zip(ids, files, strict=True):
            picture = Pictures(root, ({"file": file},), preprocessing, segments=None)
            yield PendingItem(name, partial(_picture, picture, name), True, digest=partial(picture.digest, 0))

    settings = {"size": [height, width], "mean": list(preprocessing.mean), "std": list(preprocessing.std)}
    return ItemStream(begin, len(ids), settings=settings)


def read_labels(path: Path) -> tuple[dict[str, str], ...]:
    """The lines of a labels file, for `Pictures`.

    Parameters
    ----------
    path : Path
        A CSV or Parquet table with the column `file`, which names every picture once.

    Returns
    -------
    tuple of dict
        The cells of every line by the names of their columns.
    """
    path = as_path(path, "read_labels")
    if not path.is_file():
        raise GralisError(f"There is no file {path}.")
    rows = read_rows(path)
    names = next(rows)
    if "file" not in names:
        raise GralisError(f"{path} must have a column 'file'; it has {', '.join(map(repr, names)) or 'none'}.")
    lines = []
    for number, row in enumerate(rows):
        line = {name: "" if cell is None else str(cell) for name, cell in zip(names, row, strict=False)}
        if len(row) != len(names) or not line.get("file"):
            raise GralisError(f"{path}: line {number + 2} does not have one cell for each of its {len(names)} columns.")
        if "\0" in "".join(line.values()):
            raise GralisError(f"{path} cannot be read as CSV in UTF-8 (line {number + 2} has a NUL).")
        lines.append(line)
    files = {line["file"] for line in lines}
    if not files or len(files) < len(lines):
        raise GralisError(f"{path} names {'a file twice' if files else 'no file'}.")
    return tuple(lines)


def every_picture(folder: Path) -> tuple[dict[str, str], ...]:
    """A line for every picture of a folder, for `Pictures` where there are no labels.

    Parameters
    ----------
    folder : Path
        The folder. Folders within it are not searched.

    Returns
    -------
    tuple of dict
        {"file": name}, in the order of the names.
    """
    folder = as_path(folder, "every_picture", "folder")
    if not folder.is_dir():
        raise GralisError(f"There is no folder {folder}.")
    files = sorted(path.name for path in folder.iterdir() if path.suffix.lower() in SUFFIXES)
    if not files:
        raise GralisError(f"{folder} holds no pictures.")
    return tuple({"file": name} for name in files)


def _below(root: Path) -> Iterator[str]:
    """The pictures below a folder; links are not followed to other folders."""
    for parent, _, files in os.walk(root):
        for name in files:
            file = Path(parent, name)
            if file.suffix.lower() in SUFFIXES:
                yield file.relative_to(root).as_posix()


def _picture(picture: Pictures, name: str) -> Item:
    return replace(picture.load(0), name=name)


def _size(size: object) -> tuple[int, int]:
    sides = (size, size) if isinstance(size, int) else size
    if isinstance(sides, tuple | list) and len(sides) == 2 and all(is_whole(side, 1) for side in sides):
        return int(sides[0]), int(sides[1])
    raise bad("size", "folder", "a number of pixels, or (height, width)", repr(size))


def _colours(values: object, name: str) -> tuple[float, ...]:
    try:
        return tuple(map(float, values))  # type: ignore[call-overload]
    except (TypeError, ValueError):
        raise bad(name, "folder", "one number, or three", repr(values)) from None
