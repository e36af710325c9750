"""Since when was a member away? A visit lasts while a page of the console is open, and half an hour beyond.

Open lines and pages without one say that somebody is here; nothing is decided by it, and it is no record of work, so it
stands in a row that is overwritten and not in the log.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.db.models import F

from apps.tenants.models import Visit
from kernel.clock import now

# Whoever was gone for so long comes back to a new visit.
GAP = timedelta(minutes=30)
_OFTEN_ENOUGH = timedelta(minutes=1)


def record_visit(user: Any) -> None:
    """The user is here. A new visit remembers when the one before ended; two at once begin one."""
    at = now()
    found = Visit.objects.filter(user=user).first()
    if found is None:
        Visit.objects.bulk_create([Visit(user=user, since=at, last_at=at)], ignore_conflicts=True)
    elif found.last_at < at - GAP:
        same = Visit.objects.filter(pk=found.pk, last_at=found.last_at)
        same.update(before=F("last_at"), since=at, last_at=at)
    elif found.last_at < at - _OFTEN_ENOUGH:
        Visit.objects.filter(pk=found.pk, last_at__lt=at).update(last_at=at)


def last_visit_ended_at(user: Any) -> datetime | None:
    """When the visit before this one ended; None for somebody who has never been here before."""
    found: Visit | None = Visit.objects.filter(user=user).first()
    if found is None:
        return None
    return found.last_at if found.last_at < now() - GAP else found.before
