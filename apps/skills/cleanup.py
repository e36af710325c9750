"""Delete abandoned drafts and unreviewed packages after the company's retention period.

A draft is deleted with all its revisions; what was proposed of it stays. A package that waited is refused and its bytes
are deleted; that it came stays. A step of `bus.retention`.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import QuerySet
from django.db.models.functions import Now

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.skills.enums import PackageState
from apps.skills.models import SkillDraft, SkillPackage
from apps.tenants.queries import retention
from kernel.clock import now

BATCH = 50


def delete_batch() -> bool:
    """Delete what one short transaction can, inside a scope; True when there may be more."""
    days = retention().skills
    if days is None:
        return False
    before = now() - timedelta(days=days)
    due = _lock_due(SkillDraft.objects.filter(updated_at__lt=before).order_by("updated_at"))
    SkillDraft.objects.filter(pk__in=due).delete()
    counts = {"drafts": len(due), "packages": _refuse_packages(before)}
    for kind, count in counts.items():
        if count:
            record(AuditEvent.RETENTION_SWEPT, data={"kind": kind, "count": count})
    return BATCH in counts.values()


def _refuse_packages(before: datetime) -> int:
    waiting = SkillPackage.objects.filter(state=PackageState.WAITING, created_at__lt=before)
    due = _lock_due(waiting.order_by("created_at"))
    refused = {"state": PackageState.REFUSED, "content": None, "ended_at": Now()}
    SkillPackage.objects.filter(pk__in=due).update(**refused)
    return len(due)


def _lock_due(rows: QuerySet[SkillDraft] | QuerySet[SkillPackage]) -> list[UUID]:
    """Lock the rows; those that another transaction holds are left for the next time."""
    return list(rows.select_for_update(skip_locked=True, no_key=True).values_list("pk", flat=True)[:BATCH])
