"""Small files that stand for much more than they are, and a process that may use little memory and time to read them.

python crafted.py FILE ... reads every file and prints the sentence that it gets, or what it read.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import resource
import sys
import zipfile
import zlib
from pathlib import Path

import numpy as np

from gralis.storage.container import read_arrays, write_arrays

MEMORY = 600 * 2**20  # bytes beyond what Python and its libraries take
SECONDS = 30  # of the processor


def header(shape: tuple[int, ...], descr: str = "<f8") -> bytes:
    """The header of an .npy file that claims this shape."""
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": descr, "fortran_order": False, "shape": shape})
    return stream.getvalue()


def archive(path: Path, blobs: dict[str, bytes], meta: dict | None = None, kind: str = "explanation") -> Path:
    """A .gralis file of these members, with true checksums."""
    digests = {name: hashlib.sha256(blob).hexdigest() for name, blob in blobs.items()}
    text = json.dumps({"schema": 1, "kind": kind, "sha256": digests, **(meta or {})})
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as file:
        file.writestr("meta.json", text)
        for name, blob in blobs.items():
            file.writestr(f"{name}.npy", blob)
    return path


def too_large_a_shape(folder: Path) -> Path:
    """An array of eight bytes that claims to be one of eight billion."""
    return archive(folder / "shape.gralis", {"values": header((10**9,)) + bytes(8)})


def unknown_arrays(folder: Path) -> Path:
    """Arrays that no explanation has."""
    return archive(folder / "unknown.gralis", {f"more.{i}": header((4,)) + bytes(32) for i in range(8)})


def overlapping_members(folder: Path) -> Path:
    """Two hundred members that share the same four megabytes."""
    path = archive(folder / "overlap.gralis", {"values": header((2**19,)) + bytes(2**22)})
    content = path.read_bytes()
    directory = content.index(b"PK\1\2")
    entry = content[content.index(b"PK\1\2", directory + 1) : content.index(b"PK\5\6")]
    copies = b"".join(entry.replace(b"values.npy", f"x.{i:04d}.npy".encode()) for i in range(200))
    end = bytearray(content[content.index(b"PK\5\6") :])
    end[8:12] = (202).to_bytes(2, "little") * 2
    end[12:16] = (content.index(b"PK\5\6") - directory + len(copies)).to_bytes(4, "little")
    path.write_bytes(content[: content.index(b"PK\5\6")] + copies + bytes(end))
    return path


def report_that_expands(folder: Path) -> Path:
    """A page of one or two megabytes with an explanation of 1.5 GiB inside."""
    packing, size = zlib.compressobj(9), 0
    parts = []
    for _ in range(24):
        parts.append(packing.compress(bytes(2**26)))
        size += 2**26
    data = b"".join([*parts, packing.flush()])
    inside = {"encoding": "zlib+base64", "bytes": size, "sha256": "0" * 64, "data": base64.b64encode(data).decode()}
    page = json.dumps({"schema": "gralis.report/1", "archive": inside})
    path = folder / "expands.html"
    path.write_text(f'<html><script type="application/json" id="gralis-report">{page}</script></html>')
    return path


def report_without_an_end(folder: Path) -> Path:
    """Many beginnings of the content, and no end."""
    path = folder / "endless.html"
    path.write_text("<html>" + '<script type="application/json" id="gralis-report">' * 20_000)
    return path


def deep_json(folder: Path) -> Path:
    path = folder / "deep.html"
    path.write_text('{"schema": "gralis.report/1", "archive": ' + "[" * 100_000)
    return path


def generation_that_expands(folder: Path) -> Path:
    """A generation of one megabyte whose text takes one gigabyte."""
    path = folder / "expands.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file, file.open("generation.json", "w") as member:
        for _ in range(2**4):
            member.write(bytes(2**26))
    return path


def generation_that_lies(folder: Path) -> Path:
    """A part of one gigabyte that claims to be one of eight bytes."""
    content, path = generation_that_expands(folder).read_bytes(), folder / "lies.zip"
    path.write_bytes(content.replace((2**30).to_bytes(4, "little"), (8).to_bytes(4, "little")))
    return path


def explanations_that_share(folder: Path) -> Path:
    """Six hundred explanations that have the same two arrays of a megabyte in common."""
    import gralis

    features = gralis.features.groups(np.arange(2**18) % 2)
    rows = np.zeros((1, 2**18), dtype=np.float32)
    found = gralis.explain_batch(lambda z: z[:, :2].sum(1), rows, features=features, baseline=1.0, progress=False)
    path = found.save(folder / "shared.gralis")
    arrays, meta = read_arrays(path, "explanations")
    return write_arrays(path, arrays, {**meta, "each": meta["each"] * 600, "labels": ["a"] * 600})


def results_that_expand(folder: Path) -> Path:
    """A results folder in which a table of twenty million equal rows stands for two."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    import gralis
    from gralis.many.result_tables import empty
    from gralis.many.store import ResultsFolder

    run = folder / "results"
    gralis.explain_many(lambda z: z.prod(1), np.ones((1, 2)), out=run, budget=40, progress=False)
    path, schema, n = run / "values" / "00000000.parquet", empty("values").schema, 10**6
    cells = {"string": "0", "int32": 0, "double": 1.0}
    columns = [pa.repeat(pa.scalar(cells[str(field.type)], field.type), n) for field in schema]
    with pq.ParquetWriter(path, schema, compression="zstd") as file:
        for _ in range(20):
            file.write_table(pa.Table.from_arrays(columns, schema=schema))
    content, manifest = path.read_bytes(), run / "manifest.jsonl"
    entry = json.loads(manifest.read_text().partition(" ")[2])
    entry["files"][f"values/{path.name}"] = [len(content), hashlib.sha256(content).hexdigest()]
    text = json.dumps(entry, separators=(",", ":"))
    manifest.write_text(f"{ResultsFolder.read(run)._digest(text)} {text}\n")
    return run


def parquet_of_many_rows(folder: Path) -> Path:
    """Twelve million equal rows in some kilobytes."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    part = pa.table({"a": pa.repeat(1.0, 10**6), "b": pa.repeat(2.0, 10**6)})
    path = folder / "rows.parquet"
    with pq.ParquetWriter(path, part.schema, compression="zstd") as file:
        for _ in range(12):
            file.write_table(part)
    return path


def parquet_of_long_cells(folder: Path) -> Path:
    """A text of a megabyte that two thousand rows share."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    long = pa.DictionaryArray.from_arrays(pa.array([0] * 2000, pa.int32()), pa.array(["1" * 2**20]))
    path = folder / "cells.parquet"
    table = pa.table({"a": pa.repeat(1.0, 2000), "long": long})
    pq.write_table(table, path, compression="zstd", store_schema=False)
    return path


def parquet_of_lists(folder: Path) -> Path:
    """One row, one cell, ten million numbers."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = folder / "lists.parquet"
    numbers = pa.ListArray.from_arrays(pa.array([0, 10**7], pa.int32()), pa.repeat(1.0, 10**7))
    pq.write_table(pa.table({"a": numbers}), path, compression="zstd")
    return path


def main(files: list[str]) -> None:
    import torch

    import gralis
    from gralis.cli.tables import read_table
    from gralis.many.parquet_rows import ParquetRows

    torch.set_num_threads(1)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MEMORY,) * 2)
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS + int(resource.getrusage(resource.RUSAGE_SELF).ru_utime),) * 2)
    for file in map(Path, files):
        try:
            if file.suffix == ".parquet":
                print("row", read_table(file).row(11).tolist(), len(ParquetRows(file)), flush=True)
            elif file.suffix == ".zip":
                print("generation", gralis.text.load(file), flush=True)
            elif file.is_dir():
                print("results", gralis.many.Results(file).values_table().num_rows, flush=True)
            elif file.name == "shared.gralis":
                print("explanations", len(gralis.load(file)), flush=True)
            else:
                print("explanation", gralis.load(file), flush=True)
        except gralis.GralisError as error:
            print("sentence", " ".join(str(error).split()), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
