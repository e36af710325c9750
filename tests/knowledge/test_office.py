"""The text of office files: hostile ones are refused within bounds, plain ones are read."""

from __future__ import annotations

import zipfile

import pytest

from apps.knowledge.parsing import ProblemCode, office
from apps.knowledge.parsing.office import parse_office
from attack import bombs
from tests.factories.visitors import docx, paragraphs, xlsx

_LAUGHS = b'<!DOCTYPE w [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]><document><p><t>&b;</t></p></document>'


def _problem(data: bytes, name: str = "a.docx") -> ProblemCode:
    parsed = parse_office(data, name)
    assert parsed.documents == ()
    return parsed.problems[0].code


@pytest.mark.parametrize(
    "data",
    [
        docx({"word/document.xml": _LAUGHS}),
        docx({"word/document.xml": b"<document><p><t>cut off"}),
        docx()[:-30],
        bombs.zipped({"other.xml": b"<x/>"}),
        bombs.zip_with_a_password(),
        b"\xd0\xcf\x11\xe0 an encrypted office file",
        docx(how=zipfile.ZIP_LZMA),
    ],
)
def test_a_hostile_or_damaged_file_is_refused(data: bytes) -> None:
    assert _problem(data) == ProblemCode.UNREADABLE


def test_a_bomb_is_stopped_while_it_unpacks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(office, "MOST_BYTES", 100_000)
    swollen = b"<document><p><t>" + b" " * 1_000_000 + b"</t></p></document>"
    assert _problem(docx({"word/document.xml": swollen})) == ProblemCode.TOO_LARGE


def test_deep_nesting_is_read_without_a_tree() -> None:
    depth = 100_000
    deep = b"<a>" * depth + b"<t>found</t>" + b"</a>" * depth
    (document,) = parse_office(docx({"word/document.xml": deep}), "a.docx").documents
    assert document.text == "found"


def test_a_cell_that_names_no_text_is_refused() -> None:
    sheet = b'<worksheet><row><c t="s"><v>7</v></c></row></worksheet>'
    assert _problem(xlsx(sheet), "a.xlsx") == ProblemCode.UNREADABLE


def test_many_cells_of_one_long_text_stay_within_the_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(office, "CHARACTERS", 1000)
    sheet = b"<worksheet>" + b'<row><c t="s"><v>0</v></c></row>' * 500 + b"</worksheet>"
    (document,) = parse_office(xlsx(sheet, "x" * 900), "a.xlsx").documents
    assert len(document.text) <= 1000


def test_a_file_without_text_is_empty() -> None:
    assert _problem(docx()) == ProblemCode.EMPTY


def test_a_word_document_is_read_by_paragraphs_and_rows() -> None:
    row = "<tbl><tr><tc><p><r><t>Total</t></r></p></tc><tc><p><r><t>119.00</t></r></p></tc></tr></tbl>"
    data = docx({"word/document.xml": paragraphs("Invoice 12", "Thank you.", after=row)})
    (document,) = parse_office(data, "invoice.docx").documents
    assert document.text == "Invoice 12\n\nThank you.\n\n| Total | 119.00"


def test_a_workbook_is_read_by_rows() -> None:
    sheet = b'<worksheet><row><c t="s"><v>0</v></c><c><v>119.5</v></c></row><row/></worksheet>'
    (document,) = parse_office(xlsx(sheet, "Total"), "a.xlsx").documents
    assert document.text == "| Total | 119.5 |"
