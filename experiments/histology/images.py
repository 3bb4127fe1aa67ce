"""The images: a folder with labels.csv (file, label, patient), split by patient, or generated images."""

from __future__ import annotations

import hashlib
import zipfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from setting import Setting

from gralis.bench import read_labels
from gralis.files.images import Preprocessing

Labels = Sequence[dict[str, str]]


def folder(setting: Setting) -> Path:
    """The folder of the pictures: DATA itself, or the content of a zip in DATA, which is unpacked once."""
    if not setting.data:
        return generate(setting.path("generated"), setting.seed)
    data = Path(setting.data)
    labels = read_labels(data / "labels.csv")
    if (data / labels[0]["file"]).is_file():
        return data
    packed = sorted(data.glob("*.zip"))
    if not packed:
        raise SystemExit(f"{data} has neither {labels[0]['file']} nor a zip of the pictures.")
    unpacked = setting.path("pictures")
    if not (unpacked / "labels.csv").is_file():
        unpacked.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(packed[0]) as archive:
            archive.extractall(unpacked)
        (unpacked / "labels.csv").write_bytes((data / "labels.csv").read_bytes())  # last: it marks the folder complete
    return unpacked


def split(labels: Labels, share: float, seed: int) -> tuple[Labels, Labels]:
    """Training and held-out images. No patient is in both; `share` of the patients of each class are held out."""
    by_patient: dict[str, list[str]] = {}
    for row in labels:
        by_patient.setdefault(row["patient"], []).append(row["label"])
    of_class: dict[str, list[str]] = {}
    for patient, labels_of in sorted(by_patient.items()):
        of_class.setdefault(Counter(labels_of).most_common(1)[0][0], []).append(patient)
    held_out: set[str] = set()
    for number, (_, patients) in enumerate(sorted(of_class.items())):
        order = np.random.default_rng([seed, number]).permutation(len(patients))
        held_out |= {patients[i] for i in order[: max(1, round(share * len(patients)))]}
    return [r for r in labels if r["patient"] not in held_out], [r for r in labels if r["patient"] in held_out]


def spread(labels: Labels, n: int, seed: int) -> Labels:
    """n images from as many patients as possible, taken from the patients in turn."""
    rng = np.random.default_rng([seed, 77])
    by_patient: dict[str, list[dict[str, str]]] = {}
    for row in labels:
        by_patient.setdefault(row["patient"], []).append(row)
    queues = [[rows[i] for i in rng.permutation(len(rows))] for rows in by_patient.values()]
    queues = [queues[i] for i in rng.permutation(len(queues))]
    chosen: list[dict[str, str]] = []
    while len(chosen) < n and any(queues):
        for queue in queues:
            if queue and len(chosen) < n:
                chosen.append(queue.pop())
    return chosen


def pixels(where: Path, labels: Labels, size: tuple[int, int], cache: Path) -> NDArray[np.uint8]:
    """All pictures, (n, height, width, 3). They are read once and then cached in a file."""
    name = hashlib.sha256(repr([size, *(row["file"] for row in labels)]).encode()).hexdigest()[:12]
    path = cache / f"pixels-{name}.npy"
    if not path.is_file():
        cache.mkdir(parents=True, exist_ok=True)
        loader = Preprocessing(*size)
        table = np.stack([np.round(255 * loader.picture(where / row["file"])).astype(np.uint8) for row in labels])
        temporary = path.with_suffix(".part.npy")
        np.save(temporary, table)
        temporary.rename(path)
    images: NDArray[np.uint8] = np.load(path, mmap_mode="r")
    return images


def generate(where: Path, seed: int, n_patients: int = 12, per_patient: int = 8, side: int = 48) -> Path:
    """Pink tissue with pale nuclei. Malignant tissue has a dense dark cluster somewhere. Patients differ in tint."""
    if (where / "labels.csv").is_file():
        return where
    where.mkdir(parents=True, exist_ok=True)
    lines = ["file,label,patient"]
    y, x = np.mgrid[:side, :side]
    for patient in range(n_patients):
        label = ("benign", "malignant")[patient % 2]
        rng = np.random.default_rng([seed, patient])
        tint = np.array([215, 160, 195]) + rng.normal(0, 6, 3)
        for number in range(per_patient):
            picture = tint + rng.normal(0, 8, (side, side, 3))
            centres = rng.uniform(4, side - 4, (10, 2))
            for cy, cx in centres:
                _blot(picture, y, x, cy, cx, rng.uniform(1.5, 2.5), np.array([150, 110, 170]))
            if label == "malignant":
                middle = rng.uniform(12, side - 12, 2)
                for cy, cx in middle + rng.normal(0, 4.5, (12, 2)):
                    _blot(picture, y, x, cy, cx, rng.uniform(2.5, 3.5), np.array([60, 30, 110]))
            name = f"{label}-{patient:02d}-{number}.png"
            Image.fromarray(picture.clip(0, 255).astype(np.uint8)).save(where / name)
            lines.append(f"{name},{label},p{patient:02d}")
    (where / "labels.csv").write_text("\n".join(lines) + "\n")
    return where


def _blot(picture: NDArray[np.float64], y, x, cy: float, cx: float, radius: float, ink: NDArray[np.float64]) -> None:  # type: ignore[no-untyped-def]
    inside = (y - cy) ** 2 + (x - cx) ** 2 < radius**2
    picture[inside] = 0.25 * picture[inside] + 0.75 * ink
