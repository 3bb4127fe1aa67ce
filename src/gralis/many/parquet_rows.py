"""The rows of a Parquet table: only the rows and the columns that are asked for, in batches, within bounds.

A Parquet file of some hundred kilobytes can stand for billions of cells, and for cells of any length. So rows are
decoded in small batches, text stays in its dictionary until a cell is needed, and columns that cannot hold numbers or
names are not decoded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, overload

from gralis.errors import GralisError
from gralis.many.result_tables import arrow

__all__ = ["ParquetRows"]

_CELLS = 2**18  # in a batch
_LONGEST = 4096  # characters of a cell
_MOST_BYTES = 2**28  # of the texts of one column in one group of rows, by the file's own account
_MOST_COLUMNS = 2**16


class ParquetRows(Sequence[list[Any]]):
    """The rows of a file as lists with a cell for every column; columns that are left out have None in their place.

    Parameters
    ----------
    path : Path
        The file.
    drop : sequence of str, default=()
        Columns that are not decoded.
    """

    def __init__(self, path: Path, drop: Sequence[str] = ()) -> None:
        self._path = path
        with self._opened() as file:
            schema = file.schema_arrow
            self.names = [str(name) for name in schema.names]
            if len(self.names) > _MOST_COLUMNS:
                raise GralisError(f"{path} has {len(self.names)} columns, more than the {_MOST_COLUMNS} that are read.")
            self._kept = [i for i, name in enumerate(self.names) if name not in drop]
            self._text = [name for name in self.names if name not in drop and self._is_text(schema.field(name), name)]
            self._groups = [file.metadata.row_group(i).num_rows for i in range(file.metadata.num_row_groups)]

    def __len__(self) -> int:
        """The number of rows that the file states."""
        return sum(self._groups)

    @overload
    def __getitem__(self, index: int) -> list[Any]: ...
    @overload
    def __getitem__(self, index: slice) -> list[list[Any]]: ...
    def __getitem__(self, index: int | slice) -> Any:
        wanted = range(len(self))[index]
        if isinstance(wanted, range):
            return [self[each] for each in wanted]
        group = 0
        while wanted >= self._groups[group]:
            wanted -= self._groups[group]
            group += 1
        for batch in self._batches([group]):
            if wanted < batch.num_rows:
                return self._rows(batch.slice(wanted, 1))[0]
            wanted -= batch.num_rows
        raise self._broken("it has fewer rows than it states")

    def __iter__(self) -> Iterator[list[Any]]:
        for batch in self._batches(list(range(len(self._groups)))):
            yield from self._rows(batch)

    def _batches(self, groups: list[int]) -> Iterator[Any]:
        rows = max(1, _CELLS // max(len(self._kept), 1))
        names = [self.names[i] for i in self._kept]
        with self._opened(read_dictionary=self._text) as file:
            for group in groups:
                self._require_small(file.metadata.row_group(group))
            yield from file.iter_batches(rows, row_groups=groups, columns=names, use_threads=False)

    def _rows(self, batch: Any) -> list[list[Any]]:
        cells: list[Any] = [[None] * batch.num_rows] * len(self.names)
        compute = arrow("pyarrow.compute")
        for i, column in zip(self._kept, batch.columns, strict=True):
            if hasattr(column, "dictionary") and len(column.dictionary):
                used = column.dictionary.take(compute.unique(column.indices).drop_null())
                longest = compute.max(compute.binary_length(used)).as_py() or 0
                if longest > _LONGEST:
                    what = f"a cell of {longest} bytes in column {self.names[i]!r}, more than the {_LONGEST}"
                    raise GralisError(f"{self._path} has {what} that are read; leave the column out (drop).")
            cells[i] = column.to_pylist()
        return list(map(list, zip(*cells, strict=True)))

    def _is_text(self, field: Any, name: str) -> bool:
        """Whether a column holds text; columns of lists and other parts are refused, because a cell has no limit."""
        types, kind = arrow("pyarrow.types"), field.type
        if types.is_dictionary(kind):
            kind = kind.value_type
        if types.is_string(kind) or types.is_large_string(kind):
            return True
        if types.is_primitive(kind) or types.is_null(kind) or types.is_decimal(kind):
            return False
        raise GralisError(
            f"{self._path} has the column {name!r} of type {str(kind)[:80]}, and a cell must be a number or a text; "
            f"leave the column out (drop)."
        )

    def _require_small(self, group: Any) -> None:
        for i in range(group.num_columns):
            column = group.column(i)
            if column.path_in_schema in self._text and column.total_uncompressed_size > _MOST_BYTES:
                what = f"{column.total_uncompressed_size // 2**20} MiB of text in column {column.path_in_schema!r}"
                raise GralisError(f"{self._path} has {what}; leave the column out (drop), or split the file.")

    @contextmanager
    def _opened(self, **options: Any) -> Iterator[Any]:
        parquet = arrow("pyarrow.parquet")
        try:
            with parquet.ParquetFile(self._path, pre_buffer=False, **options) as file:
                yield file
        except GralisError:
            raise
        except Exception as error:  # a broken file can make a decoder raise anything
            raise self._broken(str(error).partition("\n")[0]) from error

    def _broken(self, why: str) -> GralisError:
        return GralisError(f"{self._path} cannot be read as Parquet ({why}).")
