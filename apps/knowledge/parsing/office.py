"""Extract the text of a Word document or an Excel workbook, within limits of bytes and characters.

Only the parts that hold text are unpacked, piece by piece, without trust in the sizes it claims. The XML is read as a
stream without a tree, and a document type, where entities are declared, is refused. Values of a workbook are as they
are stored: a date is a number there. Standard library only.
"""

from __future__ import annotations

import io
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import PurePath
from xml.parsers import expat

from apps.knowledge.parsing.schemas import Parsed, ParsedDocument, Problem, ProblemCode, Unreadable
from apps.knowledge.parsing.text import clean, name_to_title
from kernel.stored_texts import stored_text

MOST_BYTES = 40_000_000  # of all parts that are read, unpacked
CHARACTERS = 1_000_000
_CHUNK = 1 << 16
_ENCRYPTED = 0x1
_SHEET = re.compile(r"xl/worksheets/sheet(\d{1,5})\.xml")
_BROKEN = (zipfile.BadZipFile, zlib.error, expat.ExpatError, EOFError, NotImplementedError, RuntimeError, OSError)
_BROKEN_VALUES = (KeyError, ValueError, IndexError)


def parse_office(data: bytes, name: str) -> Parsed:
    """The text of a `.docx` or `.xlsx`: one document, or the problem."""
    reader = _READERS.get(PurePath(name).suffix.lower())
    if reader is None:
        return _failed(ProblemCode.UNSUPPORTED, stored_text("The file is of a kind that isn't read."))
    try:
        text = reader(_Archive(data))
    except Unreadable as refused:
        return Parsed(problems=(refused.problem,))
    except (*_BROKEN, *_BROKEN_VALUES):
        return _failed(ProblemCode.UNREADABLE, stored_text("The file is damaged and couldn't be read."))
    if not text.strip():
        return _failed(ProblemCode.EMPTY, stored_text("It contains no text."))
    return Parsed((ParsedDocument(title=name_to_title(name), text=text),))


class _Archive:
    """The parts of an office file, unpacked within one allowance."""

    def __init__(self, data: bytes) -> None:
        self._zip = zipfile.ZipFile(io.BytesIO(data))
        self._room = MOST_BYTES
        self.names = self._zip.namelist()

    def read(self, name: str, handler: _Handler) -> None:
        """Feed the XML part of this name to the handler, as far as it wants text."""
        info = self._zip.getinfo(name)
        if info.flag_bits & _ENCRYPTED:
            raise Unreadable(ProblemCode.UNREADABLE, stored_text("The file is protected by a password."))
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise Unreadable(ProblemCode.UNREADABLE, stored_text("The file is packed in a way that isn't read."))
        parser = expat.ParserCreate(namespace_separator=" ")
        parser.StartDoctypeDeclHandler = _refuse_doctype
        parser.StartElementHandler = lambda tag, attributes: handler.start(tag.rpartition(" ")[2], attributes)
        parser.EndElementHandler = lambda tag: handler.end(tag.rpartition(" ")[2])
        parser.CharacterDataHandler = handler.characters
        with self._zip.open(info) as part:
            while chunk := part.read(_CHUNK):
                self._room -= len(chunk)
                if self._room < 0:
                    raise Unreadable(ProblemCode.TOO_LARGE, stored_text("The file is too large to be read."))
                parser.Parse(chunk, False)
        parser.Parse(b"", True)


class _Handler:
    """Collects text from elements; what is beyond `CHARACTERS` is left out."""

    def __init__(self) -> None:
        self.written: list[str] = []
        self._room = CHARACTERS

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        raise NotImplementedError

    def end(self, tag: str) -> None:
        raise NotImplementedError

    def characters(self, data: str) -> None:
        raise NotImplementedError

    def write(self, text: str) -> None:
        self.written.append(text[: self._room])
        self._room -= len(self.written[-1])


class _Words(_Handler):
    """A Word document: paragraphs with a blank line between, the cells of a table's row on one line."""

    def __init__(self) -> None:
        super().__init__()
        self._in_text, self._cells = 0, 0

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        self._in_text += tag == "t"
        self._cells += tag == "tc"
        if tag == "tc":
            self.write("| ")
        elif tag == "tab":
            self.write(" ")
        elif tag in ("br", "cr"):
            self.write(self._gap("\n"))

    def end(self, tag: str) -> None:
        self._in_text -= tag == "t"
        self._cells -= tag == "tc"
        if tag == "p":
            self.write(self._gap("\n\n"))
        elif tag == "tr":
            self.write(self._gap("\n"))
        elif tag == "tbl":
            self.write(self._gap("\n\n"))

    def characters(self, data: str) -> None:
        if self._in_text:
            self.write(data)

    def _gap(self, outside: str) -> str:
        return " " if self._cells else outside


class _Strings(_Handler):
    """The texts that cells of a workbook refer to by their number; readings of signs are left out."""

    def __init__(self) -> None:
        super().__init__()
        self.strings: list[str] = []
        self._in_text, self._readings = 0, 0

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        self._in_text += tag == "t"
        self._readings += tag == "rPh"
        if tag == "si":
            self.written = []

    def end(self, tag: str) -> None:
        self._in_text -= tag == "t"
        self._readings -= tag == "rPh"
        if tag == "si":
            self.strings.append("".join(self.written))

    def characters(self, data: str) -> None:
        if self._in_text and not self._readings:
            self.write(data)


class _Rows(_Handler):
    """A sheet: a line for each row that holds something, its cells between bars."""

    def __init__(self, strings: list[str]) -> None:
        super().__init__()
        self._strings = strings
        self._cells: list[str] = []
        self._kind, self._value, self._in_value = "", "", 0

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        if tag == "row":
            self._cells = []
        elif tag == "c":
            self._kind, self._value = attributes.get("t", ""), ""
        self._in_value += tag in ("v", "t")

    def end(self, tag: str) -> None:
        self._in_value -= tag in ("v", "t")
        if tag == "c" and self._value:
            shared = self._kind == "s"
            self._cells.append(self._strings[int(self._value)] if shared else self._value)
        elif tag == "row" and self._cells:
            self.write(f"| {' | '.join(' '.join(cell.split()) for cell in self._cells)} |\n")

    def characters(self, data: str) -> None:
        if self._in_value and len(self._value) < CHARACTERS:
            self._value += data


def _read_words(archive: _Archive) -> str:
    words = _Words()
    archive.read("word/document.xml", words)
    lines = (line.strip() for line in clean("".join(words.written)).split("\n"))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


def _read_sheets(archive: _Archive) -> str:
    shared = _Strings()
    if "xl/sharedStrings.xml" in archive.names:
        archive.read("xl/sharedStrings.xml", shared)
    return clean("\n".join(_iter_sheets(archive, shared.strings)))[:CHARACTERS].strip()


def _iter_sheets(archive: _Archive, strings: list[str]) -> Iterator[str]:
    numbers = sorted({int(found[1]) for name in archive.names if (found := _SHEET.fullmatch(name))})
    left = CHARACTERS
    for number in numbers:
        if left <= 0:
            return
        rows = _Rows(strings)
        archive.read(f"xl/worksheets/sheet{number}.xml", rows)
        text = "".join(rows.written)
        left -= len(text)
        yield text


_READERS: dict[str, Callable[[_Archive], str]] = {".docx": _read_words, ".xlsx": _read_sheets}


def _refuse_doctype(*_: object) -> None:
    raise Unreadable(ProblemCode.UNREADABLE, stored_text("The file declares entities, which no office program writes."))


def _failed(code: ProblemCode, message: str) -> Parsed:
    return Parsed(problems=(Problem(code, message),))
