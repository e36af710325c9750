"""Track members' visits to the console, to show what happened since the last one.

A visit lasts while a page is open, plus half an hour. Sockets and page loads extend it. Nothing is decided by it and it
is no record of working time, so it is one overwritten row and is not audited."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import F

from apps.tenants.models import User, Visit
from kernel.clock import now

# After an absence this long, a new visit starts.
GAP = timedelta(minutes=30)
_UPDATE_EVERY = timedelta(minutes=1)


def record_visit(user: User) -> None:
    """Extend the user's visit, or start a new one that remembers when the previous one ended. Safe for rivals."""
    at = now()
    visit = Visit.objects.filter(user=user).first()
    if visit is None:
        Visit.objects.bulk_create([Visit(user=user, since=at, last_at=at)], ignore_conflicts=True)
    elif visit.last_at < at - GAP:
        # By the time that was read: of two pages at once only one begins the visit.
        same = Visit.objects.filter(pk=visit.pk, last_at=visit.last_at)
        same.update(before=F("last_at"), since=at, last_at=at)
    elif visit.last_at < at - _UPDATE_EVERY:
        Visit.objects.filter(pk=visit.pk, last_at__lt=at).update(last_at=at)


def extend_visits(user_ids: Collection[UUID]) -> None:
    """Extend the visits of those who still have a page open."""
    at = now()
    open_still = Visit.objects.filter(user_id__in=user_ids, last_at__gte=at - GAP, last_at__lt=at - _UPDATE_EVERY)
    open_still.update(last_at=at)


def last_visit_ended_at(user: User) -> datetime | None:
    """When the previous visit ended; None on the first visit."""
    visit: Visit | None = Visit.objects.filter(user=user).first()
    if visit is None:
        return None
    return visit.last_at if visit.last_at < now() - GAP else visit.before
