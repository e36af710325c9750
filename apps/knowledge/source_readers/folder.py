"""Read a folder of this machine, below the root that the operator allows: `SILAS_SOURCE_FOLDERS/<company>/…`.

Each company has a folder of its own there, named by its slug, and cannot leave it: links are not followed, neither in
listings nor when a file is opened.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import PurePosixPath

from django.conf import settings

from apps.knowledge.parsing import ProblemCode
from apps.knowledge.source_readers.port import (
    MAX_BYTES,
    SUFFIXES,
    TOO_LARGE,
    UNSUPPORTED,
    Content,
    Entry,
    EntryFailed,
    SourceFailed,
    media_type_of,
)
from kernel.stored_texts import stored_text

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW


class FolderReader:
    """`location` is relative to the company's folder; empty for all of it."""

    def __init__(self, slug: str, location: str) -> None:
        if not settings.SOURCE_FOLDERS:
            raise SourceFailed("location_missing", stored_text("Folders are not enabled on this installation."))
        self._parts = [part for part in (slug, *PurePosixPath(location).parts) if part not in ("", "/")]

    def entries(self) -> Iterator[Entry]:
        descriptor = self._open_folder(())
        try:
            for folder, _folders, names, at in os.fwalk(dir_fd=descriptor, follow_symlinks=False, onerror=_unreadable):
                for name in sorted(names):
                    found = os.stat(name, dir_fd=at, follow_symlinks=False)
                    if stat.S_ISREG(found.st_mode) and not name.startswith("."):
                        path = str(PurePosixPath(folder, name))
                        yield Entry(path, f"{found.st_mtime_ns}-{found.st_size}", media_type=media_type_of(name))
        finally:
            os.close(descriptor)

    def read(self, entry: Entry) -> Content | None:
        if entry.media_type not in SUFFIXES:
            raise EntryFailed(UNSUPPORTED, ProblemCode.UNSUPPORTED)
        *folders, name = PurePosixPath(entry.id).parts
        try:
            at = self._open_folder(folders)
            try:
                descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=at)
            finally:
                os.close(at)
            with os.fdopen(descriptor, "rb") as file:
                if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                    return None
                body = file.read(MAX_BYTES + 1)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise EntryFailed(
                stored_text("The file could not be read ({reason}).").format(reason=error.strerror)
            ) from None
        if len(body) > MAX_BYTES:
            raise EntryFailed(TOO_LARGE, ProblemCode.TOO_LARGE)
        return Content(body, entry.media_type)

    def is_deleted(self, entry_id: str) -> bool:
        return True

    def _open_folder(self, inside: tuple[str, ...] | list[str]) -> int:
        """Open the folder step by step, so that no step is a link. Raises `SourceFailed` for the source's own folder,
        `OSError` for one inside it."""
        try:
            descriptor = os.open(settings.SOURCE_FOLDERS, os.O_RDONLY | os.O_DIRECTORY)
        except OSError:
            raise _no_folder() from None
        for number, part in enumerate((*self._parts, *inside)):
            try:
                below = os.open(part, _FOLDER, dir_fd=descriptor)
            except OSError:
                if number < len(self._parts):
                    raise _no_folder() from None
                raise
            finally:
                os.close(descriptor)
            descriptor = below
        return descriptor


def _no_folder() -> SourceFailed:
    return SourceFailed("location_missing", stored_text("There is no such folder."))


def _unreadable(error: OSError) -> None:
    raise SourceFailed("unreachable", stored_text("A folder could not be read.")) from error
