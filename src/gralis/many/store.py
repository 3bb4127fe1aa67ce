"""The folder of `explain_many`: the result tables of every block of inputs, and the explanations if they are kept.

values/  inputs/   the tables, a Parquet file per block
ledgers/           the explanations, under a hash of the id
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from gralis.errors import GralisError
from gralis.many.result_tables import OLDER_SCHEMAS, SCHEMA
from gralis.storage.folder import Entry, RunFolder, hashed_name, warn

__all__ = ["ResultsFolder", "ledger_name", "table_name"]


def table_name(table: str, block: int) -> str:
    """The file of a table of one block, within the folder."""
    return f"{table}/{block:08d}.parquet"


def ledger_name(item_id: str) -> str:
    """The file of the explanation of one input, within the folder."""
    return f"ledgers/{hashed_name(item_id)}.gralis"


class ResultsFolder(RunFolder):
    """The finished blocks by their number."""

    schema = SCHEMA
    older_schemas = OLDER_SCHEMAS
    folders = ("values", "inputs", "ledgers")
    block_type = int
    file_names = re.compile(r"(values|inputs)/\d{8}\.parquet|ledgers/[0-9a-f]{32}\.gralis")

    def finished(self, block: int, ids: Sequence[str]) -> Entry | None:
        """The entry of a block if it is complete and of these inputs, else None."""
        entry = self.entries.get(block)
        if entry is None:
            return None
        if entry.ids != list(ids):
            if entry.ids == list(ids)[: len(entry.ids)]:  # the last block, and there are more inputs now
                return None
            raise GralisError(
                f"The inputs are not those of the run in {self.path}: block {block} was {_some(entry.ids)} and is "
                f"{_some(ids)} now; choose another folder with out=."
            )
        for name in entry.files:
            if self.content(block, name) is None:
                warn(f"{self.path / name} is missing, truncated or altered; {len(ids)} inputs are explained again.")
                return None
        return entry

    def checked(self, block: int, name: str) -> bytes:
        """A file of a finished block, or the sentence that says how to restore it."""
        content = self.content(block, name)
        if content is None:
            raise GralisError(
                f"{self.path / name} is missing, truncated or altered; run explain_many again to restore it."
            )
        return content


def _some(ids: Sequence[str]) -> str:
    return f"{ids[0]!r} ... {ids[-1]!r} ({len(ids)} inputs)" if ids else "empty"
