"""What the keeper is told about a run. For type checkers only: the keeper imports nothing that it does not need."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict


class Root(TypedDict):
    """The file system of a run, if the keeper builds it itself: (source, target) pairs, (target, link) pairs, paths."""

    binds: Sequence[tuple[str, str]]
    links: Sequence[tuple[str, str]]
    mounts: Sequence[tuple[str, str]]
    devices: Sequence[str]
    hidden: Sequence[str]
    covered: tuple[str, ...]
    disk_bytes: int


class Building(TypedDict):
    """How the namespaces are made: by bubblewrap with these arguments, or by the keeper with this root, or neither,
    where an engine has made them."""

    bwrap: list[str] | None
    root: Root | None


class Config(Building):
    """One run. `uid`: the user that it becomes; None where it stays ours. `filter`: a seccomp program."""

    path: str
    user_namespace: bool
    argv: list[str]
    env: dict[str, str]
    extras: list[str]
    work: list[tuple[str, bytes]]
    uid: int | None
    filter: bytes
    timeout_seconds: float
    memory_bytes: int
    disk_bytes: int
    cpu_seconds: int
    processes: int
    artifact_files: int
    lasting: bool
