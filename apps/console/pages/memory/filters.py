"""The filter of the list of memories, read from an address. Values that mean nothing are ignored, never an error."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from django.utils.translation import gettext_lazy

from apps.memory.enums import ScopeKind
from apps.memory.queries import MemoryFilter
from llm.enums import MemoryType

TYPES = {
    MemoryType.FACT: gettext_lazy("Fact"),
    MemoryType.EPISODE: gettext_lazy("Event"),
    MemoryType.PREFERENCE: gettext_lazy("Preference"),
    MemoryType.SKILL_NOTE: gettext_lazy("Note of a skill"),
    MemoryType.DECISION: gettext_lazy("Decision"),
    MemoryType.FORESIGHT: gettext_lazy("Expectation"),
    MemoryType.PROFILE: gettext_lazy("Profile"),
}
STATES = (
    ("confirmed", gettext_lazy("Confirmed")),
    ("unconfirmed", gettext_lazy("Not confirmed")),
    ("pinned", gettext_lazy("Pinned")),
    ("marked", gettext_lazy("Written after reading instructions")),
    ("archived", gettext_lazy("Archived")),
)
_NAMES = ("search", "customer", "scope", "type", "state")


class ListFilter:
    """What to list. `parameters` are those that the list understands; a page of the list repeats them."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        texts = {name: str(given.get(name, "")).replace("\0", "").strip()[:120] for name in _NAMES}
        self.search, self.customer = texts["search"], texts["customer"]
        self.scope = texts["scope"] if texts["scope"] in ScopeKind.values else ""
        self.type = texts["type"] if texts["type"] in set(MemoryType) else ""
        self.state = texts["state"] if texts["state"] in dict(STATES) else ""
        self.raw = given.get("show") == "raw"

    @property
    def is_active(self) -> bool:
        return bool(self._chosen())

    @property
    def query_string(self) -> str:
        """The filter as the end of an address, beginning with `?`."""
        return f"?{urlencode({'show': self.show, **self._chosen()})}"

    @property
    def show(self) -> str:
        return "raw" if self.raw else "remembered"

    def as_condition(self) -> MemoryFilter:
        return MemoryFilter(
            search=self.search,
            scope=ScopeKind(self.scope) if self.scope else None,
            customer=self.customer,
            memory_type=MemoryType(self.type) if self.type else None,
            confirmed={"confirmed": True, "unconfirmed": False}.get(self.state),
            pinned=True if self.state == "pinned" else None,
            marked=True if self.state == "marked" else None,
            raw=self.raw,
            archived=self.state == "archived",
        )

    def _chosen(self) -> dict[str, str]:
        return {name: value for name in _NAMES if (value := getattr(self, name))}
