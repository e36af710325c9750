"""Collect the regular files that a run left under out/, counted and bounded, after all its processes are dead."""

from __future__ import annotations

import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .config import Config

_MAX_DEPTH = 8


class TooMuchLeft(Exception):
    """The run left more under out/ than it may hand back."""


class Collector:
    """Follows no link, opens nothing special, and skips names that a row or a page could not hold."""

    def __init__(self, config: Config) -> None:
        self.files_left = config["artifact_files"]
        self.bytes_left = config["disk_bytes"]
        self.entries_left = 10 * config["artifact_files"]
        self.found: list[bytes] = []

    def walk(self, directory: int, prefix: str = "", depth: int = 0) -> None:
        for name in self._names(directory, depth):
            if not _is_plain(name):
                continue
            try:
                # No link is followed out of the directory, and a FIFO is opened without waiting for its writer.
                descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=directory)
            except OSError:
                continue  # a link, a socket, something unreadable
            try:
                self._take(descriptor, prefix + name, depth)
            finally:
                os.close(descriptor)

    def _names(self, directory: int, depth: int) -> list[str]:
        names = []
        with os.scandir(directory) as entries:
            for entry in entries:
                # Entries that are skipped count too: reading a directory of a million names takes time as well.
                self.entries_left -= 1
                if self.entries_left < 0 or depth > _MAX_DEPTH:
                    raise TooMuchLeft
                names.append(entry.name)
        return sorted(names)

    def _take(self, descriptor: int, name: str, depth: int) -> None:
        info = os.fstat(descriptor)
        if stat.S_ISDIR(info.st_mode):
            self.walk(descriptor, name + "/", depth + 1)
        elif stat.S_ISREG(info.st_mode):
            self.files_left -= 1
            self.bytes_left -= info.st_size
            if self.files_left < 0 or self.bytes_left < 0:
                raise TooMuchLeft
            with open(descriptor, "rb", closefd=False) as handle:
                self.found += [name.encode(), handle.read(info.st_size)]


def _is_plain(name: str) -> bool:
    return name.isprintable()


def collect(directory: int, config: Config) -> tuple[str, list[bytes]]:
    """(reason, name and content in turn)."""
    collector = Collector(config)
    try:
        collector.walk(directory)
    except TooMuchLeft:
        return "artifact_limit", []
    return "", collector.found
