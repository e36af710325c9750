"""Write CSV files whose cells a spreadsheet takes as text."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from typing import Protocol

# A spreadsheet would run a cell that begins so as a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


class _Writable(Protocol):
    def write(self, text: str, /) -> object: ...


def write_rows(file: _Writable, rows: Iterable[Iterable[object]]) -> None:
    csv.writer(file).writerows([_escaped(cell) for cell in row] for row in rows)


def _escaped(cell: object) -> object:
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA) else cell
