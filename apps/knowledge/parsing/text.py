"""Decode plain text and Markdown, and find the title.

An encoding is used when the file declares it (byte order mark, `charset`) or when the bytes are valid UTF-8; it is
never guessed, because a wrong guess would be quoted to visitors.
"""

from __future__ import annotations

import codecs
import re
from pathlib import PurePath

import frontmatter
import yaml

from apps.knowledge.parsing.schemas import ParsedDocument, ProblemCode, Unreadable
from kernel.stored_texts import stored_text

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    # Before UTF-16, with whose mark it begins.
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# Control characters that no text has; tab, line ends, form feed and escape (coloured logs) may stand in one.
_BINARY = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_UNWRITABLE = re.compile("[\x00\ud800-\udfff]")
_LINE_ENDS = re.compile("\r\n?")
_TITLE = re.compile(r"^ {0,3}#[ \t]+(\S.{0,299})", re.MULTILINE)


def decode(data: bytes, *, declared: str = "") -> str:
    """The text of `data`, cleaned. Raises `Unreadable` for binary data and for bytes that are not what they claim."""
    encoding, body = _encoding(data, declared)
    try:
        return clean(body.decode(encoding))
    except (UnicodeDecodeError, LookupError) as error:
        if encoding == declared and _BINARY.search(body[:4096]):
            raise Unreadable(ProblemCode.BINARY, stored_text("The file is not text.")) from error
        raise Unreadable(
            ProblemCode.WRONG_ENCODING,
            stored_text("The file is not valid {encoding}; save it as UTF-8.").format(encoding=encoding),
        ) from error


def clean(text: str) -> str:
    """`text` with one kind of line end and without what UTF-8 or PostgreSQL cannot hold."""
    return _LINE_ENDS.sub("\n", _UNWRITABLE.sub("\ufffd", text))


def one_line(value: object, limit: int = 300) -> str:
    return " ".join(clean(value).split())[:limit] if isinstance(value, str) else ""


def parse_text(data: bytes, name: str) -> ParsedDocument:
    return ParsedDocument(title=name_to_title(name), text=decode(data))


def parse_markdown(data: bytes, name: str) -> ParsedDocument:
    """Front matter may give `title` and `url`; otherwise the first heading of level one is the title."""
    text = decode(data)
    about, body = _front_matter(text)
    heading = _TITLE.search(body)
    title = (
        one_line(about.get("title")) or (one_line(heading[1].rstrip("# ")) if heading else "") or name_to_title(name)
    )
    return ParsedDocument(title=title, text=body, url=one_line(about.get("url"), 2000))


def _encoding(data: bytes, declared: str) -> tuple[str, bytes]:
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return encoding, data[len(mark) :]
    if not declared and _BINARY.search(data):
        raise Unreadable(ProblemCode.BINARY, stored_text("The file is not text."))
    return declared or "utf-8", data


def _front_matter(text: str) -> tuple[dict[str, object], str]:
    """Broken front matter is text like any other: nothing of a document is dropped."""
    try:
        about, body = frontmatter.parse(text)
    except (yaml.YAMLError, ValueError, RecursionError):
        return {}, text
    return (about, body) if isinstance(about, dict) and about else ({}, text)


def name_to_title(name: str) -> str:
    return one_line(re.sub(r"[-_]+", " ", PurePath(name).stem)) or "Untitled"
