"""Notify members how their tasks ended and that something of the company's was set aside, and mark notices as read.

There is one notice for each occasion: a later session replaces the earlier one and makes it unread again. Of things set
aside, one notice of each kind is unread at a time, for its member or for all owners, and counts how often. Every bad
end is also sent by email to members who chose alerts (`mail_delivery`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from django.db.models import Q
from django.db.models.functions import Now
from django.urls import reverse
from django.utils.functional import Promise

from apps.autonomy import queries
from apps.autonomy.models import AutonomousSession, Notification, Trigger
from apps.autonomy.services.outbox import enqueue_notice_email
from apps.bus.enums import SetAside
from apps.tenants.models import User
from kernel.errors import NotFound
from kernel.ids import parse_id
from kernel.language import gettext, gettext_lazy

# Reasons of notices beside those for which sessions end: the task failed too often; a company limit delays the start.
SET_ASIDE, WAITS_FOR_LIMIT = "set_aside", "waits_for_limit"


def notify_of_session(session: AutonomousSession, *, reason: str, counts: Mapping[str, int] | None = None) -> None:
    """Notify the task's owner of this session; a notice that they have already is not repeated."""
    owner_id = session.task.owner_id
    if owner_id is None:
        return
    row = Notification(user_id=owner_id, session=session, root_id=session.origin, reason=reason[:60])
    row.counts = dict(counts or {"failed": 1})
    if _insert(row):
        _enqueue_email(row)
        return
    existing = Notification.objects.filter(user_id=owner_id, root_id=session.origin)
    if counts is not None:
        existing.filter(session=session).update(counts=row.counts)
    changed = existing.exclude(session=session, reason=row.reason).update(
        session=session, reason=row.reason, counts=row.counts, created_at=Now(), read_at=None, card_id=None
    )
    if changed:
        row.pk = existing.values_list("pk", flat=True).get()
        _enqueue_email(row)


def _insert(row: Notification) -> bool:
    """Whether the row was new. `bulk_create` does not say so when it ignores conflicts, hence the second query."""
    Notification.objects.bulk_create([row], ignore_conflicts=True)
    return bool(Notification.objects.filter(pk=row.pk).exists())


def notify_of_trigger(trigger: Trigger, *, reason: str) -> None:
    """Notify the task's owner that a trigger was disabled."""
    if trigger.task.owner_id is not None:
        row = Notification.objects.create(user_id=trigger.task.owner_id, trigger=trigger, reason=reason[:60])
        _enqueue_email(row)


def notify_of_set_aside(what: SetAside, actor: str) -> None:
    """Notify the member who caused it, or the company's owners, that something was set aside."""
    user_id = _user_id(actor)
    row = Notification(user_id=user_id, about=what, counts={"times": 1})
    if _insert(row):
        _enqueue_email(row)
        return
    unread = Notification.objects.filter(Q(user_id=user_id), about=what, read_at=None)
    for notice in unread.select_for_update(no_key=True):
        notice.counts = {"times": notice.counts.get("times", 0) + 1}
        notice.save(update_fields=["counts"])


def _user_id(actor: str) -> UUID | None:
    kind, _, name = actor.partition(":")
    return parse_id(name) if kind == "user" else None


def _enqueue_email(row: Notification) -> None:
    """For a bad end only: whether a good result is emailed is up to the task's route."""
    if row.session_id is None or row.reason:
        enqueue_notice_email(row)


def attach_card(session: AutonomousSession, card_id: UUID) -> None:
    """Link the notice to the card on which the limit that stopped this session can be raised."""
    Notification.objects.filter(session=session).update(card_id=card_id)


def mark_read(notice_id: UUID, *, user: User) -> Notification:
    """Raises `NotFound` for a notice of another member."""
    rows = queries.notices_for(user).filter(pk=notice_id)
    rows.filter(read_at=None).update(read_at=Now())
    notice = rows.select_related("trigger__task", "session__task").first()
    if notice is None:
        raise NotFound()
    return notice


def mark_all_read(*, user: User) -> int:
    return int(queries.notices_for(user).filter(read_at=None).update(read_at=Now()))


def unread_count(user: User) -> int:
    return int(queries.notices_for(user).filter(read_at=None).count())


# What happened, by the reason of a notice. A notice of a good result has no such line.
_ENDED = {
    "cost_cap_reached": gettext_lazy("Stopped: spending limit reached"),
    "budget_tokens": gettext_lazy("Stopped: token limit reached"),
    "budget_tool_calls": gettext_lazy("Stopped: call limit reached"),
    "budget_wall_clock": gettext_lazy("Stopped: time limit reached"),
    "global_daily": gettext_lazy("Stopped: the company's daily limit is reached"),
    "global_monthly": gettext_lazy("Stopped: the company's monthly limit is reached"),
    "waits_for_limit": gettext_lazy("Waiting: a limit of the company is reached"),
    "worker_lost": gettext_lazy("Failed: the worker process was lost"),
    "set_aside": gettext_lazy("Set aside after too many failures"),
    "idle_timeout": gettext_lazy("Stopped: idle for too long"),
    "external_halt": gettext_lazy("Stopped by a person"),
    "tool_not_granted": gettext_lazy("Failed: it tried to use a tool that it isn't allowed to use"),
    "approval_missing": gettext_lazy("Stopped: its change wasn't approved"),
    "failed": gettext_lazy("Failed"),
    "cancelled": gettext_lazy("Canceled: it's no longer allowed to run"),
}
_SPENDING = ("global_daily", "global_monthly", WAITS_FOR_LIMIT)
# For things set aside: the button and the page that it opens. Every kind needs an entry.
PLACES: dict[SetAside, tuple[str | Promise, str]] = {
    SetAside.MESSAGE: (gettext_lazy("Retry or drop it"), "console-queues"),
    SetAside.WORK: (gettext_lazy("View work"), "console-work"),
    SetAside.DOCUMENT: (gettext_lazy("View documents"), "console-knowledge"),
    SetAside.SKILL: (gettext_lazy("View skills"), "console-skills"),
    SetAside.TOOL_SERVER: (gettext_lazy("View tool servers"), "console-tool-servers"),
    SetAside.WEBHOOK: (gettext_lazy("View webhooks"), "console-autonomy"),
    SetAside.TRANSCRIPT: (gettext_lazy("View activity"), "console-activity"),
    SetAside.SLA_MISSED: (gettext_lazy("View overdue conversations"), "console-inbox"),
}
# What the page is asked for.
_QUERIES = {SetAside.SLA_MISSED: "?overdue=1&sort=due"}


@dataclass(frozen=True)
class Line:
    """One notice as shown: its title, what happened, and a button with its path."""

    notice: Notification
    title: str
    ended: str
    button: str
    path: str


def line_for(notice: Notification) -> Line:
    if notice.about:
        what = SetAside(notice.about)
        button, page = PLACES[what]
        return Line(notice, str(what.label), "", str(button), reverse(page) + _QUERIES.get(what, ""))
    if notice.trigger is not None:
        path = reverse("console-task", args=[notice.trigger.task_id])
        return Line(notice, notice.trigger.task.name, gettext("A trigger was turned off"), gettext("Open task"), path)
    session = notice.session
    assert session is not None
    ended = str(_ENDED.get(notice.reason) or session.get_status_display())
    if notice.card_id:
        button, path = gettext("Raise the limit and continue"), reverse("console-card", args=[notice.card_id])
    elif notice.reason == SET_ASIDE:
        button, path = gettext("Open task"), reverse("console-task", args=[session.task_id])
    elif notice.reason in _SPENDING:
        button, path = gettext("View spending"), reverse("console-spending")
    else:
        button, path = gettext("View run"), reverse("console-run", args=[session.pk])
    return Line(notice, session.task.name, ended, button, path)
