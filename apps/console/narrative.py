"""How does an audit entry read in plain language? Pure; the names that belong to its ids are looked up before.

An event without a sentence here is told by its label in the closed list, so that nothing that happened is left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from apps.audit.enums import AuditEvent
from apps.console.reasons import REASONS
from apps.console.sentences import CODES, FIELDS, SENTENCES, UNNAMED, VARIANT


@dataclass(frozen=True)
class Names:
    """What people call the ids of a page of entries, by `kind:id`."""

    known: Mapping[str, str] = field(default_factory=dict)

    def of(self, word: str) -> str:
        kind, _, given = word.partition(":")
        if kind == "record":
            return given.replace("/", " ")
        return self.known.get(word) or UNNAMED.get(kind, "something")


@dataclass(frozen=True)
class Story:
    """One line of the activity: a mark (ok, bad, ask or none), what happened in bold, and the rest."""

    mark: str
    lead: str
    rest: str = ""


class _Words(dict[str, str]):
    """Fields of a sentence; one that an old entry does not have reads as three dots."""

    def __missing__(self, key: str) -> str:
        return "…"


def tell(event: str, *, actor: str, subject: str, data: Mapping[str, Any], names: Names) -> Story:
    """The entry as a sentence; `names` has what the ids of its page are called."""
    variant = f"{event}:{data.get(VARIANT.get(event, ''), '')}"
    mark, lead, rest = SENTENCES.get(variant) or SENTENCES.get(event) or ("", _label(event), "")
    words = _Words({name: _plain(name, value) for name, value in data.items()})
    words.update(
        who=names.of(actor), what=names.of(subject), tool=names.known.get(f"tool:{subject}:{data.get('seq')}", "a tool")
    )
    return Story(mark, lead.format_map(words), rest.format_map(words))


def _label(event: str) -> str:
    return str(AuditEvent(event).label) if event in AuditEvent.values else event.replace("_", " ")


def _plain(name: str, value: Any) -> str:
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    if name == "fields" and isinstance(value, list):
        return ", ".join(FIELDS.get(str(each), str(each).replace("_", " ")) for each in value)
    if name in CODES:
        return REASONS.get(text, text.replace("_", " "))
    return text
