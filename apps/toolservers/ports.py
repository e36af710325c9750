"""Port through which the skills room provides the files of a tool server that is a program.

`skills` registers a finder when Django is ready: it returns the files of a skill that a person approved. Without it no
program runs.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.language import gettext


class Program(NamedTuple):
    """An approved skill as a tool server's files. `ref` names its content; `scripts` are paths in `folder`; `egress`
    the `host:port` places that were approved with it."""

    ref: str
    folder: Path
    scripts: frozenset[str]
    egress: tuple[str, ...]


Finder = Callable[[str], Program]
_finders: list[Finder] = []


def register_programs(finder: Finder) -> None:
    """Register the finder; called once, by `skills`, in `ready()`."""
    _finders[:] = [finder]


def program(ref: str) -> Program:
    """Return the program of this reference, inside the caller's scope. Raises `SilasError("skill_missing")` for a skill
    that is not in use."""
    if not _finders:
        raise SilasError(ErrorCode.SKILL_MISSING, gettext("No skills are available here."))
    return _finders[0](ref)
