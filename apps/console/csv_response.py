"""Answer with a CSV file whose cells a spreadsheet takes as text.

In UTF-8 with a byte order mark, without which Excel reads umlauts wrongly.
"""

from __future__ import annotations

import codecs
import io
from collections.abc import Iterable, Iterator, Sequence

from django.http import HttpResponse

from kernel.csv_files import write_rows
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.language import gettext

MAX_ROWS = 100_000


def csv_response(name: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> HttpResponse:
    """A download `name`.csv; its attribute `rows` counts the lines below the columns. Raises 422 `export_too_large`."""
    text, counted = io.StringIO(newline=""), _Counted(rows)
    write_rows(text, [columns])
    write_rows(text, counted)
    headers = {"Content-Disposition": f'attachment; filename="{name}.csv"', "Cache-Control": "private, no-store"}
    response = HttpResponse(
        codecs.BOM_UTF8 + text.getvalue().encode(), headers=headers, content_type="text/csv; charset=utf-8"
    )
    response.__dict__["rows"] = counted.number
    return response


class _Counted:
    def __init__(self, rows: Iterable[Sequence[object]]) -> None:
        self._rows, self.number = rows, 0

    def __iter__(self) -> Iterator[Sequence[object]]:
        for row in self._rows:
            self.number += 1
            if self.number > MAX_ROWS:
                message = gettext("The list has more than {most:,} rows. Add filters and try again.")
                raise SilasError(ErrorCode.EXPORT_TOO_LARGE, message.format(most=MAX_ROWS))
            yield row
