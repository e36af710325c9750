"""CSV files hold no formulas."""

from __future__ import annotations

from io import StringIO

from kernel.csv_files import write_rows


def test_cell_that_a_spreadsheet_would_run_is_text() -> None:
    file = StringIO()
    write_rows(file, [("=1+1", "+1", "-1", "@sum", "\tx"), ("a=1", 1, -1)])
    first, second = file.getvalue().splitlines()
    assert first == "'=1+1,'+1,'-1,'@sum,'\tx"
    assert second == "a=1,1,-1"
