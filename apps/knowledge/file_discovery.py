"""Find the files of an ingest and the reference under which each is known from one ingest to the next.

A reference is the path below `root`, so that the same file is the same document wherever the command is run from.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from apps.knowledge.parsing import SUFFIXES
from apps.knowledge.schemas import Sources
from kernel.canonical import sha256_hex

_LONGEST = 350


def find_files(paths: Iterable[Path], *, root: Path) -> Sources:
    """Every file of `paths`, folders walked in name order without hidden entries; a path given twice counts once."""
    files: dict[Path, str] = {}
    skipped: dict[Path, None] = {}
    for given in paths:
        for path in _walk(given) if given.is_dir() else [given]:
            place = path.absolute()
            if given.is_dir() and path.suffix.lower() not in SUFFIXES:
                skipped[place] = None
            else:
                files[place] = file_reference(place, root=root)
    return Sources(tuple(files.items()), tuple(skipped))


def file_reference(path: Path, *, root: Path) -> str:
    """The path below `root`, or the whole path outside of it, as text that every database can hold."""
    place, root = Path(os.path.normpath(path.absolute())), Path(os.path.normpath(root.absolute()))
    name = (place.relative_to(root) if place.is_relative_to(root) else place).as_posix()
    text = os.fsencode(name).decode("utf-8", "backslashreplace")
    return text if len(text) <= _LONGEST else f"{sha256_hex(text)[:16]}:{text[-_LONGEST + 17 :]}"


def _walk(folder: Path) -> Iterator[Path]:
    for here, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        yield from (Path(here, name) for name in sorted(names) if not name.startswith("."))
