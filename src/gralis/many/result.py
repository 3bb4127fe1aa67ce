"""What `explain_many` returns: a view on the folder, read part by part when it is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gralis.errors import GralisError
from gralis.files.archive import load
from gralis.many.store import Store, ledger_name, table_name
from gralis.many.tables import arrow, empty, unpack
from gralis.results.explanation import Explanation


@dataclass(frozen=True)
class Failure:
    """An input without a result."""

    id: str
    reason: str


class Results:
    """The results in a folder; every file is checked against the manifest when it is read.

    `Results(folder)` opens those of an earlier run.
    """

    def __init__(self, path: str | Path) -> None:
        self._store = Store.read(path)
        self.path = self._store.path

    def __len__(self) -> int:
        """How many inputs are finished, failures included."""
        return sum(len(entry.ids) for entry in self._store.entries.values())

    @property
    def ids(self) -> Iterator[str]:
        """The ids in the order of the inputs."""
        return (name for _, entry in sorted(self._store.entries.items()) for name in entry.ids)

    @property
    def n_failures(self) -> int:
        return sum(entry.failed for entry in self._store.entries.values())

    @property
    def failures(self) -> list[Failure]:
        """Which inputs have no result, and why."""
        return [one for block in sorted(self._store.entries) for one in failures_of(self._store, block)]

    def parts(self, table: str) -> Iterator[Any]:
        """The "values" or "inputs" table block by block, as pyarrow tables: memory stays flat."""
        if table not in ("values", "inputs"):
            raise GralisError(f"There is a table 'values' and a table 'inputs'; got {table!r}.")
        return (self._table(table, block) for block in sorted(self._store.entries))

    def values_table(self) -> Any:
        """One row per input and feature, as a pyarrow table."""
        return arrow().concat_tables([empty("values"), *self.parts("values")])

    def inputs_table(self) -> Any:
        """One row per input, as a pyarrow table: residual, certificate, cost, provenance, or why it failed."""
        return arrow().concat_tables([empty("inputs"), *self.parts("inputs")])

    def explanation(self, item_id: object) -> Explanation:
        """The whole explanation of one input; needs ledgers=True in the run."""
        name = ledger_name(str(item_id))
        for block, entry in self._store.entries.items():
            if str(item_id) in entry.ids:
                if name not in entry.files:
                    failed = any(one.id == str(item_id) for one in failures_of(self._store, block))
                    why = "its explanation failed" if failed else "run with ledgers=True to keep them"
                    raise GralisError(f"There is no ledger of {item_id!r}: {why}.")
                self._store.content(block, name)  # is it the one that was written?
                return load(self.path / name)
        raise GralisError(f"There is no input {item_id!r} in {self.path}.")

    def _table(self, table: str, block: int) -> Any:
        return _read(self._store, table, block)

    def __repr__(self) -> str:
        failed = f", {self.n_failures} of them without a result (see .failures)" if self.n_failures else ""
        return f"Results of {len(self)} inputs in {self.path}{failed}"


def failures_of(store: Store, block: int) -> list[Failure]:
    """The inputs of a finished block that have no result."""
    if not store.entries[block].failed:
        return []
    rows = _read(store, "inputs", block).select(["input", "failure"]).to_pylist()
    return [Failure(row["input"], row["failure"]) for row in rows if row["failure"] is not None]


def _read(store: Store, table: str, block: int) -> Any:
    name = table_name(table, block)
    return unpack(store.content(block, name), str(store.path / name), table)
