"""The port through which a source is read: list its entries, then read those that changed.

A reader knows one service or store. It makes no decision about documents: it yields what is there, and raises
`SourceFailed` when the source as a whole cannot be read, so that nothing is taken for deleted because of an outage.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Protocol

from apps.knowledge.parsing import ProblemCode
from kernel.stored_texts import stored_text

MAX_BYTES = 10_000_000
# The formats that are read, each with the ending of a name that chooses its parser.
SUFFIXES = {"text/html": ".html", "text/plain": ".txt", "text/markdown": ".md", "application/pdf": ".pdf"}
_TYPES = {suffix: kind for kind, suffix in SUFFIXES.items()}
_TYPES |= {".htm": "text/html", ".text": "text/plain", ".markdown": "text/markdown"}
TOO_LARGE = stored_text("It is larger than {size:d} MB.").format(size=MAX_BYTES // 1_000_000)
UNSUPPORTED = stored_text("This format is not supported.")


@dataclass(frozen=True)
class Entry:
    """One page, article or file. `id` is its stable name within the source, `version` changes when its text may have
    changed, `url` is what citations link to, and `title` replaces the title that the text itself has."""

    id: str
    version: str
    title: str = ""
    url: str = ""
    media_type: str = ""


@dataclass(frozen=True)
class Content:
    """The bytes of an entry, which are parsed in the sandbox. `media_type` is a key of `SUFFIXES`."""

    body: bytes
    media_type: str


class SourceReader(Protocol):
    """Lists and reads one source. All methods block, and raise `SourceFailed`."""

    def entries(self) -> Iterator[Entry]:
        """Yield every entry, through all pages of the listing."""
        ...

    def read(self, entry: Entry) -> Content | None:
        """Read an entry; None if it has been deleted since it was listed. Raises `EntryFailed`."""
        ...

    def is_deleted(self, entry_id: str) -> bool:
        """Whether an entry that is no longer listed is deleted, for services whose listing may lack some."""
        ...


class EntryFailed(Exception):
    """This entry cannot be read; the others can."""

    def __init__(self, message: str, code: ProblemCode = ProblemCode.UNREADABLE) -> None:
        super().__init__(message)
        self.message, self.code = message, code


class SourceFailed(Exception):
    """The source cannot be read now, and nothing is known to be deleted.

    `code`: credentials_refused, access_denied, rate_limited, unreachable, location_missing, answer_unreadable,
    too_many_entries, too_slow.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message


def media_type_of(name: str) -> str:
    """The media type of a file with this name if it can be read, else ""."""
    return _TYPES.get(PurePosixPath(name).suffix.lower(), "")
