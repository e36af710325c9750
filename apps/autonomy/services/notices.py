"""How does a notice become read? By the member it is for, and nobody else; the first time counts."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db.models.functions import Now

from apps.autonomy.models import Notification
from kernel.errors import NotFound


def mark_read(notice_id: UUID, *, user: Any) -> Notification:
    """Raises `NotFound` for anybody else's."""
    mine = Notification.objects.filter(pk=notice_id, user_id=user.pk)
    mine.filter(read_at=None).update(read_at=Now())
    found: Notification | None = mine.first()
    if found is None:
        raise NotFound("notice")
    return found


def mark_all_read(*, user: Any) -> int:
    return int(Notification.objects.filter(user_id=user.pk, read_at=None).update(read_at=Now()))


def unread_count(user: Any) -> int:
    return int(Notification.objects.filter(user_id=user.pk, read_at=None).count())
