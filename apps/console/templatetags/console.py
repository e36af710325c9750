"""How do moments, names and texts look on the page? Filters without queries."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import nh3
from django import template
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt

from kernel.clock import now

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
def initials(name: str) -> str:
    """Two letters of a person's name, or the first letter of `Visitor 4F2A`."""
    words = name.split()
    if len(words) > 1 and words[0] != "Visitor":
        return (words[0][:1] + words[-1][:1]).upper()
    return name[:1].upper()


@register.filter
def lowerfirst(text: str) -> str:
    """For the second half of a sentence; an abbreviation keeps its capitals."""
    return text if text[1:2].isupper() else text[:1].lower() + text[1:]


@register.filter
def saying(consequence: str, verb: str) -> str:
    """A button's words: the verb, then what happens; a consequence that already begins with the usual verb loses it."""
    rest = consequence.removeprefix("Approve, ").removeprefix("Decline, ")
    return f"{verb}, {lowerfirst(rest)}" if rest else verb


@register.filter
def said(text: str) -> SafeString:
    """A bot's or colleague's Markdown as clean HTML, without anything to press."""
    html = nh3.clean(_MARKDOWN.render(text), tags=_TAGS, attributes={}, link_rel=None)
    return mark_safe(html)  # noqa: S308 (cleaned in the line above)


@register.filter
def pretty(value: Any) -> str:
    """A payload as indented JSON."""
    return json.dumps(value, indent=2, ensure_ascii=False, sort_keys=True)


@register.filter
def humane(code: str) -> str:
    return str(code).replace("_", " ")


@register.filter
def thousands(number: int) -> str:
    return f"{number:,}"
