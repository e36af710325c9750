"""Extract the text of a PDF's pages, within limits of size, pages and characters.

Time is checked only between two pages, which is one reason to run this in the sandbox
(`apps.knowledge.sandboxed_parsing`). pypdf may raise any exception on a broken file, so any exception means that the
file is damaged.
"""

from __future__ import annotations

import io
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from apps.knowledge.parsing.schemas import ParsedDocument, ProblemCode, Unreadable
from apps.knowledge.parsing.text import clean, name_to_title, one_line
from kernel.stored_texts import stored_text

if TYPE_CHECKING:
    from pypdf import PdfReader

PAGES = 5000
CHARACTERS = 5_000_000
SECONDS = 60.0


def parse_pdf(data: bytes, name: str) -> ParsedDocument:
    """The text of all pages, form feeds between them. Raises `Unreadable` with the reason."""
    from pypdf import PdfReader  # loaded only by processes that read a PDF

    try:
        reader = PdfReader(io.BytesIO(data), strict=False)
        if reader.is_encrypted and not reader.decrypt(""):
            raise Unreadable(ProblemCode.ENCRYPTED_PDF, stored_text("The PDF is protected by a password."))
        text = "\f".join(_pages(reader))
        title = reader.metadata.title if reader.metadata else ""
    except Unreadable:
        raise
    except MemoryError as error:
        raise Unreadable(ProblemCode.TOO_LARGE, stored_text("The PDF needs too much memory.")) from error
    except Exception as error:
        raise Unreadable(
            ProblemCode.BROKEN_PDF, stored_text("The PDF is damaged ({reason}).").format(reason=type(error).__name__)
        ) from error
    return ParsedDocument(title=one_line(title) or name_to_title(name), text=text)


def _pages(reader: PdfReader) -> Iterator[str]:
    if len(reader.pages) > PAGES:
        raise Unreadable(
            ProblemCode.TOO_LARGE, stored_text("The PDF has more than {count:d} pages.").format(count=PAGES)
        )
    room, give_up = CHARACTERS, time.monotonic() + SECONDS
    for page in reader.pages:
        if time.monotonic() >= give_up:
            raise Unreadable(
                ProblemCode.TOO_LARGE,
                stored_text("The PDF took longer than {seconds:g} s to read.").format(seconds=SECONDS),
            )
        # A form feed stands between two pages and nowhere else.
        text = clean(page.extract_text()).replace("\f", "\n").strip()
        room -= len(text)
        if room < 0:
            raise Unreadable(
                ProblemCode.TOO_LARGE,
                stored_text("The PDF holds more than {count:d} characters.").format(count=CHARACTERS),
            )
        yield text
