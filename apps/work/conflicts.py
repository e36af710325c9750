"""Decide whether two items may run at the same time: not when what they may write overlaps (contract silas 15,
conflicts).

A skill declares what its calls may write: books of the customer's records, and arguments that are paths (`"format":
"path"` in the tool's schema). A path covers everything below it. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from apps.skills.schemas import ToolSpec
from kernel.canonical import sha256_hex
from llm.calls import PlannedCall

_LONGEST = 300


@dataclass(frozen=True)
class Claims:
    """`exact`: what may be written. `above`: every directory above a claimed path; claiming one of them claims the path
    too."""

    exact: frozenset[str] = frozenset()
    above: frozenset[str] = frozenset()

    def overlaps(self, other: Claims) -> bool:
        return bool(self.exact & (other.exact | other.above) or other.exact & self.above)


def claims_of(calls: Sequence[PlannedCall], tools: Iterable[ToolSpec], subject: str) -> Claims:
    """Return what these calls may write for this customer."""
    known = {tool.name: tool for tool in tools}
    acting_calls = [(known[call.tool], call) for call in calls if call.tool in known and known[call.tool].acting]
    books = {f"record:{_short(book)}:{_short(subject)}" for tool, _ in acting_calls for book in tool.writes}
    paths = [path for tool, call in acting_calls for path in _paths(tool, call)]
    exact = books | {f"path:{_short(str(path))}" for path in paths}
    above = {f"path:{_short(str(parent))}" for path in paths for parent in path.parents}
    return Claims(frozenset(exact), frozenset(above))


def _paths(tool: ToolSpec, call: PlannedCall) -> list[PurePosixPath]:
    properties = tool.args.get("properties") or {}
    names = [name for name, schema in properties.items() if isinstance(schema, dict) and schema.get("format") == "path"]
    return [_normalize(call.args[name]) for name in names if isinstance(call.args.get(name), str)]


def _normalize(text: str) -> PurePosixPath:
    """Normalize a path: absolute, without `.` and `..`; a path cannot climb above the root."""
    parts: list[str] = []
    for part in PurePosixPath("/", text).parts[1:]:
        # By text alone: the path is one in the sandbox and is never resolved on this machine.
        parts = parts[:-1] if part == ".." else [*parts, part]
    return PurePosixPath("/", *parts)


def _short(text: str) -> str:
    # A key of an index has a limited size; a digest keeps long names apart.
    return text if len(text) <= _LONGEST else sha256_hex(text)
