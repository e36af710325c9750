"""Unpack a zip or tar within limits. Runs in the sandbox for `sandbox.archives.reader`; standard library only.

Sizes in headers are not trusted: everything is counted while it is unpacked.
"""

from __future__ import annotations

import io
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterator

_CHUNK = 1 << 16
_ENCRYPTED = 0x1
# Of a tar: how long what stands before a file (a long name, attributes) may be; reading it takes its square.
_MOST_HEADER = 2_000
_HEADERS = (
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
)
_BROKEN = (
    zipfile.BadZipFile,
    tarfile.TarError,
    zlib.error,
    EOFError,
    NotImplementedError,
    RuntimeError,  # RecursionError among them
    ValueError,
    OSError,
)


class _Refused(Exception):
    """With a code of `sandbox.archives.reader.Problem`."""


class _Allowance:
    """How much may still be unpacked."""

    def __init__(self, entries: int, size: int) -> None:
        self._entries, self.size = entries, size

    def take_entry(self) -> None:
        self._entries -= 1
        if self._entries < 0:
            raise _Refused("too_many")

    def take(self, size: int) -> None:
        self.size -= size
        if self.size < 0:
            raise _Refused("too_large")


_Entry = tuple[str, bool, list[bytes]]


def unpack(data: bytes, most_entries: int, most_bytes: int, contents: bool) -> tuple[dict[str, object], bytes]:
    """List the entries (name, size, stored uncompressed or not) and return their contents concatenated, if wanted."""
    room = _Allowance(most_entries, most_bytes)
    entries, blob = [], []
    try:
        for name, stored, chunks in _iter_zip(data, room) if data.startswith(b"PK") else _iter_tar(data, room):
            entries.append({"name": name, "size": sum(map(len, chunks)), "stored": stored})
            blob += chunks if contents else []
    except _Refused as refused:
        return {"problem": str(refused), "entries": []}, b""
    except _BROKEN:
        return {"problem": "unreadable", "entries": []}, b""
    return {"problem": "", "entries": entries}, b"".join(blob)


def _iter_zip(data: bytes, room: _Allowance) -> Iterator[_Entry]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for info in archive.infolist():
            room.take_entry()
            # Links and devices: a link could name a place outside of the archive.
            if stat.S_IFMT(info.external_attr >> 16) not in (0, stat.S_IFREG, stat.S_IFDIR):
                raise _Refused("not_plain")
            # What is in it could not be examined.
            if info.flag_bits & _ENCRYPTED:
                raise _Refused("not_plain")
            if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise _Refused("packing")  # the others unpack all at once
            # The header may lie; it only spares the work when it admits too much. What counts is taken below.
            if info.file_size > room.size:
                raise _Refused("too_large")
            chunks = []
            with archive.open(info) as part:
                while chunk := part.read(_CHUNK):
                    room.take(len(chunk))
                    chunks.append(chunk)
            yield info.filename, info.compress_type == zipfile.ZIP_STORED, chunks


def _iter_tar(data: bytes, room: _Allowance) -> Iterator[_Entry]:
    plain = _gunzip(data, room.size) if data.startswith(b"\x1f\x8b") else data
    with tarfile.open(fileobj=io.BytesIO(plain), mode="r:", tarinfo=_member(room.size)) as archive:
        for member in archive:
            room.take_entry()
            if member.isdir():
                yield f"{member.name.rstrip('/')}/", True, []
                continue
            if not member.isreg() or member.issparse():
                raise _Refused("not_plain")
            _require_size(member.size, most=room.size)  # attributes may have said another one
            room.take(member.size)
            file = archive.extractfile(member)
            yield member.name, True, [file.read() if file else b""]


def _gunzip(data: bytes, most: int) -> bytes:
    plain = zlib.decompressobj(wbits=31).decompress(data, most + 1)
    if len(plain) > most:
        raise _Refused("too_large")
    return plain


def _member(most: int) -> type[tarfile.TarInfo]:
    class Member(tarfile.TarInfo):
        """Checks the size in its header before anything is read by it."""

        @classmethod
        def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Member:
            member = super().frombuf(buf, encoding, errors)
            _require_size(member.size, most=_MOST_HEADER if member.type in _HEADERS else most)
            return member

    return Member


def _require_size(size: int, *, most: int) -> None:
    if not 0 <= size <= most:
        raise _Refused("too_large")
