"""Every reader, on files that were altered with true checksums: an answer that can be printed, or one sentence."""

from __future__ import annotations

import contextlib
import io
import json
import random
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch

import gralis
from attack.bounded import bounded_memory, own_folder
from attack.crafted import archive
from gralis.errors import GralisError
from gralis.files.archive import to_bytes
from gralis.many.importance import Importance
from gralis.many.rows import read_rows
from gralis.report import content_of
from gralis.storage.container import read_arrays
from gralis.storage.packed import write_parts

__all__ = ["bounded_memory", "own_folder"]  # fixtures

VALUES = [
    None,
    True,
    -1,
    0,
    2**70,
    10**400,
    1e308,
    float("nan"),
    "",
    "x",
    "\x1b",
    [],
    [1],
    {},
    {"a": 1},
    [[[]]],
    "9" * 400,
    -0.5,
]


def changed(value: object, rng: random.Random) -> object:
    """The same JSON with one part replaced, removed or added."""
    if isinstance(value, dict) and value and rng.random() < 0.8:
        key = rng.choice(sorted(value))
        match rng.random():
            case r if r < 0.1:
                return {k: v for k, v in value.items() if k != key}
            case r if r < 0.15:
                return {**value, "unknown": 1}
        return {**value, key: changed(value[key], rng)}
    if isinstance(value, list) and value and rng.random() < 0.7:
        place = rng.randrange(len(value))
        return [changed(part, rng) if i == place else part for i, part in enumerate(value)]
    return rng.choice(VALUES)


def changed_array(array: np.ndarray, rng: random.Random) -> np.ndarray:
    match rng.randrange(6):
        case 0:
            return array[:0]
        case 1:
            return np.concatenate([array, array]) if array.ndim else array.reshape(1)
        case 2:
            return array.astype(rng.choice(["f4", "i8", "u1", "?", "f8"]))
        case 3:
            return array.reshape(-1)
        case 4:
            return np.full_like(array, rng.choice([0, 1, 100]))
    filled = array.copy()
    if filled.size:
        filled.reshape(-1)[rng.randrange(filled.size)] = rng.choice([0, 1, 127]) if array.dtype.kind != "f" else np.nan
    return filled


def npy(array: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array(stream, np.ascontiguousarray(array))
    return stream.getvalue()


def used(explanation: gralis.Explanation) -> None:
    """What a reader of a file does with it."""
    repr(explanation)
    explanation.to_json()
    explanation.half_widths(0.9)
    _ = explanation.certificate()
    _ = explanation._repr_html_()


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("saved")
    net = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Tanh(), torch.nn.Linear(3, 1)).eval()
    gralis.explain(net, torch.ones(4), budget=60, progress=False).save(folder / "a.gralis")
    results = gralis.explain_many(net, torch.randn(6, 4), out=folder / "run", budget=40, progress=False)
    gralis.global_importance(results).save(folder / "sums.json")
    return folder


def check_archives(saved: Path, n: int, seed: int) -> None:
    rng = random.Random(seed)
    arrays, meta = read_arrays(saved / "a.gralis", "explanation")
    meta = {key: part for key, part in meta.items() if key not in ("kind", "schema")}
    refused = 0
    for _ in range(n):
        blobs = {name: npy(array) for name, array in arrays.items()}
        about = meta
        if rng.random() < 0.5:
            name = rng.choice(sorted(arrays))
            blobs[name] = npy(changed_array(np.array(arrays[name]), rng))
        else:
            about = changed(meta, rng)
        path = archive(saved / "changed.gralis", blobs, about if isinstance(about, dict) else {})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                used(gralis.load(path))
            except GralisError as error:
                refused += 1
                assert "\n" not in str(error).strip()  # noqa: PT017
    assert refused > n / 5


def check_json(saved: Path, n: int, seed: int) -> None:
    rng = random.Random(seed)
    known = json.loads((saved / "sums.json").read_text())
    for _ in range(n):
        (saved / "changed.json").write_text(json.dumps(changed(known, rng)))
        with contextlib.suppress(GralisError):
            repr(Importance.load(saved / "changed.json"))
        report = changed({"schema": "gralis.report/1", "archive": {"data": "eJw=", "sha256": "0", "bytes": 3}}, rng)
        (saved / "changed.html").write_text(json.dumps(report))
        for read in (content_of, gralis.load):
            with contextlib.suppress(GralisError):
                read(saved / "changed.html")


def check_tables(saved: Path, n: int, seed: int) -> None:
    rng = random.Random(seed)
    whole = {"t.csv": b"a,b,c\n1,2,3\n4,5,6\n", "t.parquet": next((saved / "run" / "values").iterdir()).read_bytes()}
    for _ in range(n):
        name = rng.choice(sorted(whole))
        content = bytearray(whole[name])
        for _ in range(rng.randrange(1, 6)):
            content[rng.randrange(len(content))] = rng.randrange(256)
        (saved / name).write_bytes(bytes(content[: rng.randrange(len(content))] if rng.random() < 0.2 else content))
        with contextlib.suppress(GralisError):
            list(read_rows(saved / name))


SPANS = [[0, 1, "a\x1b"], [1, 2, "b"]]
GENERATION = {"tokens": ["\x1b[2J"], "spans": SPANS, "text": "ab", "answer": "\x1bq", "score": "\x1bx"}


def generation(path: Path, about: object) -> Path:
    explanation = to_bytes(gralis.explain(lambda z: z.prod(1), torch.ones(2), progress=False))
    parts = {f"{number}.gralis": explanation for number in range(3)}
    return write_parts(path, {"generation.json": json.dumps(about).encode(), **parts})


def test_a_generation_prints_no_control_characters(tmp_path) -> None:
    loaded = gralis.text.load(generation(tmp_path / "a.zip", GENERATION))
    for text in (repr(loaded), repr(loaded.sums("words")), str(loaded.spans)):
        assert "\x1b" not in text


@pytest.mark.parametrize(
    "about",
    [
        *([], 3, None, {}),
        *({**GENERATION, "tokens": value} for value in ([], 3, "a", [1], ["a"] * 9)),
        *(
            {**GENERATION, "spans": value}
            for value in (3, [3], [[0, 1]], [[0, 1, 2]] * 2, [[0, 9**9, "a"]] * 2, SPANS[:1])
        ),
        *({**GENERATION, name: None} for name in ("text", "answer", "score")),
    ],
    ids=repr,
)
def test_a_generation_that_cannot_be_is_one_sentence(tmp_path, about) -> None:
    with pytest.raises(GralisError, match=r"'path' parameter of text\.load must be a file that Generation\.save wrote"):
        gralis.text.load(generation(tmp_path / "a.zip", about))


def test_altered_files_are_refused_or_can_be_printed(saved) -> None:
    check_archives(saved, 200, 1)
    check_json(saved, 100, 1)
    check_tables(saved, 100, 1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 6))
def test_eight_thousand_altered_files(saved, seed) -> None:
    """Without tables: pyarrow ends the process on some damaged ones."""
    check_archives(saved, 1500, seed)
    check_json(saved, 500, seed)
