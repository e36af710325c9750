"""A zip that came from outside, opened: whatever is wrong with it is one refusal, the reader's own."""

from __future__ import annotations

import io
import stat
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

from kernel.errors import SilasError

_ENCRYPTED = 0x1
_BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError, OSError)


@contextmanager
def opened(raw: bytes, refusal: SilasError) -> Iterator[zipfile.ZipFile]:
    """Raises `refusal` for what cannot be read, here or while it is read."""
    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            yield archive
    except _BROKEN as error:
        raise refusal from error


def is_plain(entry: zipfile.ZipInfo) -> bool:
    """No link, no device, nothing encrypted."""
    return stat.S_IFMT(entry.external_attr >> 16) in (0, stat.S_IFREG) and not entry.flag_bits & _ENCRYPTED
