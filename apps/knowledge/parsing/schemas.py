"""Results of a parser: documents, and problems for what could not be read."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class ProblemCode(StrEnum):
    MISSING = "missing"
    UNREADABLE = "unreadable"
    UNSUPPORTED = "unsupported_type"
    TOO_LARGE = "too_large"
    EMPTY = "empty"
    BINARY = "binary"
    WRONG_ENCODING = "wrong_encoding"
    BROKEN_PDF = "broken_pdf"
    ENCRYPTED_PDF = "encrypted_pdf"
    BROKEN_HTML = "broken_html"
    BROKEN_LINE = "broken_line"
    DUPLICATE = "duplicate_source"
    NO_READER = "no_reader"


@dataclass(frozen=True)
class ParsedDocument:
    """`part` names a document within a file of many (JSONL); it is empty for a file that is one document."""

    title: str
    text: str
    url: str = ""
    part: str = ""


@dataclass(frozen=True)
class Problem:
    """`where` narrows it down, for example `line 7`."""

    code: ProblemCode
    message: str
    where: str = ""


@dataclass(frozen=True)
class Parsed:
    documents: tuple[ParsedDocument, ...] = ()
    problems: tuple[Problem, ...] = ()


class Unreadable(Exception):
    """Raised by one format's parser; `parse` turns it into a `Problem`."""

    def __init__(self, code: ProblemCode, message: str) -> None:
        super().__init__(message)
        self.problem = Problem(code, message)
