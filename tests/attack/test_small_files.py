"""A small file never takes much memory or time: shapes fit lengths, expansion has limits, and only what is asked for
is read."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from attack import crafted
from gralis.errors import GralisError
from gralis.many import table
from gralis.many.parquet_rows import ParquetRows

EXPECTED = {
    crafted.too_large_a_shape: "sentence *values.npy has the shape (1000000000,), which does not fit its length",
    crafted.unknown_arrays: "sentence *it holds the array 'more.0', which is not part of such a file",
    crafted.overlapping_members: "sentence *its parts are together larger than the file",
    crafted.report_that_expands: "sentence *it is larger than 256 MiB",
    crafted.report_without_an_end: "sentence *it has no whole element with the id gralis-report",
    crafted.generation_that_expands: "sentence *its parts are together larger than 256 MiB",
    crafted.generation_that_lies: "sentence *that Generation.save wrote",
    crafted.explanations_that_share: "explanations *600",
    crafted.results_that_expand: "sentence *a whole Parquet file (it stands for 916 MiB, more than the 28",
    crafted.deep_json: "sentence *is not a whole gralis report",
    crafted.parquet_of_many_rows: "row [1.0, 2.0] 12000000",
    crafted.parquet_of_long_cells: "sentence *a cell of 1048576 bytes in column 'long'",
    crafted.parquet_of_lists: "sentence *has the column 'a' of type list",
}


def test_no_small_file_takes_much_memory_or_time(tmp_path) -> None:
    files = [make(tmp_path) for make in EXPECTED]
    assert all(part.stat().st_size < 8 * 2**20 for file in files for part in (file, *file.rglob("*")))
    command = [sys.executable, "-W", "ignore", crafted.__file__, *map(str, files)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    for line, expected in zip(done.stdout.splitlines(), EXPECTED.values(), strict=True):
        kind, _, text = expected.partition(" *")
        assert line.startswith(kind)
        assert text in line


def test_only_the_columns_and_rows_that_are_asked_for_are_decoded(tmp_path) -> None:
    path = tmp_path / "t.parquet"
    lists = pa.array([[1.0]] * 5)
    pq.write_table(pa.table({"a": [1, 2, 3, 4, 5], "lists": lists, "b": list("vwxyz")}), path, row_group_size=2)
    rows = ParquetRows(path, ["lists"])
    assert (len(rows), rows[3], rows[-1]) == (5, [4, None, "y"], [5, None, "z"])
    assert rows[1:3] == [[2, None, "w"], [3, None, "x"]]
    assert [row[0] for row in rows] == [1, 2, 3, 4, 5]
    with pytest.raises(GralisError, match=r"column 'lists' of type list.*leave the column out"):
        ParquetRows(path)
    inputs = list(table(path, id="b", drop=["lists"]))
    assert [item.id for item in inputs] == list("vwxyz")
    assert inputs[2].make().x.tolist() == [3.0]


READING = """
import os, sys
import pyarrow, torch, gralis
def threads():
    return len(os.listdir("/proc/self/task"))
x = torch.eye(3)
x[0] = torch.nan
torch.set_num_threads(1)
gralis.explain(lambda z: z.prod(1), torch.ones(3))
import pyarrow.parquet
pyarrow.array([1])
before = threads()
results = gralis.explain_many(lambda z: z.prod(1), x, out="results", budget=40, progress=False, baseline=0.5)
assert results.failures and len(results.values_table()) and len(results.inputs_table())
pyarrow.parquet.write_table(results.values_table().select(["phi", "stderr"]), "t.parquet")
list(gralis.many.table("t.parquet"))
assert threads() - before <= 1, threads() - before  # the allocator's own
"""


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="counts threads by /proc")
def test_reading_results_starts_no_thread_that_could_abort_the_exit(tmp_path) -> None:
    """pyarrow's pools may still run while the interpreter ends: `terminate called without an active exception`."""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", READING], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
