"""How do the parts of a model's window read to staff? Filters without queries; one word for each code, in one place."""

from __future__ import annotations

from django import template

from apps.sessions.prompt_trace import SeenItem
from kernel.llm.context.enums import Reason, Zone
from kernel.taint import Taint

register = template.Library()

_ZONES = {
    Zone.SYSTEM: "What it was told to be",
    Zone.CHRONICLE: "What was said",
    Zone.MEMORY: "What was looked up",
    Zone.WORKSPACE: "What it kept at hand",
}
_REASONS = {
    Reason.MASKED: "old result, only named",
    Reason.TRIVIAL: "said nothing",
    Reason.STALE_SUBSCRIPTION: "not asked for any more",
    Reason.SUBSCRIPTION_TOO_LARGE: "too long",
    Reason.ZONE_FULL: "no room in its part",
    Reason.SCORED: "worth least, a model said",
    Reason.WINDOW_FULL: "no room at all",
    Reason.METADATA_FULL: "no room among the tools",
}
_TRUST = {Taint.OWNER: "signed by a member", Taint.AUTH: "trusted", Taint.EXTERNAL: "untrusted"}
_SENDERS = {"visitor": "Visitor", "bot": "Bot", "human": "Colleague", "system": "System"}
_PLACES = {
    "persona": "Persona",
    "work": "Promised before",
    "tool": "Tool",
    "withheld": "Tool out of reach",
    "passage": "Document",
    "memory": "Memory",
    "seq": "Message",
}


@register.filter
def zone(name: str) -> str:
    return _ZONES[Zone(name)]


@register.filter
def because(reason: str) -> str:
    """Why something left a window, or only its placeholder stands there."""
    return _REASONS[Reason(reason)]


@register.filter
def trust(taint: str) -> str:
    return _TRUST[Taint(taint)]


@register.filter
def named(item: SeenItem) -> str:
    """What a block is: `Visitor, message 3`, `Tool find_claim`, the title of a document."""
    if item.place == "seq":
        return f"{_SENDERS[item.source]}, message {item.name}" if item.source in _SENDERS else f"Message {item.name}"
    if item.place in ("tool", "withheld"):
        return f"{_PLACES[item.place]} {item.name}"
    title = _PLACES.get(item.place, "Block")
    return f"{title}: {item.source}" if item.source else title
