"""Read the contents of an untrusted archive in the sandbox; only validated, bounded, plain data comes back.

The caller checks hashes and signatures over the result: a compromised unpacker can return no more than an archive of
its own could contain. Blocking; never call it in a transaction.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from sandbox.readers import Reader, ReaderFailed, run_reader

LONGEST_NAME = 1000
_SPARE_BYTES = 4_000_000  # for the names
_MODULE = "sandbox.archives.unpacking"


class Problem(StrEnum):
    UNREADABLE = "unreadable"
    TOO_MANY = "too_many"
    TOO_LARGE = "too_large"
    NOT_PLAIN = "not_plain"
    PACKING = "packing"
    TWICE = "twice"


class BadArchive(Exception):
    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.problem = problem


@dataclass(frozen=True)
class Limits:
    """`size` is the limit of all contents together, in bytes."""

    entries: int
    size: int
    seconds: int = 20


@dataclass(frozen=True)
class Entry:
    """`stored`: not compressed. A folder's name ends with a slash. `content` is empty unless it was requested."""

    name: str
    size: int
    stored: bool
    content: bytes = b""


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    name: Annotated[str, Field(min_length=1, max_length=LONGEST_NAME)]
    size: Annotated[int, Field(ge=0)]
    stored: bool


class _Unpacked(BaseModel):
    model_config = ConfigDict(extra="forbid")

    problem: Problem | Literal[""]
    entries: list[_Entry]


def read_entries(data: bytes, limits: Limits, *, contents: bool = True) -> tuple[Entry, ...]:
    """Read the entries of a zip or tar (plain or gz); all of it was unpacked, within the limits.

    Raises `BadArchive`, and what `sandbox.readers.run_reader` raises if nothing can be read now.
    """
    reader = Reader(_MODULE, "unpack", (_MODULE,), seconds=limits.seconds, most_bytes=limits.size + _SPARE_BYTES)
    try:
        result = run_reader(reader, data, most_entries=limits.entries, most_bytes=limits.size, contents=contents)
        unpacked = _Unpacked.model_validate(result.answer)
    except ReaderFailed as failed:
        raise BadArchive(Problem.TOO_LARGE if failed.code == "too_demanding" else Problem.UNREADABLE) from None
    except ValidationError:
        raise BadArchive(Problem.UNREADABLE) from None
    if unpacked.problem:
        raise BadArchive(unpacked.problem)
    return _entries(unpacked.entries, result.blob, limits, contents=contents)


def _entries(headers: list[_Entry], blob: bytes, limits: Limits, *, contents: bool) -> tuple[Entry, ...]:
    total = sum(header.size for header in headers)
    # Counted again: the unpacker has parsed hostile bytes, and its word is not trusted.
    if len(headers) > limits.entries or total > limits.size or len(blob) != (total if contents else 0):
        raise BadArchive(Problem.UNREADABLE)
    files = [header.name for header in headers if not header.name.endswith("/")]
    # Of two entries with one name different programs see a different one.
    if len(set(files)) != len(files):
        raise BadArchive(Problem.TWICE)
    entries, at = [], 0
    for header in headers:
        entries.append(Entry(header.name, header.size, header.stored, blob[at : at + header.size] if contents else b""))
        at += header.size
    return tuple(entries)
