"""Adapt a foreign skill: the same folder in our format, and a report of everything that was kept, mapped, removed,
rewritten or is unresolved. Pure and deterministic: nothing is executed (spec 10.4.1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

import yaml

from apps.skills import rules
from apps.skills.imports import front_matter, scripts
from apps.skills.imports.sources import Fetched
from apps.skills.loader import MANIFEST, read_front_matter, skill_invalid
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.language import gettext

FORMATS = ("silas", "openai", "claude")
# Only their own platforms read these.
_PLATFORM_FILES = ("agents/openai.yaml", ".claude-plugin/", ".claude/", "hooks/", ".github/", ".gitignore", ".codex/")
_OURS = frozenset({"activation", "script_args", "composes_with", "ui", "type"})


@dataclass
class Report:
    """The transformation report, line by line."""

    removed: list[str] = field(default_factory=list)
    mapped: list[str] = field(default_factory=list)
    rewritten: list[str] = field(default_factory=list)
    unresolved: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Adapted:
    files: dict[str, bytes]
    report: dict[str, Any]


def adapt(fetched: Fetched, *, format_hint: str = "") -> Adapted:
    """Adapt what was fetched. Raises `SilasError` `format_unknown`, and `skill_invalid` when its SKILL.md cannot be
    read."""
    if format_hint and format_hint not in FORMATS:
        raise SilasError(
            ErrorCode.FORMAT_UNKNOWN,
            gettext("The format must be one of {listed}.").format(listed=", ".join(FORMATS)),
        )
    raw = fetched.files.get(MANIFEST)
    if raw is None:
        raise skill_invalid(["there is no SKILL.md"])
    given, body = read_front_matter(raw)
    shape, report = format_hint or detect_format(given, fetched.files), Report()
    files = _keep_files(fetched.files, report)
    meta = front_matter.normalise(given, report, called=fetched.called, ours=shape == "silas")
    if shape != "silas":
        meta, files = scripts.adapt_scripts(meta, files, report)
    if "{{" in body or "!`" in body:
        report.unresolved.append(
            "The instructions hold placeholders that other platforms fill in; here they stay text."
        )
    if meta != given:
        head = yaml.safe_dump(dict(meta), sort_keys=False, allow_unicode=True, width=110)
        files = {**files, MANIFEST: f"---\n{head}---\n\n{body.strip()}\n".encode()}
    return Adapted(files, _as_json(fetched, shape, report))


def detect_format(given: Mapping[str, object], files: Mapping[str, bytes]) -> str:
    """Return the format, by keys and files that only one of them has; the plain Agent Skills form counts as
    Claude's."""
    metadata = given.get("metadata")
    if set(given) & _OURS or (isinstance(metadata, dict) and "tools" in metadata):
        return "silas"
    if "agents/openai.yaml" in files or "interface" in given:
        return "openai"
    return "claude"


def _keep_files(files: Mapping[str, bytes], report: Report) -> dict[str, bytes]:
    kept = {}
    for path, content in sorted(files.items()):
        if path.startswith(_PLATFORM_FILES) or PurePosixPath(path).name.startswith("."):
            report.removed.append(f"{path} (another platform's)")
        elif PurePosixPath(path).suffix in (".pyc", ".pyo", ".so", ".whl"):
            report.removed.append(f"{path} (compiled)")
        else:
            kept[path] = content
    return kept


def _as_json(fetched: Fetched, shape: str, report: Report) -> dict[str, object]:
    return {
        "format": shape,
        "source": fetched.uri,
        "commit": fetched.commit,
        "fetched": rules.content_digest(fetched.files),
        "kept": report.kept,
        "mapped": report.mapped,
        "removed": report.removed,
        "rewritten": report.rewritten,
        "unresolved": report.unresolved,
    }
