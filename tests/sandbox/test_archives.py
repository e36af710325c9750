"""Archives of strangers are opened in the sandbox: each is refused or read in its bounds, cheaply for this process."""

from __future__ import annotations

import base64
import io
import json
import time
import zipfile
from collections.abc import Iterator
from typing import Any

import pytest

from attack import bombs
from kernel.errors import SilasError
from sandbox import Choice, Kind, configure
from sandbox.archives import reader
from sandbox.archives.reader import BadArchive, Entry, Limits, Problem, read_entries

LIMITS = Limits(entries=1000, size=20_000_000, seconds=6)
OWN_SECONDS, GRACE_SECONDS = 1.0, 30


@pytest.mark.parametrize("name", bombs.ARCHIVES)
def test_hostile_archive_is_refused_in_its_bounds_and_costs_this_process_nothing(name: str) -> None:
    data = bombs.ARCHIVES[name]()
    began, busy = time.monotonic(), time.process_time()
    with pytest.raises(BadArchive):
        read_entries(data, LIMITS)
    assert time.process_time() - busy < OWN_SECONDS
    assert time.monotonic() - began < LIMITS.seconds + GRACE_SECONDS


def test_contents_come_back_whole() -> None:
    data = bombs.zipped({"a.txt": b"one", "b/": b"", "b/c.txt": b"two"})
    assert read_entries(data, LIMITS) == (
        Entry("a.txt", 3, False, b"one"),
        Entry("b/", 0, False),
        Entry("b/c.txt", 3, False, b"two"),
    )


def test_contents_stay_where_they_are_not_asked_for() -> None:
    assert read_entries(bombs.zipped({"a.txt": b"one"}), LIMITS, contents=False) == (Entry("a.txt", 3, False),)


def test_names_that_are_no_text_are_refused() -> None:
    assert refusal(bombs.tar_of({b"\xff\xfe": b"x"})) == Problem.UNREADABLE


def refusal(data: bytes) -> Problem:
    with pytest.raises(BadArchive) as bad:
        read_entries(data, LIMITS)
    return bad.value.problem


_A = {"name": "a", "size": 1, "stored": True}


@pytest.mark.parametrize(
    ("answer", "blob"),
    [
        (None, b""),
        ({}, b""),
        ({"problem": "", "entries": [_A], "more": 1}, b"x"),
        ({"problem": "none_of_ours", "entries": []}, b""),
        ({"problem": "", "entries": [{**_A, "size": "1"}]}, b"x"),
        ({"problem": "", "entries": [{**_A, "size": -1}, {**_A, "name": "b", "size": 2}]}, b"x"),
        ({"problem": "", "entries": [{**_A, "name": "n" * 1001}]}, b"x"),
        ({"problem": "", "entries": [{**_A, "name": ""}]}, b"x"),
        ({"problem": "", "entries": [_A]}, b"xx"),
        ({"problem": "", "entries": [_A]}, b""),
        ({"problem": "", "entries": [{**_A, "name": str(n)} for n in range(1001)]}, b"x" * 1001),
        ({"problem": "", "entries": [_A, _A]}, b"xx"),
    ],
)
def test_answer_of_another_shape_is_no_archive(monkeypatch: pytest.MonkeyPatch, answer: Any, blob: bytes) -> None:
    monkeypatch.setattr(reader, "_MODULE", "tests.sandbox.strange_unpacking")
    said = {"answer": answer, "blob": base64.b64encode(blob).decode()}
    assert refusal(json.dumps(said).encode()) in (Problem.UNREADABLE, Problem.TWICE)


@pytest.fixture
def no_sandbox() -> Iterator[None]:
    configure(Choice(kind=Kind.DOCKER, image="no-such-image:0"))
    yield
    configure(Choice())


def test_nothing_is_opened_where_there_is_no_sandbox(no_sandbox: None) -> None:
    with pytest.raises(SilasError) as refused:
        read_entries(bombs.zipped({"a": b"x"}), LIMITS)
    assert refused.value.code == "sandbox_unavailable"
    assert refused.value.status == 503


def test_file_of_a_zip_that_is_only_stored_says_so() -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("a", b"x")
    assert read_entries(out.getvalue(), LIMITS) == (Entry("a", 1, True, b"x"),)
