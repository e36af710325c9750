"""Abandoned drafts and unreviewed packages are kept only for the company's retention period."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from apps.audit.enums import AuditEvent
from apps.audit.models import AuditEntry
from apps.skills import cleanup
from apps.skills.enums import PackageState
from apps.skills.models import DraftRevision, SkillDraft, SkillPackage
from apps.tenants.models import Retention
from kernel.clock import now
from kernel.tenancy import tenant_scope
from tests.factories.upkeep import clean_up

AGO = timedelta(days=11)


def leave_lying(tenant: Any) -> None:
    """A draft and a package of eleven days ago, and a package that was accepted then."""
    named = {"name": "parcel-count", "number": 1, "digest": "d", "public_key": "k", "publisher": "Acme", "by": "user:1"}
    with tenant_scope(tenant):
        draft = SkillDraft.objects.create(name="parcel-count", wish="Count parcels", by="user:1")
        DraftRevision.objects.create(draft=draft, number=1, files={"SKILL.md": "x"}, written_by="person")
        SkillPackage.objects.create(content=b"x", **named)
        SkillPackage.objects.create(state=PackageState.TAKEN, **named)
        SkillDraft.objects.update(created_at=now() - AGO, updated_at=now() - AGO)
        SkillPackage.objects.update(created_at=now() - AGO)


def keep(tenant: Any, days: int) -> None:
    with tenant_scope(tenant):
        Retention.objects.create(skill_days=days)


def left(tenant: Any) -> tuple[int, int, list[str], list[bool]]:
    with tenant_scope(tenant):
        packages = SkillPackage.objects.order_by("state")
        return (
            SkillDraft.objects.count(),
            DraftRevision.objects.count(),
            [each.state for each in packages],
            [each.content is not None for each in packages],
        )


GONE = (0, 0, ["refused", "taken"], [False, False])
KEPT = (1, 1, ["taken", "waiting"], [False, True])


@pytest.mark.parametrize(("days", "there"), [(10, GONE), (12, KEPT), (None, KEPT)])
def test_what_lies_is_kept_for_the_companys_days(tenant: Any, days: int | None, there: Any) -> None:
    leave_lying(tenant)
    if days:
        keep(tenant, days)
    clean_up(tenant)
    assert left(tenant) == there


def test_draft_that_somebody_went_on_with_is_kept(tenant: Any) -> None:
    leave_lying(tenant)
    keep(tenant, 10)
    with tenant_scope(tenant):
        SkillDraft.objects.update(updated_at=now())
    clean_up(tenant)
    assert left(tenant)[:2] == (1, 1)


def test_another_companys_are_kept(tenant: Any, other_tenant: Any) -> None:
    keep(tenant, 1)
    leave_lying(other_tenant)
    clean_up(tenant)
    assert left(other_tenant) == KEPT


def test_sweep_goes_in_bounded_steps_and_is_written_down_by_counts(
    tenant: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cleanup, "BATCH", 2)
    keep(tenant, 10)
    for _ in range(3):
        leave_lying(tenant)
    clean_up(tenant)
    with tenant_scope(tenant):
        rows = AuditEntry.objects.filter(event=AuditEvent.RETENTION_SWEPT).order_by("seq")
        told = [(data["kind"], data["count"]) for data in (json.loads(row.data) for row in rows)]
    assert told == [("drafts", 2), ("packages", 2), ("drafts", 1), ("packages", 1)]
