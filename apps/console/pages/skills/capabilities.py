"""What a skill may do, in words, and how much it has been used, for the catalogue, a skill's page and its card.

The words come from the checked manifest, the numbers from the guard's rows of calls.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.db.models import Count, Max, Q, Sum
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext

from apps.guard.enums import CallState, Intent
from apps.guard.models import ToolCall
from apps.skills import argv
from apps.skills.models import SkillVersion
from apps.skills.schemas import SkillManifest

_FAILED = (CallState.ERROR, CallState.UNCERTAIN)
_RUNS = [intent for name in ("RUN_SKILL", "RUN_CONNECTION") if (intent := getattr(Intent, name, None))]

# Access to documents (docs/skills.md, Documents).
_DOCUMENTS = {
    "read": gettext_lazy("reads documents"),
    "add": gettext_lazy("adds documents"),
    "change": gettext_lazy("changes the text of documents"),
    "take_out": gettext_lazy("removes documents"),
    "put_back": gettext_lazy("restores documents"),
}


@dataclass(frozen=True)
class Usage:
    """The usage of some tools."""

    calls: int = 0
    failures: int = 0
    cost: Decimal = Decimal(0)
    last: datetime | None = None

    def __add__(self, other: Usage) -> Usage:
        last = max((moment for moment in (self.last, other.last) if moment), default=None)
        return Usage(self.calls + other.calls, self.failures + other.failures, self.cost + other.cost, last)


def permissions_in_words(manifest: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return (topic, words) with the most far-reaching first; network and files are always included."""
    tools = manifest.get("tools") or []
    tools_called = tools_of(manifest)
    acting = {tool["name"] for tool in tools if tool.get("acting")}
    needs = manifest.get("requirements") or {}
    lines = [
        (_("Actions"), _join(_humane(tool["name"]) for tool in tools if tool.get("acting"))),
        (_("Accounts"), _join(_account(tool["connection"]) for tool in tools if tool.get("connection"))),
        (_("Network"), _join(_host(name) for name in needs.get("network") or ()) or _("None")),
        (_("Changes"), _join(_humane(record) for tool in tools for record in tool.get("writes") or ())),
        (
            pgettext("permissions of a skill", "Reads"),
            _join(_humane(record) for tool in tools for record in tool.get("records") or ()),
        ),
        (_("Files"), _files(tools_called, acting)),
        (_("Documents"), _join(str(_DOCUMENTS[tool["knowledge"]]) for tool in tools if tool.get("knowledge"))),
        (_("Settings"), _join(name for name in needs.get("env") or () if not name.startswith("SILAS_"))),
        (_("Libraries"), _join(needs.get("packages") or ())),
        (_("Lookups"), _join(_humane(name) for name in tools_called if name not in acting)),
    ]
    return [(about, words) for about, words in lines if words]


def tools_of(manifest: Mapping[str, Any]) -> list[str]:
    """Return the names of the tools; for a skill without declared tools, those derived from its scripts."""
    declared = [str(tool["name"]) for tool in manifest.get("tools") or []]
    if declared or not manifest.get("script_args"):
        return declared
    return [tool.name for tool in argv.derived_tools(SkillManifest.model_validate(manifest))]


def title_of(version: SkillVersion) -> str:
    face = version.manifest.get("ui") or {}
    return str(face.get("display_name") or version.name.replace("-", " ").capitalize())


def usage_of(tools: Iterable[str]) -> dict[str, Usage]:
    """Return the usage by tool, with one query for all of them."""
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


def total_usage(tools: Iterable[str], usage: Mapping[str, Usage]) -> Usage:
    return sum((usage[tool] for tool in set(tools) if tool in usage), Usage())


def _files(tools_called: Collection[str], acting: Collection[str]) -> str:
    """Return which files the sandbox lets it read and create (docs/sandbox.md)."""
    if not tools_called:
        return _("reads its own files")
    if acting:
        return _("reads its own files and those of the task, creates new ones")
    return _("reads its own files and those of the task")


def _join(words: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(str(word) for word in words))


def _humane(name: str) -> str:
    return name.replace("_", " ").replace("-", " ")


def _host(name: str) -> str:
    """Return the host in words; a name in braces is a setting of the account (docs/connections.md)."""
    if name[:1] == "{" and name[-1:] == "}":
        return _("the %(setting)s of the account") % {"setting": _humane(name[1:-1])}
    return name


def _account(name: str) -> str:
    kind, _separator, word = name.partition(":")
    return _("any %(type)s account") % {"type": word} if kind == "type" and word else name
