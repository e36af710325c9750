"""Tell members how their tasks ended and that something of the company's was set aside, and note that they read it.

One notice an occasion: a later session of it takes the place of the former and is new again. Of what was set aside one
of each kind is unread at a time, for its member or for all owners, and counts how often. Every bad end is owed as a
letter too, for whoever chose alerts (`autonomy.mail_delivery`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models.functions import Now
from django.urls import reverse

from apps.autonomy import queries
from apps.autonomy.models import AutonomousSession, Notification, Trigger
from apps.autonomy.services.outbox import enqueue_notice_email
from apps.bus.enums import SetAside
from kernel.errors import NotFound

# Beside the reasons for which a session ends: its task failed too often; a limit of the company lets it not begin yet.
SET_ASIDE, WAITS_FOR_LIMIT = "set_aside", "waits_for_limit"


def notify_of_session(session: AutonomousSession, *, reason: str, counts: Mapping[str, int] | None = None) -> None:
    """Tell the task's owner of this session, once: what they know of it already is not told again."""
    owner_id = session.task.owner_id
    if owner_id is None:
        return
    row = Notification(user_id=owner_id, session=session, root_id=session.origin, reason=reason[:60])
    row.counts = dict(counts or {"failed": 1})
    if Notification.objects.bulk_create([row], ignore_conflicts=True) and _is_stored(row):
        _owe_letter(row)
        return
    known = Notification.objects.filter(user_id=owner_id, root_id=session.origin)
    if counts is not None:
        known.filter(session=session).update(counts=row.counts)
    changed = known.exclude(session=session, reason=row.reason).update(
        session=session, reason=row.reason, counts=row.counts, created_at=Now(), read_at=None, card_id=None
    )
    if changed:
        row.pk = known.values_list("pk", flat=True).get()
        _owe_letter(row)


def _is_stored(row: Notification) -> bool:
    return bool(Notification.objects.filter(pk=row.pk).exists())


def notify_of_trigger(trigger: Trigger, *, reason: str) -> None:
    """A trigger switched itself off: nothing begins by it any more."""
    if trigger.task.owner_id is not None:
        row = Notification.objects.create(user_id=trigger.task.owner_id, trigger=trigger, reason=reason[:60])
        _owe_letter(row)


def notify_of_set_aside(what: SetAside, actor: str) -> None:
    """Something was set aside: the member who wanted it is told, or the company's owners."""
    user_id = _user_in(actor)
    row = Notification(user_id=user_id, about=what, counts={"times": 1})
    if Notification.objects.bulk_create([row], ignore_conflicts=True) and _is_stored(row):
        _owe_letter(row)
        return
    unread = Notification.objects.filter(user_id=user_id, about=what, read_at=None)
    for known in unread.select_for_update(no_key=True):
        known.counts = {"times": known.counts.get("times", 0) + 1}
        known.save(update_fields=["counts"])


def _user_in(actor: str) -> UUID | None:
    kind, _, name = actor.partition(":")
    try:
        return UUID(name) if kind == "user" else None
    except ValueError:
        return None


def _owe_letter(row: Notification) -> None:
    """Of a result that came as it should its own route says whether a letter leaves."""
    if row.session_id is None or row.reason:
        enqueue_notice_email(row)


def attach_card(session: AutonomousSession, card_id: UUID) -> None:
    """Where the limit that stopped this session can be raised."""
    Notification.objects.filter(session=session).update(card_id=card_id)


def mark_read(notice_id: UUID, *, user: Any) -> Notification:
    """Raises `NotFound` for anybody else's."""
    mine = queries.notices_for(user).filter(pk=notice_id)
    mine.filter(read_at=None).update(read_at=Now())
    notice = mine.select_related("trigger__task", "session__task").first()
    if notice is None:
        raise NotFound("notice")
    return notice


def mark_all_read(*, user: Any) -> int:
    return int(queries.notices_for(user).filter(read_at=None).update(read_at=Now()))


def unread_count(user: Any) -> int:
    return int(queries.notices_for(user).filter(read_at=None).count())


# What happened and what to press, by the reason of a notice. Of a result that came as it should there is only a button.
_ENDED = {
    "cost_cap_reached": "Stopped: its spending limit is reached",
    "budget_tokens": "Stopped: its limit of model tokens is reached",
    "budget_tool_calls": "Stopped: its limit of calls is reached",
    "budget_wall_clock": "Stopped: its time limit is reached",
    "global_daily": "Stopped: the company's daily limit is reached",
    "global_monthly": "Stopped: the company's monthly limit is reached",
    "waits_for_limit": "Waiting: a limit of the company is reached",
    "worker_lost": "Failed: its worker was lost",
    "set_aside": "Set aside after too many failures",
    "idle_timeout": "Stopped: it did nothing for too long",
    "external_halt": "Stopped by a person",
    "tool_not_granted": "Failed: it wanted a tool that it may not use",
    "approval_missing": "Stopped: what it led to was not approved",
    "failed": "Failed",
    "cancelled": "Canceled: it may not run any more",
}
_SPENDING = ("global_daily", "global_monthly", WAITS_FOR_LIMIT)
# What to press about what was set aside, and the page that it leads to. Every kind has its line.
PLACES: dict[SetAside, tuple[str, str]] = {
    SetAside.MESSAGE: ("Try it again or drop it", "console-queues"),
    SetAside.WORK: ("View work", "console-work"),
    SetAside.DOCUMENT: ("View documents", "console-knowledge"),
    SetAside.SKILL: ("View skills", "console-skills"),
    SetAside.TOOL_SERVER: ("View tool servers", "console-tool-servers"),
    SetAside.WEBHOOK: ("View webhooks", "console-autonomy"),
    SetAside.TRANSCRIPT: ("View activity", "console-activity"),
}


@dataclass(frozen=True)
class Line:
    """One notice as a person reads it: of what, what happened, what to press and where that leads."""

    notice: Notification
    title: str
    ended: str
    button: str
    path: str


def line_for(notice: Notification) -> Line:
    if notice.about:
        what = SetAside(notice.about)
        button, page = PLACES[what]
        return Line(notice, str(what.label), "", button, reverse(page))
    if notice.trigger is not None:
        path = reverse("console-task", args=[notice.trigger.task_id])
        return Line(notice, notice.trigger.task.name, "A trigger was switched off", "Open the task", path)
    session = notice.session
    assert session is not None
    ended = _ENDED.get(notice.reason) or session.get_status_display()
    if notice.card_id:
        button, path = "Raise the limit and continue", reverse("console-card", args=[notice.card_id])
    elif notice.reason == SET_ASIDE:
        button, path = "Open the task", reverse("console-task", args=[session.task_id])
    elif notice.reason in _SPENDING:
        button, path = "View spending", reverse("console-spending")
    else:
        button, path = "Read what it left", reverse("console-run", args=[session.pk])
    return Line(notice, session.task.name, ended, button, path)
