"""Rows of a table as numbers: columns of text, categories and missing values get codes, which are read back exactly."""

from __future__ import annotations

from gralis.tables.coding import TableCoding, TableColumn
from gralis.tables.rows import is_table, row_count, table_rows

__all__ = ["TableCoding", "TableColumn", "is_table", "row_count", "table_rows"]
