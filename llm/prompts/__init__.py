"""Versioned prompts of each role: one Markdown file a version, `<role>/<number>.md`; the highest number is used.

A file that was in use is never changed: another wording is another version, because turns record which one they had.
Read once a process. Only `$title`, `$profiles` and `$example` are substituted.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path
from string import Template

_FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Prompt:
    """One version of a role's prompt; `name` is what a turn records, for example `proxy@1`."""

    role: str
    version: int
    text: str

    @property
    def name(self) -> str:
        return f"{self.role}@{self.version}"

    def filled(self, **values: str) -> str:
        """The text with its placeholders filled. Raises `KeyError` for one without a value."""
        return Template(self.text).substitute(values).strip()


@functools.cache
def current(role: str) -> Prompt:
    """The version in use. Raises `LookupError` for a role without prompts."""
    versions = sorted(int(path.stem) for path in (_FOLDER / role).glob("*.md") if path.stem.isdecimal())
    if not versions:
        raise LookupError(f"no prompt for {role}")
    text = (_FOLDER / role / f"{versions[-1]}.md").read_text(encoding="utf-8")
    return Prompt(role, versions[-1], text)
