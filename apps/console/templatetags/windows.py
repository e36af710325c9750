"""Template filters that name the parts of a model's context window."""

from __future__ import annotations

from django import template
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from apps.sessions.prompt_trace import PREFERENCE, SeenItem
from kernel.taint import Taint
from llm.context.enums import Reason, Zone

register = template.Library()

_ZONES = {
    Zone.SYSTEM: gettext_lazy("Instructions"),
    Zone.CHRONICLE: gettext_lazy("Conversation"),
    Zone.MEMORY: gettext_lazy("Memory and documents"),
    Zone.WORKSPACE: gettext_lazy("Workspace"),
}
_REASONS = {
    Reason.MASKED: gettext_lazy("old result, placeholder only"),
    Reason.TRIVIAL: gettext_lazy("no content"),
    Reason.STALE_SUBSCRIPTION: gettext_lazy("no longer requested"),
    Reason.SUBSCRIPTION_TOO_LARGE: gettext_lazy("too long"),
    Reason.ZONE_FULL: gettext_lazy("no space in its section"),
    Reason.SCORED: gettext_lazy("lowest score"),
    Reason.WINDOW_FULL: gettext_lazy("no space left"),
    Reason.METADATA_FULL: gettext_lazy("no space for tools"),
}
_TRUST = {
    Taint.OWNER: gettext_lazy("signed by a member"),
    Taint.AUTH: gettext_lazy("trusted"),
    Taint.EXTERNAL: gettext_lazy("untrusted"),
}
_SENDERS = {
    "visitor": gettext_lazy("Visitor"),
    "bot": gettext_lazy("Bot"),
    "human": gettext_lazy("Colleague"),
    "system": gettext_lazy("System"),
}
_PLACES = {
    "persona": gettext_lazy("Persona"),
    "tone": gettext_lazy("Personality"),
    "work": gettext_lazy("Open work"),
    "passage": gettext_lazy("Document"),
    "memory": gettext_lazy("Memory"),
}


@register.filter
def zone(name: str) -> str:
    return str(_ZONES[Zone(name)])


@register.filter
def because(reason: str) -> str:
    """Why an item was left out of the window or replaced by a placeholder."""
    return str(_REASONS[Reason(reason)])


@register.filter
def trust(taint: str) -> str:
    return str(_TRUST[Taint(taint)])


@register.filter
def named(item: SeenItem) -> str:
    """The name of a block: `Visitor, message 3`, `Tool find_claim`, or the title of a document."""
    if item.place == "seq" and item.source in _SENDERS:
        return _("%(sender)s, message %(number)s") % {"sender": _SENDERS[item.source], "number": item.name}
    if item.place == "seq":
        return _("Message %(number)s") % {"number": item.name}
    if item.place == "tool":
        return _("Tool %(name)s") % {"name": item.name}
    if item.place == "withheld":
        return _("Unavailable tool %(name)s") % {"name": item.name}
    if item.place == "memory" and item.source == PREFERENCE:
        return _("Preference of your team")
    title = str(_PLACES.get(item.place) or _("Block"))
    return f"{title}: {item.source}" if item.source else title
