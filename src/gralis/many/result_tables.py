"""The two tables of a run, as Parquet: one row per input and feature, and one row per input.

Every file names the version of its schema, and there is a reader for every version that was ever written.
"""

from __future__ import annotations

import importlib
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gralis.errors import GralisError
from gralis.results.explanation import Explanation
from gralis.storage.json_values import plain

__all__ = ["OLDER_SCHEMAS", "SCHEMA", "Outcome", "arrow", "as_parquet", "empty", "pack", "unpack", "written"]

SCHEMA = "gralis.many/2"
OLDER_SCHEMAS = ("gralis.many/1",)
_KEY = b"gralis.schema"
_VALUES = {"input": "string", "feature": "int32", "name": "string", "phi": "f8", "stderr": "f8", "half_width": "f8"}
_INPUTS = {
    "input": "string",
    "failure": "string",  # why there is no result; null if there is one
    "label": "string",
    "target": "string",
    "n_features": "int64",
    "f_x": "f8",
    "f_baseline": "f8",
    "sum_phi": "f8",
    "residual": "f8",  # F(x) - F(x') - sum of phi
    "residual_path": "f8",  # its three parts; null without residuals=True
    "residual_numerical": "f8",
    "residual_kernel": "f8",
    "certificate": "f8",  # the widest half-width
    "certificate_sum": "f8",  # the half-width of the sum of phi
    "certificate_level": "f8",
    "certificate_kind": "string",
    "method": "string",
    "n_gradients": "int64",
    "n_forwards": "int64",
    "n_rays": "int64",
    "provenance": "string",  # JSON
    "doubts": "string",  # why the intervals may not hold, one sentence on each line; null if nothing objects
}
_TEXTS = tuple({name for columns in (_VALUES, _INPUTS) for name, kind in columns.items() if kind == "string"})
_MOST_BYTES, _MOST_TIMES = 2**28, 64  # of a table in memory: 256 MiB, and 64 times its file


@dataclass(frozen=True)
class Outcome:
    """What came of one input: an explanation, or the reason why there is none."""

    id: str
    label: str | None = None
    explanation: Explanation | None = None
    failure: str | None = None


def written(text: str) -> str:
    """The text as UTF-8 can hold it: a lone surrogate, such as a foreign byte of a file name, becomes its number.

    >>> written("photo \\udcff")
    'photo \\\\udcff'
    """
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def arrow(module: str = "pyarrow") -> Any:
    """pyarrow, or an error that says how to install it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise GralisError('Result tables need pyarrow: pip install "gralis[many]".') from error


def pack(outcomes: Sequence[Outcome], level: float, *, residuals: bool) -> tuple[bytes, bytes]:
    """The values table and the inputs table of a block, as Parquet files. The same outcomes give the same bytes."""
    pa = arrow()
    inputs: list[dict[str, Any]] = []
    columns: dict[str, list[Any]] = {name: [] for name in _VALUES}
    for outcome in outcomes:
        explanation = outcome.explanation
        row: dict[str, Any] = {"input": outcome.id, "label": outcome.label, "failure": outcome.failure}
        row = {name: text if text is None else written(text) for name, text in row.items()}
        if explanation is not None:
            certificate, half_widths = explanation.certificate(1 - level), explanation.half_widths(level)
            row |= _about(explanation, residuals) | {
                "certificate": float(half_widths.max()),
                "certificate_sum": certificate.aggregate,
                "certificate_level": level,
                "certificate_kind": certificate.kind,
            }
            n = explanation.n_features
            columns["input"].append(pa.repeat(outcome.id, n))
            columns["feature"].append(pa.array(np.arange(n, dtype=np.int32)))
            columns["name"].append(pa.array([written(name) for name in explanation.names], pa.string()))
            numbers = {"phi": explanation.values, "stderr": explanation.stderr, "half_width": half_widths}
            for name, column in numbers.items():
                columns[name].append(pa.array(np.asarray(column, dtype=np.float64)))
        inputs.append(row)
    values_schema, inputs_schema = _schema(_VALUES), _schema(_INPUTS)
    parts = [pa.chunked_array(columns[name], values_schema.field(name).type).combine_chunks() for name in _VALUES]
    values = pa.Table.from_arrays(parts, schema=values_schema)
    rows = pa.Table.from_pylist(inputs, schema=inputs_schema)
    return as_parquet(values), as_parquet(rows)


def _about(e: Explanation, residuals: bool) -> dict[str, Any]:
    total = float(e.values.sum())
    about = {
        "target": written(str(e.provenance["target"])),
        "n_features": e.n_features,
        "f_x": e.f_x,
        "f_baseline": e.f_baseline,
        "sum_phi": total,
        "residual": e.delta - total,
        "method": e.method,
        "n_gradients": e.cost.n_gradients,
        "n_forwards": e.cost.n_forwards,
        "n_rays": e.cost.n_rays,
        "provenance": json.dumps(plain({**e.provenance, "plan": e.plan})),
        "doubts": written("\n".join(e.doubts)) or None,
    }
    if residuals:
        parts = e.residual
        about |= {f"residual_{name}": getattr(parts, name).value for name in ("path", "numerical", "kernel")}
    return about


def unpack(content: bytes, name: str, table: str) -> Any:
    """The table ("values" or "inputs") in a Parquet file, checked column by column."""
    pa = arrow()
    parquet = arrow("pyarrow.parquet")
    try:
        # Without threads: pyarrow's pools may end after the interpreter does, which aborts the process.
        with parquet.ParquetFile(pa.BufferReader(content), pre_buffer=False) as file:
            texts = [name for name in file.schema_arrow.names if name in _TEXTS]
        with parquet.ParquetFile(pa.BufferReader(content), pre_buffer=False, read_dictionary=texts) as file:
            read = _bounded(file, _MOST_BYTES + _MOST_TIMES * len(content))
    except (pa.ArrowException, OSError, ValueError) as error:
        first = str(error).partition("\n")[0]
        raise GralisError(f"{name} is not a whole Parquet file ({first}).") from error
    version = (read.schema.metadata or {}).get(_KEY, b"none").decode(errors="replace")
    if version not in _READERS:
        raise GralisError(
            f"{name} has the schema {version!r}; this gralis reads {', '.join(_READERS)}: update gralis if it is newer."
        )
    return _READERS[version](read, name, table)


def _bounded(file: Any, most: int) -> Any:
    """The table in a file, unless it takes more bytes than that: a small file can stand for billions of cells."""
    pa, compute = arrow(), arrow("pyarrow.compute")
    about = file.metadata
    encoded = sum(about.row_group(i).total_byte_size for i in range(about.num_row_groups))
    needed = max(encoded, 8 * about.num_rows * about.num_columns)
    if needed <= most:
        read = file.read(use_threads=False)
        texts = [name for name in read.schema.names if pa.types.is_dictionary(read.schema.field(name).type)]
        for chunk in (chunk for name in texts for chunk in read[name].chunks):
            lengths = compute.binary_length(chunk.dictionary)
            needed += compute.sum(lengths.take(chunk.indices)).as_py() or 0
    if needed > most:
        raise ValueError(f"it stands for {needed / 2**20:.0f} MiB, more than the {most / 2**20:.0f} MiB of such a file")
    for name in texts:  # one value for all equal cells until here
        place = read.schema.get_field_index(name)
        column = read[name]
        read = read.set_column(place, read.schema.field(name).with_type(pa.string()), column.cast(pa.string()))
    return read


def _read_2(read: Any, name: str, table: str) -> Any:
    if not read.schema.equals(_schema(_VALUES if table == "values" else _INPUTS)):
        raise GralisError(f"{name} does not have the columns of a {table} table of {SCHEMA}; it may be altered.")
    return read


def _read_1(read: Any, name: str, table: str) -> Any:
    """A table from before there were doubts."""
    if table == "inputs" and "doubts" not in read.schema.names:
        pa = arrow()
        read = read.append_column("doubts", pa.nulls(len(read), pa.string()))
    return _read_2(read, name, table).replace_schema_metadata({_KEY: SCHEMA.encode()})


_READERS = {SCHEMA: _read_2, "gralis.many/1": _read_1}


def empty(table: str) -> Any:
    """A table without rows."""
    return _schema(_VALUES if table == "values" else _INPUTS).empty_table()


def _schema(columns: dict[str, str]) -> Any:
    pa = arrow()
    kinds = {"string": pa.string(), "f8": pa.float64(), "int32": pa.int32(), "int64": pa.int64()}
    return pa.schema([(name, kinds[kind]) for name, kind in columns.items()], metadata={_KEY: SCHEMA.encode()})


def as_parquet(table: Any) -> bytes:
    """A table as the bytes of a Parquet file."""
    stream = io.BytesIO()
    arrow("pyarrow.parquet").write_table(table, stream, compression="zstd")
    return stream.getvalue()
