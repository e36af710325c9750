"""How does a member hear how a task of theirs ended, and how does a notice become read?

One notice an occasion: a later session of it takes the place of the former and is new again. Read by the member it is
for, and nobody else; the first time counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.db.models.functions import Now

from apps.autonomy.models import AutonomousSession, Notification, Trigger
from kernel.errors import NotFound

# Beside the reasons for which a session ends: its task failed too often; a limit of the company lets it not begin yet.
SET_ASIDE, WAITS_FOR_LIMIT = "set_aside", "waits_for_limit"


def tell_about(session: AutonomousSession, *, reason: str, counts: Mapping[str, int] | None = None) -> None:
    """Tell the task's owner of this session, once: what they know of it already is not told again."""
    owner_id = session.task.owner_id
    if owner_id is None:
        return
    row = Notification(user_id=owner_id, session=session, root_id=session.origin, reason=reason[:60])
    row.counts = dict(counts or {"failed": 1})
    if Notification.objects.bulk_create([row], ignore_conflicts=True) and _is_stored(row):
        return
    known = Notification.objects.filter(user_id=owner_id, root_id=session.origin)
    if counts is not None:
        known.filter(session=session).update(counts=row.counts)
    known.exclude(session=session, reason=row.reason).update(
        session=session, reason=row.reason, counts=row.counts, created_at=Now(), read_at=None, card_id=None
    )


def _is_stored(row: Notification) -> bool:
    return bool(Notification.objects.filter(pk=row.pk).exists())


def tell_of_trigger(trigger: Trigger, *, reason: str) -> None:
    """A trigger switched itself off: nothing begins by it any more."""
    if trigger.task.owner_id is not None:
        Notification.objects.create(user_id=trigger.task.owner_id, trigger=trigger, reason=reason[:60])


def offer_card(session: AutonomousSession, card_id: UUID) -> None:
    """Where the limit that stopped this session can be raised."""
    Notification.objects.filter(session=session).update(card_id=card_id)


def mark_read(notice_id: UUID, *, user: Any) -> Notification:
    """Raises `NotFound` for anybody else's."""
    mine = Notification.objects.filter(pk=notice_id, user_id=user.pk)
    mine.filter(read_at=None).update(read_at=Now())
    found: Notification | None = mine.select_related("trigger", "session").first()
    if found is None:
        raise NotFound("notice")
    return found


def mark_all_read(*, user: Any) -> int:
    return int(Notification.objects.filter(user_id=user.pk, read_at=None).update(read_at=Now()))


def unread_count(user: Any) -> int:
    return int(Notification.objects.filter(user_id=user.pk, read_at=None).count())
