"""Hostile documents are read in the sandbox: each is refused or read in its bounds, and costs this process nothing."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from apps.knowledge import sandboxed_parsing
from apps.knowledge.parsing import Parsed, ProblemCode
from attack import bombs
from sandbox import Choice, Kind, configure
from sandbox.readers import Reader

SECONDS = 6
GRACE_SECONDS = 30
OWN_SECONDS = 1.0


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in production, in a hurry."""
    monkeypatch.setattr(sandboxed_parsing, "_FILE", replace(sandboxed_parsing._FILE, seconds=SECONDS))
    monkeypatch.setattr(sandboxed_parsing, "_PAGE", replace(sandboxed_parsing._PAGE, seconds=SECONDS))


@pytest.mark.slow
@pytest.mark.parametrize("name", bombs.DOCUMENTS)
def test_hostile_document_ends_in_its_bounds_and_costs_this_process_nothing(hurried: None, name: str) -> None:
    data = bombs.DOCUMENTS[name]()
    began, busy = time.monotonic(), time.process_time()
    parsed = sandboxed_parsing.read_file(data, name)
    assert time.process_time() - busy < OWN_SECONDS
    assert time.monotonic() - began < SECONDS + GRACE_SECONDS
    assert parsed.problems or parsed.documents


def test_pdf_of_a_few_kilobytes_that_never_ends_is_refused(hurried: None) -> None:
    data = bombs.pdf_of_forms()
    assert len(data) < 4000
    (problem,) = sandboxed_parsing.read_file(data, "forms.pdf").problems
    assert problem.code == ProblemCode.TOO_LARGE


def test_page_of_a_website_is_bounded_as_well(hurried: None) -> None:
    busy = time.process_time()
    parsed, links = sandboxed_parsing.read_page(
        bombs.html_tower(), "x.html", charset="utf-8", base="https://example.com/"
    )
    assert time.process_time() - busy < OWN_SECONDS
    assert [problem.code for problem in parsed.problems] == [ProblemCode.BROKEN_HTML]
    assert links == ()


def test_plain_document_comes_back_whole() -> None:
    parsed = sandboxed_parsing.read_file("# Opening hours\n\nMondays and Früh".encode(), "hours.md")
    (document,) = parsed.documents
    assert document.title == "Opening hours"
    assert document.text == "# Opening hours\n\nMondays and Früh"
    assert parsed.problems == ()


def test_links_of_a_page_come_back_whole() -> None:
    _, links = sandboxed_parsing.read_page(b"<a href='/a#b'>A</a>", "x.html", charset="", base="https://example.com/x")
    assert links == ("https://example.com/a",)


@pytest.fixture
def taken_over(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, Any], Parsed]:
    def read(function: str, said: Any = None) -> Parsed:
        module = "tests.knowledge.strange_readers"
        monkeypatch.setattr(sandboxed_parsing, "_FILE", Reader(module, function, (module,), seconds=SECONDS))
        return sandboxed_parsing.read_file(json.dumps(said).encode(), "x.md")

    return read


_DOCUMENT = {"title": "t", "text": "x", "url": "", "part": ""}


@pytest.mark.parametrize(
    "said",
    [
        None,
        [],
        {},
        {"documents": [], "problems": [], "more": 1},
        {"documents": [{**_DOCUMENT, "text": 5}], "problems": []},
        {"documents": [{**_DOCUMENT, "title": "t" * 301}], "problems": []},
        {"documents": [{**_DOCUMENT, "owner": True}], "problems": []},
        {"documents": [_DOCUMENT] * 10_001, "problems": []},
        {"documents": [], "problems": [{"code": "none_of_ours", "message": "", "where": ""}]},
        {"documents": [], "problems": [], "links": ["x" * 501]},
    ],
)
def test_answer_of_another_shape_is_no_document(taken_over: Callable[..., Parsed], said: Any) -> None:
    parsed = taken_over("say", said)
    assert parsed.documents == ()
    assert [problem.code for problem in parsed.problems] == [ProblemCode.UNREADABLE]


def test_answer_is_made_storable(taken_over: Callable[..., Parsed]) -> None:
    (document,) = taken_over("say", {"documents": [{**_DOCUMENT, "text": "a\0b"}], "problems": []}).documents
    assert document.text == "a\ufffdb"


@pytest.mark.parametrize("function", ["say_much", "say_deep", "break_off"])
def test_answer_without_bounds_is_no_document(taken_over: Callable[..., Parsed], function: str) -> None:
    busy = time.process_time()
    parsed = taken_over(function)
    assert time.process_time() - busy < OWN_SECONDS
    assert parsed.documents == ()
    assert len(parsed.problems) == 1


def test_reader_reaches_nothing_of_this_machine(taken_over: Callable[..., Parsed]) -> None:
    (document,) = taken_over("look_around").documents
    assert document.text == "reached: []"


@pytest.fixture
def no_sandbox() -> Iterator[None]:
    configure(Choice(kind=Kind.DOCKER, image="no-such-image:0"))
    yield
    configure(Choice())


def test_nothing_is_read_where_there_is_no_sandbox(no_sandbox: None) -> None:
    parsed = sandboxed_parsing.read_file(b"# Hi\n\nthere", "hi.md")
    assert parsed.documents == ()
    assert [problem.code for problem in parsed.problems] == [ProblemCode.NO_READER]
    assert "sandbox_unavailable" in parsed.problems[0].message
