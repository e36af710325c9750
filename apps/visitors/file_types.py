"""Detect a file's type from its bytes and clean its name. A ZIP is opened in the sandbox (ADR 109).

What the sender states about a file is ignored: the type is what its bytes show, the extension has to fit, and the name
keeps no path, no control character and nothing that changes the reading direction.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

from kernel.unicode_safety import has_hidden_characters
from sandbox.archives.reader import BadArchive, Entry, Limits, read_entries

LONGEST_NAME = 100
MOST_ENTRIES = 1000
MOST_UNPACKED = 60 * 1024 * 1024
_LIMITS = Limits(MOST_ENTRIES, MOST_UNPACKED, seconds=10)
_HEAD = 16
# Line breaks and tabs are what a text may have of the control characters.
_TEXT_CONTROLS = frozenset(range(32)) - frozenset(b"\t\n\r\f") | {127}
_OFFICE = {"docx": "word/document.xml", "xlsx": "xl/workbook.xml"}
_OFFICE_TYPE = "application/vnd.openxmlformats-officedocument."


@dataclass(frozen=True)
class Kind:
    """`group` is by which a deployment takes it; `endings` the names' that fit, the first is given to one without."""

    name: str
    group: str
    media_type: str
    endings: tuple[str, ...]


KINDS = {
    kind.name: kind
    for kind in (
        Kind("png", "pictures", "image/png", (".png",)),
        Kind("jpeg", "pictures", "image/jpeg", (".jpg", ".jpeg")),
        Kind("webp", "pictures", "image/webp", (".webp",)),
        Kind("gif", "pictures", "image/gif", (".gif",)),
        Kind("pdf", "pdfs", "application/pdf", (".pdf",)),
        Kind("txt", "texts", "text/plain; charset=utf-8", (".txt",)),
        Kind("csv", "texts", "text/csv; charset=utf-8", (".csv",)),
        Kind("docx", "office", f"{_OFFICE_TYPE}wordprocessingml.document", (".docx",)),
        Kind("xlsx", "office", f"{_OFFICE_TYPE}spreadsheetml.sheet", (".xlsx",)),
    )
}


def kind_of(path: Path, name: str) -> Kind | None:
    """The kind that both the bytes at `path` and the ending of `name` say; None where they do not agree, or it is none
    that is taken. Raises `SilasError` 503 where the sandbox cannot look into it now. Outside of a transaction."""
    ending = Path(name).suffix.lower()
    kind = next((each for each in KINDS.values() if ending in each.endings), None)
    return kind if kind is not None and _LOOKS[kind.name](path) else None


def clean_name(name: str, kind: Kind) -> str:
    """What the file is called from here on: the last part of a path, without what cannot be seen, with its ending."""
    last = unicodedata.normalize("NFC", name).replace("\\", "/").rpartition("/")[2]
    plain = "".join(" " if has_hidden_characters(each) or each in "\n\r\t\u200c\u200d" else each for each in last)
    # Signs that file systems refuse, or that end the name in a header.
    kept = "".join("_" if each in '<>:"|?*%;' else each for each in " ".join(plain.split()))
    stem = kept[: -len(_ending(kept, kind))] if _ending(kept, kind) else kept
    stem = stem.strip(" .")[:LONGEST_NAME].strip(" .") or "file"
    return stem + (_ending(kept, kind).lower() or kind.endings[0])


def _ending(name: str, kind: Kind) -> str:
    return next((name[-len(each) :] for each in kind.endings if name.lower().endswith(each)), "")


def _begins(*marks: bytes) -> Callable[[Path], bool]:
    return lambda path: _head(path).startswith(marks)


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_HEAD)


def _is_webp(path: Path) -> bool:
    head = _head(path)
    return head[:4] == b"RIFF" and head[8:12] == b"WEBP"


def _is_text(path: Path) -> bool:
    """UTF-8 without control characters; read as a whole, because a deployment's bound is on it."""
    data = path.read_bytes()
    try:
        data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return False
    return bool(data.strip()) and _TEXT_CONTROLS.isdisjoint(data)


def _is_office(kind: str) -> Callable[[Path], bool]:
    return lambda path: _head(path).startswith(b"PK\x03\x04") and _unpacks(path, _OFFICE[kind])


def _unpacks(path: Path, core: str) -> bool:
    """Whether it is what it says within bounds: unpacked to nowhere, because what a ZIP says of its sizes may be a
    lie."""
    try:
        return _holds(read_entries(path.read_bytes(), _LIMITS, contents=False), core)
    except BadArchive:
        return False


def _holds(entries: Collection[Entry], core: str) -> bool:
    """Its own parts, no path that leads out, no macros."""
    names = {each.name for each in entries}
    plain = all(not name.startswith("/") and ".." not in name.split("/") and "\\" not in name for name in names)
    macros = any(
        name.lower().endswith((".bin", ".exe", ".dll", ".js", ".vbs")) and "vba" in name.lower() for name in names
    )
    return plain and not macros and {core, "[Content_Types].xml"} <= names


_LOOKS: dict[str, Callable[[Path], bool]] = {
    "png": _begins(b"\x89PNG\r\n\x1a\n"),
    "jpeg": _begins(b"\xff\xd8\xff"),
    "gif": _begins(b"GIF87a", b"GIF89a"),
    "webp": _is_webp,
    "pdf": _begins(b"%PDF-"),
    "txt": _is_text,
    "csv": _is_text,
    "docx": _is_office("docx"),
    "xlsx": _is_office("xlsx"),
}
