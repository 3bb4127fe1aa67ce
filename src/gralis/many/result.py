"""What `explain_many` returns: a view of the folder, whose files are read when they are needed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gralis.checks import one_of, whole
from gralis.errors import GralisError
from gralis.files.archive import load
from gralis.many.result_tables import arrow, empty, unpack
from gralis.many.store import ResultsFolder, ledger_name, table_name
from gralis.notebook import InNotebooks
from gralis.results.explanation import Explanation

__all__ = ["Failure", "Results", "failures_of"]


@dataclass(frozen=True)
class Failure:
    """An input without a result.

    Attributes
    ----------
    id : str
        The id of the input.
    reason : str
        Why it could not be explained, in one sentence.
    """

    id: str
    reason: str


@dataclass(frozen=True)
class KeptExplanation:
    """The explanation of one input in the folder of a run, which is read when it is needed.

    Attributes
    ----------
    digest : str
        The sha256 of its file.
    """

    _folder: ResultsFolder
    _block: int
    _name: str
    digest: str

    def load(self) -> Explanation:
        """The explanation, after its file was checked against the manifest."""
        self._folder.checked(self._block, self._name)
        return load(self._folder.path / self._name)


class Results(InNotebooks):
    """The results in a folder of `explain_many`, of a run that is finished or not.

    Every file is checked against the manifest when it is read. `len(results)` is the number of finished inputs,
    including those that failed.

    Parameters
    ----------
    path : str or Path
        The folder that was given to `explain_many` as `out`.

    Attributes
    ----------
    path : Path
        The folder.

    Examples
    --------
    >>> import gralis, tempfile, torch
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = gralis.explain_many(lambda z: z.sum(1), torch.eye(2), out=folder)
    ...     results = Results(folder)
    ...     list(results.ids), results.values_table()["phi"].to_numpy().round(6).tolist()
    (['0', '1'], [1.0, 0.0, 0.0, 1.0])
    """

    def __init__(self, path: str | Path) -> None:
        self._folder = ResultsFolder.read(path)
        self.path = self._folder.path

    def __len__(self) -> int:
        """The number of finished inputs, including those that failed."""
        return sum(len(entry.ids) for entry in self._folder.entries.values())

    @property
    def ids(self) -> Iterator[str]:
        """The ids in the order of the inputs."""
        return (name for _, entry in sorted(self._folder.entries.items()) for name in entry.ids)

    @property
    def n_failures(self) -> int:
        """The number of inputs without a result."""
        return sum(entry.failed for entry in self._folder.entries.values())

    @property
    def failures(self) -> list[Failure]:
        """The inputs without a result, each with the reason."""
        return [failure for block in sorted(self._folder.entries) for failure in failures_of(self._folder, block)]

    @property
    def n_doubted(self) -> int:
        """The number of inputs whose intervals may not hold, for a reason that `doubts` gives."""
        return sum(entry.doubted for entry in self._folder.entries.values())

    @property
    def doubts(self) -> dict[str, tuple[str, ...]]:
        """Why the intervals of an input may not hold, in sentences; only inputs with doubts are named."""
        blocks = (block for block in sorted(self._folder.entries) if self._folder.entries[block].doubted)
        rows = (row for block in blocks for row in _read(self._folder, "inputs", block).to_pylist())
        return {row["input"]: tuple(row["doubts"].split("\n")) for row in rows if row["doubts"] is not None}

    def parts(self, table: str) -> Iterator[Any]:
        """One table block by block, so that the memory does not grow with the data set.

        Parameters
        ----------
        table : {"values", "inputs"}
            Which table.

        Returns
        -------
        iterator of pyarrow.Table
            The blocks in the order of the inputs.
        """
        one_of(table, ("values", "inputs"), "table", "Results.parts")
        return (_read(self._folder, table, block) for block in sorted(self._folder.entries))

    def values_table(self) -> Any:
        """One row per input and feature, as a pyarrow table: phi, standard error and half-width."""
        return arrow().concat_tables([empty("values"), *self.parts("values")])

    def inputs_table(self) -> Any:
        """One row per input, as a pyarrow table: residual, certificate, cost, doubts and more, or why it failed."""
        return arrow().concat_tables([empty("inputs"), *self.parts("inputs")])

    def kept(self, block: int) -> dict[str, KeptExplanation]:
        """The complete explanations that the run kept of one block, by the id of their input.

        Parameters
        ----------
        block : int
            The place of the block, as `parts` counts them.

        Returns
        -------
        dict from str to KeptExplanation
            Empty if the run kept none.
        """
        numbers = sorted(self._folder.entries)
        number = numbers[whole(block, "block", 0, "Results.kept", most=len(numbers) - 1)]
        entry = self._folder.entries[number]
        named = {item: ledger_name(item) for item in entry.ids}
        return {
            item: KeptExplanation(self._folder, number, name, str(entry.files[name][1]))
            for item, name in named.items()
            if name in entry.files
        }

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of the run, as `run.json` keeps them."""
        return dict(self._folder.settings or {})

    def explanation(self, item_id: object) -> Explanation:
        """The complete explanation of one input, if the run kept explanations (`ledgers=True`).

        Parameters
        ----------
        item_id : str or int
            The id of the input.

        Returns
        -------
        Explanation
            As `gralis.load` returns it.
        """
        name = ledger_name(str(item_id))
        for block, entry in self._folder.entries.items():
            if str(item_id) in entry.ids:
                if name not in entry.files:
                    failed = any(failure.id == str(item_id) for failure in failures_of(self._folder, block))
                    why = "its explanation failed" if failed else "run with ledgers=True to keep them"
                    raise GralisError(f"There is no ledger of {item_id!r}: {why}.")
                return KeptExplanation(self._folder, block, name, str(entry.files[name][1])).load()
        raise GralisError(f"There is no input {item_id!r} in {self.path}.")

    def _frame_columns(self) -> Mapping[str, Any]:
        table = self.values_table()
        return {name: table[name].to_pylist() for name in table.column_names}

    def __repr__(self) -> str:
        failed = f", {self.n_failures} of them without a result (see .failures)" if self.n_failures else ""
        doubted = f", {self.n_doubted} of them with doubts (see .doubts)" if self.n_doubted else ""
        return f"Results of {len(self)} inputs in {self.path}{failed}{doubted}"


def failures_of(folder: ResultsFolder, block: int) -> list[Failure]:
    """The inputs of a finished block that have no result."""
    if not folder.entries[block].failed:
        return []
    rows = _read(folder, "inputs", block).select(["input", "failure"]).to_pylist()
    return [Failure(row["input"], row["failure"]) for row in rows if row["failure"] is not None]


def _read(folder: ResultsFolder, table: str, block: int) -> Any:
    name = table_name(table, block)
    return unpack(folder.checked(block, name), str(folder.path / name), table)
