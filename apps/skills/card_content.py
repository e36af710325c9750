"""What a person reads of a version before they approve it: SKILL.md, scripts, the difference from the version in use,
and the report; all cut to a card's limits. Inside the caller's scope.

What is cut off is shown whole on the skill's page; the approval binds every byte by the content's hash either way.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from apps.skills import argv
from apps.skills.enums import SkillSource
from apps.skills.models import SkillFile, SkillVersion
from apps.skills.schemas import SkillManifest
from kernel.canonical import sha256_hex
from kernel.language import in_english
from kernel.stored_texts import stored_text
from kernel.unicode_safety import truncate

MOST_TEXT, MOST_FILES, MOST_DIFF, MOST_LINES = 12_000, 12, 40_000, 100
_SHOWN = frozenset({".py", ".sh", ".md"})


def approval_payload(version: SkillVersion, report: Mapping[str, object]) -> dict[str, object]:
    """Return what an approval of this version binds (contract silas 8)."""
    return {"skill": version.name, "content_hash": version.digest, "report_hash": sha256_hex(dict(report))}


def card_body(version: SkillVersion, before: SkillVersion | None, report: Mapping[str, Any]) -> dict[str, object]:
    """Return what the card shows beside it."""
    manifest, files = SkillManifest.model_validate(version.manifest), readable_files(version)
    scripts = [path for path in sorted(files) if path.startswith(("scripts/", "checks/", "guards/"))]
    tools = [tool.name for tool in (*manifest.tools, *argv.derived_tools(manifest))]
    uri = str((report.get("origin") or {}).get("source") or "")
    return {
        "version": str(version.number),
        "description": manifest.description,
        "source": truncate(f"{in_english(SkillSource(version.source).label)}{f': {uri}' if uri else ''}", 300),
        "scripts": [path[:120] for path in scripts[:MOST_LINES]],
        "tools": tools[:MOST_LINES],
        "report": report_lines(report),
        "instructions": _cut(files.get("SKILL.md", ""), MOST_TEXT),
        "files": [{"path": path, "text": _cut(files[path], MOST_TEXT)} for path in scripts[:MOST_FILES]],
        "diff": _cut(unified_diff(before, version), MOST_DIFF) if before else "",
    }


def report_lines(report: Mapping[str, Any]) -> list[str]:
    """Return the report in sentences: the checks, the import, the dry run."""
    origin = report.get("origin") or {}
    lines = [stored_text("Front matter, paths, syntax and forbidden patterns were checked. No problems found.")]
    lines += [str(note) for note in report.get("notes") or ()]
    lines += [stored_text("Left out: {change}").format(change=change) for change in origin.get("removed") or ()]
    lines += [
        stored_text("Changed: {change}").format(change=change)
        for change in (*(origin.get("mapped") or ()), *(origin.get("rewritten") or ()))
    ]
    lines += [stored_text("Look at this: {change}").format(change=change) for change in origin.get("unresolved") or ()]
    lines += [
        stored_text("Dry run of {script}: {result}").format(script=trial["script"], result=trial["said"])
        for trial in report.get("dry_run") or ()
    ]
    left = len(lines) - MOST_LINES
    kept = (
        lines
        if left <= 0
        else [*lines[: MOST_LINES - 1], stored_text("and {count:d} more lines in the report").format(count=left + 1)]
    )
    return [truncate(line, 300) for line in kept]


def readable_files(version: SkillVersion) -> dict[str, str]:
    """Return the text files that are shown, by path."""
    rows = SkillFile.objects.filter(version_id=version.pk).values_list("path", "content")
    return {
        path: bytes(content).decode("utf-8", "replace")
        for path, content in rows
        if PurePosixPath(path).suffix.lower() in _SHOWN
    }


def unified_diff(before: SkillVersion, after: SkillVersion) -> str:
    """Return what changes from one version to another, as a unified diff; binary files by their hash."""
    old, new = _comparable(before), _comparable(after)
    parts = [
        difflib.unified_diff(old.get(path, []), new.get(path, []), f"a/{path}", f"b/{path}", lineterm="")
        for path in sorted({*old, *new})
        if old.get(path) != new.get(path)
    ]
    return "\n".join(line for part in parts for line in part)


def _comparable(version: SkillVersion) -> dict[str, list[str]]:
    rows = SkillFile.objects.filter(version_id=version.pk).values_list("path", "content")
    return {path: _lines_of(path, bytes(content)) for path, content in rows}


def _lines_of(path: str, content: bytes) -> list[str]:
    try:
        return content.decode("utf-8").splitlines()
    except UnicodeDecodeError:
        return [f"binary, {len(content)} bytes, sha256 {sha256_hex(content)}"]


def _cut(text: str, most: int) -> str:
    clean = "".join(char for char in text if char == "\n" or char == "\t" or char.isprintable())
    return clean if len(clean) <= most else f"{clean[:most]}\n… {len(clean) - most} more characters on the skill's page"
