"""How do moments, names and texts look on the page? Filters without queries."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any
from urllib.parse import urlsplit

import nh3
from django import template
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt

from apps.approvals.models import Card
from apps.console import faces
from apps.console.charts import share_width
from apps.work.enums import WorkItemStatus, WorkItemType
from apps.work.models import WorkItem
from kernel.clock import now
from kernel.unicode_safety import escape_confusables

register = template.Library()

# A link of the bot's stays as it was written: nobody at the console should press what a visitor's model made up.
_MARKDOWN = MarkdownIt("commonmark", {"html": False, "breaks": True}).disable(
    ["link", "image", "autolink", "reference"]
)
_TAGS = {"p", "br", "strong", "em", "code", "pre", "ul", "ol", "li", "blockquote", "h1", "h2", "h3", "h4"}
_MINUTE, _HOUR, _DAY = 60, 3600, 86_400


@register.filter
def ago(moment: datetime) -> SafeString:
    """A relative time that says the exact one on hover; the page's script keeps it fresh."""
    return _time(moment, past(int((now() - moment).total_seconds())), "ago")


@register.filter
def until(moment: datetime) -> SafeString:
    return _time(moment, ahead(int((moment - now()).total_seconds())), "until")


@register.filter
def moment(at: datetime) -> SafeString:
    """The hour of today, or the day with it."""
    local, today = timezone.localtime(at), timezone.localdate()
    return _time(at, f"{local:%H:%M}" if local.date() == today else f"{local.day} {local:%b}, {local:%H:%M}", "")


@register.filter
def clock(moment: datetime) -> SafeString:
    return _time(moment, timezone.localtime(moment).strftime("%H:%M"), "")


def _time(moment: datetime, text: str, kind: str) -> SafeString:
    exact = timezone.localtime(moment).strftime("%a %d %b %Y, %H:%M:%S %Z")
    return format_html(
        '<time datetime="{}" title="{}" data-relative="{}">{}</time>', moment.isoformat(), exact, kind, text
    )


def past(seconds: int) -> str:
    if seconds < _MINUTE:
        return "now"
    return f"{_span(seconds)} ago"


def ahead(seconds: int) -> str:
    return f"in {_span(seconds)}" if seconds > 0 else "now"


def _span(seconds: int) -> str:
    if seconds < _MINUTE:
        return f"{seconds} s"
    if seconds < _HOUR:
        return f"{seconds // _MINUTE} min"
    if seconds < 2 * _DAY:
        return f"{seconds // _HOUR} h"
    return f"{seconds // _DAY} days"


@register.filter
def usd(amount: Decimal | float) -> str:
    """An amount as people read it: cents, and below a dollar at least two digits that count."""
    exact = Decimal(str(amount))
    if abs(exact) >= 1 or not exact:
        return f"${exact:,.2f}"
    written = f"{exact:.{max(2, 1 - exact.adjusted())}f}"
    whole, _, part = written.partition(".")
    return f"${whole}.{part.rstrip('0').ljust(2, '0')}"


@register.filter
def initials(name: str) -> str:
    """Two letters of a person's name, or the first letter of `Visitor 4F2A`."""
    words = name.split()
    if len(words) > 1 and words[0] != "Visitor":
        return (words[0][:1] + words[-1][:1]).upper()
    return name[:1].upper()


@register.filter
def seen(text: object) -> str:
    """A text of somebody's with what cannot be seen in it, or looks like something else, written out."""
    return escape_confusables(str(text))


@register.filter
def hides(text: str) -> bool:
    """Whether a text looks different once everything in it is written out."""
    return escape_confusables(text) != text


@register.filter
def shown(value: object) -> str:
    """A value of any shape on one line: texts as they are, anything else as JSON."""
    return escape_confusables(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


@register.filter
def pairs(values: object) -> list[tuple[str, Any]]:
    """The items of a mapping, also of one that has a key called items."""
    return list(values.items()) if isinstance(values, Mapping) else []


@register.filter
def seconds(number: float) -> str:
    """A span that people took: tenths under ten seconds."""
    return f"{number:.1f} s" if number < 9.95 else _span(int(number + 0.5))


@register.filter
def percent(share: float) -> str:
    return f"{share * 100:.0f}\N{NO-BREAK SPACE}%" if share == 0 or share >= 0.01 else "under 1\N{NO-BREAK SPACE}%"


@register.filter
def reach(share: float) -> float:
    """How far a bar of this share reaches, of a hundred."""
    return share_width(share)


_GOAL_STANDS = {
    WorkItemStatus.PENDING: "not looked at yet",
    WorkItemStatus.HEALTHY: "true at the last look",
    WorkItemStatus.FAILED: "not true yet",
    WorkItemStatus.BLOCKED: "over",
}


@register.filter
def stands(item: WorkItem) -> str:
    """How a piece of work stands; what has not begun says what it waits for. A goal that failed its checks goes on:
    what it wants is not true yet."""
    if item.type == WorkItemType.GOAL and item.status == WorkItemStatus.PENDING and item.due_at is None:
        return "in force"
    if item.type == WorkItemType.GOAL:
        return _GOAL_STANDS.get(WorkItemStatus(item.status)) or humane(item.status)
    if item.status != WorkItemStatus.PENDING:
        return humane(item.status)
    if item.is_part:
        return "waits for its turn"
    return "waits for a worker" if item.approval_token_id else "waits for a yes"


@register.filter
def times(count: object) -> range:
    return range(int(str(count or 0)))


@register.filter
def host(address: str) -> str:
    return urlsplit(address).hostname or ""


@register.filter
def threshold(key: str) -> str:
    """What a setting of the bot's freedom is called."""
    return _THRESHOLDS.get(key, key)


_THRESHOLDS = {
    "standing.scope": "What it may do without asking",
    "standing.max_executions": "Times before it asks again",
    "standing.expires_at": "Until when",
    "batch_review.default_size": "Items in a batch",
    "batch_review.confidence.high_min": "Sure enough for a batch",
}


@register.filter
def limits(payload: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Each limit of a budget before and after."""
    before, after = payload["before"], payload["after"]
    return [
        {"name": name, "before": before.get(name, "none"), "after": value, "changed": before.get(name) != value}
        for name, value in after.items()
    ]


@register.filter
def verdict(card: Card) -> str:
    """What somebody answered, in one word or in the words of the button."""
    said = faces.answered(card)
    return said[:1].upper() + said[1:]


@register.filter
def told(card: Card) -> str:
    """What the page says after a press."""
    return escape_confusables(faces.told(card))


@register.filter
def confirming(words: str) -> str:
    return escape_confusables(faces.confirming(words))


@register.filter
def said(text: str) -> SafeString:
    """A bot's or colleague's Markdown as clean HTML, without anything to press."""
    html = nh3.clean(_MARKDOWN.render(text), tags=_TAGS, attributes={}, link_rel=None)
    return mark_safe(html)  # noqa: S308 (cleaned in the line above)


@register.filter
def pretty(value: Any) -> str:
    """A payload as indented JSON."""
    return escape_confusables(json.dumps(value, indent=2, ensure_ascii=False, sort_keys=True))


@register.filter
def humane(code: str) -> str:
    return escape_confusables(str(code).replace("_", " "))


@register.filter
def thousands(number: int) -> str:
    return f"{number:,}"
