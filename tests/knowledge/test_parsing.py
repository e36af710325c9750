"""Reading files: whatever a file is, the answer is its documents and a coded problem for the rest."""

from __future__ import annotations

import codecs
import json
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.knowledge.parsing import ProblemCode, files, parse, pdf, read
from apps.knowledge.parsing.text import clean
from tests.factories.knowledge import pdf_of


def problems_of(data: bytes, name: str) -> list[ProblemCode]:
    return [problem.code for problem in parse(data, name).problems]


def text_of(data: bytes, name: str) -> str:
    (document,) = parse(data, name).documents
    return document.text


@pytest.mark.parametrize(
    ("data", "name", "code"),
    [
        (b"", "a.md", ProblemCode.EMPTY),
        (b" \n\t\n", "a.txt", ProblemCode.EMPTY),
        (b"\n\n", "a.jsonl", ProblemCode.EMPTY),
        (b"<html><script>only()</script></html>", "a.html", ProblemCode.EMPTY),
        (b"---\ntitle: Only front matter\n---\n", "a.md", ProblemCode.EMPTY),
        (b"\x89PNG\r\n\x1a\n\x00\x00", "a.txt", ProblemCode.BINARY),
        (b"MZ\x90\x00\x03", "a.md", ProblemCode.BINARY),
        (b"\x00\x01", "a.jsonl", ProblemCode.BINARY),
        ("Größe".encode("latin-1"), "a.md", ProblemCode.WRONG_ENCODING),
        (b"\xff\xfe\x00", "a.txt", ProblemCode.WRONG_ENCODING),
        (b"<meta charset=klingon><p>x", "a.html", ProblemCode.WRONG_ENCODING),
        (b"<meta charset=utf-8><p>\xe9", "a.html", ProblemCode.WRONG_ENCODING),
        (b"words", "a.docx", ProblemCode.UNSUPPORTED),
        (b"words", "noending", ProblemCode.UNSUPPORTED),
        (b"%PDF-1.7 and then nothing", "a.pdf", ProblemCode.BROKEN_PDF),
        (b"not a pdf at all", "a.pdf", ProblemCode.BROKEN_PDF),
        (pdf_of("secret", password="x"), "a.pdf", ProblemCode.ENCRYPTED_PDF),
        (pdf_of(""), "a.pdf", ProblemCode.EMPTY),
        (pdf_of("a fine page")[:-400], "a.pdf", ProblemCode.BROKEN_PDF),
        (b"<div>" * 100_000, "a.html", ProblemCode.BROKEN_HTML),
    ],
)
def test_parse_bad_file_is_a_coded_problem(data: bytes, name: str, code: ProblemCode) -> None:
    assert problems_of(data, name) == [code]


@pytest.mark.parametrize("name", ["a.md", "a.txt", "a.html", "a.jsonl"])
@given(data=st.binary(max_size=300))
def test_parse_any_bytes_answers(name: str, data: bytes) -> None:
    parsed = parse(data, name)
    assert parsed.documents or parsed.problems


@given(st.text())
def test_clean_any_text_can_be_stored(text: str) -> None:
    stored = clean(text + "\x00\ud800").encode()
    assert b"\x00" not in stored


@pytest.mark.parametrize("mark", ["utf-8-sig", "utf-16", "utf-32"])
def test_parse_text_with_byte_order_mark_is_read(mark: str) -> None:
    assert text_of("Größe".encode(mark), "a.txt") == "Größe"


def test_parse_text_without_byte_order_mark_keeps_every_character() -> None:
    assert text_of(codecs.BOM_UTF8 + "a\r\nb\rc\n\ttab 🎉".encode(), "a.txt") == "a\nb\nc\n\ttab 🎉"


def test_parse_html_in_declared_encoding_is_read() -> None:
    assert text_of('<meta charset="iso-8859-1"><p>Größe'.encode("latin-1"), "a.html") == "Größe"


def test_parse_html_leaves_out_scripts_styles_and_navigation() -> None:
    page = b"<title>T</title><style>s</style><nav>n</nav><script>x</script><h1>Head<script>y</script></h1><p>Body"
    assert text_of(page, "a.html") == "# Head\n\nBody"


def test_parse_html_shows_lists_and_tables_in_lines() -> None:
    page = b"<ul><li>one<li>two</ul><table><tr><td>a<td>b</tr><tr><td>c<td>d</table>"
    assert text_of(page, "a.html") == "- one\n- two\n\na | b\nc | d"


def test_parse_html_title_becomes_the_title() -> None:
    assert parse(b"<title>Home &amp; away</title><p>x", "a.html").documents[0].title == "Home & away"


@pytest.mark.parametrize(
    "page", [b"<!--" * 500_000, b"<a " * 500_000, b"</" * 500_000, b"<p><b>" * 50_000, b"<table><tr><td>" * 400]
)
def test_parse_html_hostile_markup_takes_no_time(page: bytes) -> None:
    started = time.process_time()
    parse(page, "a.html")
    assert time.process_time() - started < 5


def test_parse_markdown_front_matter_gives_title_and_url() -> None:
    (document,) = parse(b"---\ntitle: Excess\nurl: https://x.test/e\n---\n# Other\n\nBody", "a.md").documents
    assert document.title == "Excess"
    assert document.url == "https://x.test/e"
    assert document.text == "# Other\n\nBody"


@pytest.mark.parametrize("head", ["---\n: [broken\n---\n", "---\n- a list\n---\n", "---\nno end\n"])
def test_parse_markdown_broken_front_matter_stays_text(head: str) -> None:
    assert text_of(f"{head}Body".encode(), "a.md") == f"{head}Body"


def test_parse_markdown_first_heading_is_the_title() -> None:
    assert parse(b"intro\n\n# Home cover #\n\nBody", "file-name.md").documents[0].title == "Home cover"


def test_parse_text_is_titled_by_its_name() -> None:
    assert parse(b"x", "how-to_claim.txt").documents[0].title == "how to claim"


def test_parse_pdf_pages_are_kept_apart() -> None:
    assert text_of(pdf_of("first page", "second page"), "a.pdf") == "first page\fsecond page"


@pytest.mark.parametrize(("limit", "most"), [("PAGES", 1), ("CHARACTERS", 5), ("SECONDS", 0)])
def test_parse_pdf_beyond_a_limit_is_refused(monkeypatch: pytest.MonkeyPatch, limit: str, most: int) -> None:
    monkeypatch.setattr(pdf, limit, most)
    assert problems_of(pdf_of("first page", "second page"), "a.pdf") == [ProblemCode.TOO_LARGE]


@given(cut=st.integers(0, 2000), junk=st.binary(max_size=20))
def test_parse_pdf_damaged_anywhere_answers(cut: int, junk: bytes) -> None:
    whole = pdf_of("first page")
    parsed = parse(whole[:cut] + junk + whole[cut + len(junk) :], "a.pdf")
    assert parsed.documents or parsed.problems


def test_parse_jsonl_broken_lines_leave_the_others_whole() -> None:
    lines = [b'{"text": "one", "id": 1}', b"{broken", b"[1]", b'{"id": 2}', b"[" * 50_000, b'{"text": "two", "id": 3}']
    parsed = parse(b"\n".join(lines), "a.jsonl")
    assert [document.text for document in parsed.documents] == ["one", "two"]
    assert [problem.where for problem in parsed.problems] == ["line 2", "line 3", "line 4", "line 5"]


def test_parse_jsonl_repeated_id_is_a_problem_and_not_a_replacement() -> None:
    parsed = parse(b'{"text": "one", "id": 1}\n{"text": "two", "id": 1}', "a.jsonl")
    assert [document.text for document in parsed.documents] == ["one"]
    assert [problem.code for problem in parsed.problems] == [ProblemCode.DUPLICATE]


def test_parse_jsonl_question_and_answer_are_title_and_text() -> None:
    (document,) = parse(b'{"question": "How?", "answer": "So."}', "a.jsonl").documents
    assert document.title == "How?"
    assert document.text == "So."
    assert document.part == "How?"


def test_parse_jsonl_unstorable_characters_are_replaced() -> None:
    line = json.dumps({"text": "a\x00b\ud800c"}).encode()
    assert text_of(line, "a.jsonl") == "a\ufffdb\ufffdc"


def test_parse_text_too_long_for_one_document_is_refused() -> None:
    assert problems_of(b"word " * (files.MAX_TEXT_LENGTH // 4), "a.txt") == [ProblemCode.TOO_LARGE]


def test_read_missing_file_is_a_problem(tmp_path: Path) -> None:
    assert [problem.code for problem in read(tmp_path / "gone.md").problems] == [ProblemCode.MISSING]


def test_read_folder_named_like_a_file_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "folder.md").mkdir()
    assert [problem.code for problem in read(tmp_path / "folder.md").problems] == [ProblemCode.MISSING]


def test_read_huge_file_is_refused_before_it_is_read(tmp_path: Path) -> None:
    huge = tmp_path / "huge.md"
    with huge.open("wb") as file:
        file.truncate(files.MAX_FILE_BYTES + 1)
    assert [problem.code for problem in read(huge).problems] == [ProblemCode.TOO_LARGE]
