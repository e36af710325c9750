"""Template filters that name the parts of a model's context window."""

from __future__ import annotations

from django import template

from apps.sessions.prompt_trace import SeenItem
from kernel.taint import Taint
from llm.context.enums import Reason, Zone

register = template.Library()

_ZONES = {
    Zone.SYSTEM: "Instructions",
    Zone.CHRONICLE: "Conversation",
    Zone.MEMORY: "Memory and documents",
    Zone.WORKSPACE: "Workspace",
}
_REASONS = {
    Reason.MASKED: "old result, placeholder only",
    Reason.TRIVIAL: "no content",
    Reason.STALE_SUBSCRIPTION: "no longer requested",
    Reason.SUBSCRIPTION_TOO_LARGE: "too long",
    Reason.ZONE_FULL: "no space in its section",
    Reason.SCORED: "lowest score",
    Reason.WINDOW_FULL: "no space left",
    Reason.METADATA_FULL: "no space for tools",
}
_TRUST = {Taint.OWNER: "signed by a member", Taint.AUTH: "trusted", Taint.EXTERNAL: "untrusted"}
_SENDERS = {"visitor": "Visitor", "bot": "Bot", "human": "Colleague", "system": "System"}
_PLACES = {
    "persona": "Persona",
    "work": "Open work",
    "tool": "Tool",
    "withheld": "Unavailable tool",
    "passage": "Document",
    "memory": "Memory",
    "seq": "Message",
}


@register.filter
def zone(name: str) -> str:
    return _ZONES[Zone(name)]


@register.filter
def because(reason: str) -> str:
    """Why an item was left out of the window or replaced by a placeholder."""
    return _REASONS[Reason(reason)]


@register.filter
def trust(taint: str) -> str:
    return _TRUST[Taint(taint)]


@register.filter
def named(item: SeenItem) -> str:
    """The name of a block: `Visitor, message 3`, `Tool find_claim`, or the title of a document."""
    if item.place == "seq":
        return f"{_SENDERS[item.source]}, message {item.name}" if item.source in _SENDERS else f"Message {item.name}"
    if item.place in ("tool", "withheld"):
        return f"{_PLACES[item.place]} {item.name}"
    title = _PLACES.get(item.place, "Block")
    return f"{title}: {item.source}" if item.source else title
