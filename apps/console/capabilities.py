"""What may a skill do, in plain words, and what has it come to so far? For the catalogue, a skill's page and its card.

Words come from the manifest that was checked; numbers from the guard's own rows of calls.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.db.models import Count, Max, Q, Sum

from apps.guard.enums import CallState, Intent
from apps.guard.models import ToolCall
from apps.skills import argv
from apps.skills.models import SkillVersion
from apps.skills.schemas import SkillManifest

_FAILED = (CallState.ERROR, CallState.UNCERTAIN)
_RUNS = [intent for name in ("RUN_SKILL", "RUN_CONNECTION") if (intent := getattr(Intent, name, None))]

# What answers are taken from (docs/skills.md, Documents).
_DOCUMENTS = {
    "read": "reads what answers are taken from",
    "add": "adds documents",
    "change": "changes the text of documents",
    "take_out": "takes documents out",
    "put_back": "puts documents back",
}


@dataclass(frozen=True)
class Usage:
    """What calls of some tools came to."""

    calls: int = 0
    failures: int = 0
    cost: Decimal = Decimal(0)
    last: datetime | None = None

    def __add__(self, other: Usage) -> Usage:
        last = max((one for one in (self.last, other.last) if one), default=None)
        return Usage(self.calls + other.calls, self.failures + other.failures, self.cost + other.cost, last)


def may(manifest: Mapping[str, Any]) -> list[tuple[str, str]]:
    """(about, in words), most far-reaching first; always says whether it reaches a network, and which files."""
    tools = manifest.get("tools") or []
    called = tools_of(manifest)
    acting = {tool["name"] for tool in tools if tool.get("acting")}
    needs = manifest.get("requirements") or {}
    told = [
        ("Acts", _listed(_humane(tool["name"]) for tool in tools if tool.get("acting"))),
        ("Accounts", _listed(_account(tool["connection"]) for tool in tools if tool.get("connection"))),
        ("Network", _listed(_host(name) for name in needs.get("network") or ()) or "None"),
        ("Changes", _listed(_humane(book) for tool in tools for book in tool.get("writes") or ())),
        ("Reads", _listed(_humane(book) for tool in tools for book in tool.get("records") or ())),
        ("Files", _files(called, acting)),
        ("Documents", _listed(_DOCUMENTS[tool["knowledge"]] for tool in tools if tool.get("knowledge"))),
        ("Settings", _listed(name for name in needs.get("env") or () if not name.startswith("SILAS_"))),
        ("Libraries", _listed(needs.get("packages") or ())),
        ("Looks things up", _listed(_humane(name) for name in called if name not in acting)),
    ]
    return [(about, words) for about, words in told if words]


def tools_of(manifest: Mapping[str, Any]) -> list[str]:
    """By name; of a skill in the plain form, those that come of its scripts."""
    declared = [str(tool["name"]) for tool in manifest.get("tools") or []]
    if declared or not manifest.get("script_args"):
        return declared
    return [tool.name for tool in argv.derived_tools(SkillManifest.model_validate(manifest))]


def title_of(version: SkillVersion) -> str:
    face = version.manifest.get("ui") or {}
    return str(face.get("display_name") or version.name.replace("-", " ").capitalize())


def usage_of(tools: Iterable[str]) -> dict[str, Usage]:
    """By tool; one query for all of them."""
    rows = (
        ToolCall.objects.filter(intent__in=_RUNS, tool__in=set(tools))
        .values("tool")
        .order_by("tool")
        .annotate(
            calls=Count("pk"),
            failures=Count("pk", filter=Q(state__in=_FAILED)),
            cost=Sum("charged"),
            last=Max("created_at"),
        )
    )
    return {row["tool"]: Usage(row["calls"], row["failures"], row["cost"] or Decimal(0), row["last"]) for row in rows}


def summed(tools: Iterable[str], usage: Mapping[str, Usage]) -> Usage:
    return sum((usage[tool] for tool in set(tools) if tool in usage), Usage())


def _files(called: Collection[str], acting: Collection[str]) -> str:
    """What a sandbox gives it and takes from it (docs/sandbox.md); always said."""
    if not called:
        return "reads its own"
    left = ", leaves new ones" if acting else ""
    return f"reads its own and the work's{left}"


def _listed(words: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(str(word) for word in words))


def _humane(name: str) -> str:
    return name.replace("_", " ").replace("-", " ")


def _host(name: str) -> str:
    """A name in braces stands for what the account's settings say (docs/connections.md)."""
    return f"the {_humane(name[1:-1])} of the account" if name[:1] == "{" and name[-1:] == "}" else name


def _account(name: str) -> str:
    kind, _, word = name.partition(":")
    return f"any {word} account" if kind == "type" and word else name
