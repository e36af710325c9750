"""Template filters for moments, names, amounts and texts. None of them runs a query."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any
from urllib.parse import urlsplit

from django import template
from django.utils import timezone
from django.utils.formats import date_format, number_format
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext, pgettext, pgettext_lazy

from apps.approvals.cards.schemas import EXACT_TEXT
from apps.approvals.models import Card
from apps.connections.services.requests import NO_PERMISSION
from apps.console import labels
from apps.console.charts import share_width
from apps.console.labels import inline_label
from apps.console.pages.review import presenter
from apps.console.script_texts import script_texts
from apps.sessions.markdown import render_for_staff
from apps.tenants.models import User
from apps.work.enums import WorkItemStatus, WorkItemType, WorkReason
from apps.work.models import WorkItem
from kernel.clock import now
from kernel.stored_texts import show_stored
from kernel.unicode_safety import escape_confusables

register = template.Library()

_MINUTE, _HOUR, _DAY = 60, 3600, 86_400


@register.simple_tag(name="script_texts")
def script_texts_tag() -> str:
    """The texts of the page's scripts as JSON, for an attribute."""
    return json.dumps(script_texts(), ensure_ascii=False)


@register.filter
def ago(moment: datetime) -> SafeString:
    """A relative time with the exact time on hover; the page's script keeps it up to date."""
    return _time(moment, past(int((now() - moment).total_seconds())), "ago")


@register.filter
def until(moment: datetime) -> SafeString:
    return _time(moment, ahead(int((moment - now()).total_seconds())), "until")


@register.filter
def waited(moment: datetime) -> SafeString:
    """How long something has been waiting since `moment`, such as `4 min`."""
    return _time(moment, _span(int((now() - moment).total_seconds())), "for")


@register.filter
def moment(at: datetime) -> SafeString:
    """The time for today, else the day and the time."""
    local, today = timezone.localtime(at), timezone.localdate()
    return _time(at, date_format(local, "H:i" if local.date() == today else "j M, H:i"), "")


@register.filter
def clock(moment: datetime) -> SafeString:
    return _time(moment, timezone.localtime(moment).strftime("%H:%M"), "")


def _time(moment: datetime, text: str, kind: str) -> SafeString:
    exact = date_format(timezone.localtime(moment), "D d M Y, H:i:s T")
    return format_html(
        '<time datetime="{}" title="{}" data-relative="{}">{}</time>', moment.isoformat(), exact, kind, text
    )


def past(seconds: int) -> str:
    return _("%(span)s ago") % {"span": _span(seconds)} if seconds >= _MINUTE else _("now")


def ahead(seconds: int) -> str:
    return _("in %(span)s") % {"span": _span(seconds)} if seconds > 0 else _("now")


def _span(seconds: int) -> str:
    if seconds < _MINUTE:
        return _("%(number)s s") % {"number": seconds}
    if seconds < _HOUR:
        return _("%(number)s min") % {"number": seconds // _MINUTE}
    if seconds < 2 * _DAY:
        return _("%(number)s h") % {"number": seconds // _HOUR}
    days = seconds // _DAY
    return ngettext("%(number)s day", "%(number)s days", days) % {"number": days}


def span_of_minutes(minutes: int) -> str:
    """A length of time in full, such as `1 h 30 min`, `26 h` or `2 days`."""
    days, rest = divmod(minutes, _DAY // _MINUTE)
    if days > 1 and not rest:
        return _span(minutes * _MINUTE)
    hours, rest = divmod(minutes, _HOUR // _MINUTE)
    parts = [_("%(number)s h") % {"number": hours}] if hours else []
    return " ".join([*parts, *([_span(rest * _MINUTE)] if rest else [])])


@register.filter
def usd(amount: Decimal | float) -> str:
    """An amount in dollars: cents, and at least two significant digits below a dollar."""
    exact = Decimal(str(amount))
    if abs(exact) >= 1 or not exact:
        return f"${exact:,.2f}"
    written = f"{exact:.{max(2, 1 - exact.adjusted())}f}"
    whole, _, part = written.partition(".")
    return f"${whole}.{part.rstrip('0').ljust(2, '0')}"


@register.filter
def names(users: Iterable[User]) -> str:
    """The names of these users, separated by commas."""
    return ", ".join(user.display_name for user in users)


@register.filter
def initials(name: str) -> str:
    """Two letters of a name of several words, else its first letter."""
    words = name.split()
    if len(words) > 1:
        return (words[0][:1] + words[-1][:1]).upper()
    return name[:1].upper()


@register.filter
def seen(text: object) -> str:
    """Untrusted text with hidden and look-alike characters made visible."""
    return escape_confusables(str(text))


@register.filter
def hides(text: str) -> bool:
    """True if the text contains hidden or look-alike characters."""
    return escape_confusables(text) != text


@register.filter
def shown(value: object) -> str:
    """A value of any shape on one line: texts as they are, anything else as JSON."""
    return escape_confusables(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


@register.filter
def pairs(values: object) -> list[tuple[str, object]]:
    """The items of a mapping, even if it has a key named `items`."""
    return list(values.items()) if isinstance(values, Mapping) else []


@register.filter
def seconds(number: float) -> str:
    """A duration in seconds: with tenths below ten seconds."""
    return _("%(number)s s") % {"number": number_format(number, 1)} if number < 9.95 else _span(int(number + 0.5))


@register.filter
def percent(share: float) -> str:
    whole = f"{share * 100:.0f}\N{NO-BREAK SPACE}%"
    return whole if share == 0 or share >= 0.01 else _("under %(share)s") % {"share": "1\N{NO-BREAK SPACE}%"}


@register.filter
def bar_width(share: float) -> str:
    """The width of a bar for this share, from 0 to 100, with a decimal point in every language."""
    return str(share_width(share))


@register.filter
def typed(number: Decimal) -> str:
    """An amount as it is typed into a form: with a decimal point in every language."""
    return f"{number:f}"


register.filter(inline_label)


_GOAL_STATUS = {
    WorkItemStatus.PENDING: pgettext_lazy("a goal", "not checked yet"),
    WorkItemStatus.HEALTHY: pgettext_lazy("a goal", "healthy"),
    WorkItemStatus.FAILED: pgettext_lazy("a goal", "not met yet"),
    WorkItemStatus.BLOCKED: pgettext_lazy("a goal", "ended"),
}


@register.filter
def work_state(item: WorkItem) -> SafeString:
    """The status of a work item as a mark in its colour."""
    status = "expired" if item.reason == WorkReason.EXPIRED else item.status
    return format_html('<span class="state {}">{}</span>', status, status_in_words(item))


def status_in_words(item: WorkItem) -> str:
    """The status of a work item; pending items say what they wait for.

    A goal with failed checks continues, so it reads as not met yet. What was not decided in time, such as an offer to
    undo, was blocked by nothing and reads as expired.
    """
    if item.reason == WorkReason.EXPIRED:
        return pgettext("work", "expired")
    if item.type == WorkItemType.GOAL and item.status == WorkItemStatus.PENDING and item.due_at is None:
        return pgettext("a goal", "active")
    if item.type == WorkItemType.GOAL and item.status in _GOAL_STATUS:
        return str(_GOAL_STATUS[WorkItemStatus(item.status)])
    if item.status != WorkItemStatus.PENDING:
        return inline_label(item.get_status_display())
    return _("queued") if item.is_part or item.approval_token_id else _("waiting for approval")


@register.filter
def times(count: object) -> range:
    return range(int(str(count or 0)))


@register.filter
def host(address: str) -> str:
    return urlsplit(address).hostname or ""


@register.filter
def threshold(key: str) -> str:
    """The name of an autonomy setting."""
    return str(_THRESHOLDS.get(key, key))


_THRESHOLDS = {
    "standing.scope": gettext_lazy("Action, and values that may vary"),
    "standing.max_executions": gettext_lazy("Executions before it asks again"),
    "standing.expires_at": gettext_lazy("Days until it ends"),
    "batch_review.default_size": gettext_lazy("Items in a batch"),
    "batch_review.confidence.high_min": gettext_lazy("Minimum confidence for a batch"),
}


@register.filter
def limits(payload: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The limits of a budget, before and after the change."""
    before, after = payload["before"], payload["after"]
    return [
        {"name": name, "before": before.get(name, _("none")), "after": value, "changed": before.get(name) != value}
        for name, value in after.items()
    ]


@register.filter
def verdict(card: Card) -> str:
    """The answer to a decided card: one word, or the label of the chosen button."""
    answer = presenter.answer_in_words(card)
    return answer[:1].upper() + answer[1:]


@register.filter
def decline_reason(card: Card) -> str:
    """Why a declined card was declined."""
    return escape_confusables(presenter.decline_reason(card))


@register.filter
def decision_message(card: Card) -> str:
    """The message after a decision."""
    return escape_confusables(presenter.decision_message(card))


@register.filter
def markdown(text: str) -> SafeString:
    """Markdown of the bot or a colleague as clean HTML without links."""
    return mark_safe(render_for_staff(text))  # noqa: S308 (cleaned by nh3)


@register.filter
def pretty(value: object) -> str:
    """A payload as indented JSON."""
    return escape_confusables(json.dumps(value, indent=2, ensure_ascii=False, sort_keys=True))


@register.filter
def humane(code: str) -> str:
    return escape_confusables(str(code).replace("_", " "))


@register.filter
def code_label(code: str) -> str:
    """A stored code as its label; a code without a label in plain words."""
    return labels.code_label(code) or humane(code)


@register.filter
def stored(text: object) -> str:
    """The product's own stored text in the reader's language; any other text as it is."""
    return show_stored(text)


@register.filter
def is_exact(fact: Mapping[str, str]) -> bool:
    """Whether a card's fact quotes a text exactly, so that it is shown with its lines and on every screen."""
    return fact["label"] == EXACT_TEXT and bool(fact.get("text"))


@register.filter
def fact_text(fact: Mapping[str, str]) -> str:
    """The text of a card's fact. A text that is quoted exactly is not translated."""
    return fact["text"] if is_exact(fact) else show_stored(fact["text"])


@register.filter
def record_value(value: str) -> str:
    """A value before or after a change, exactly as it is or will be stored; only the platform's word for none is
    translated."""
    return show_stored(value) if value == NO_PERMISSION else value


@register.filter
def thousands(number: int) -> str:
    return number_format(number, force_grouping=True)
