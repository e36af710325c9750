"""What was a run opened for, and what may not begin now? Read inside a tenant scope."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from uuid import UUID

from django.db import connection

from apps.guard import rules
from apps.guard.enums import OnLimit, Origin, Pause
from apps.guard.locks import today
from apps.guard.models import Budget, GuardedRun, SpendingPolicy, SystemControl
from apps.guard.schemas import ApprovedCalls, Limits


def was_opened_for(
    run_id: UUID, origin: Origin, owner_ref: UUID, *, limits: Limits, approval: ApprovedCalls | None
) -> bool:
    """Whether this run is the owner's, with exactly these limits and approved calls, and no other's."""
    run = GuardedRun.objects.filter(pk=run_id, origin=origin, owner_ref=owner_ref).first()
    return run is not None and (run.frozen_limits, run.approved) == (limits, approval)


def read_instructions(owner_ref: UUID) -> bool:
    """Whether some call of its runs brought content in which a gate found instructions to the assistant."""
    return bool(GuardedRun.objects.filter(owner_ref=owner_ref, content_marks__gt=0).exists())


@dataclass(frozen=True)
class Pauses:
    """What stands still in this company now: what an administrator paused, and whose limit was reached. None is the
    whole company."""

    controls: Mapping[UUID | None, frozenset[str]] = field(default_factory=dict)
    limits: frozenset[UUID | None] = frozenset()
    on_limit: str = OnLimit.PAUSE_ALL

    def stops(self, deployment_id: UUID, *, critical: bool) -> bool:
        """Whether R5 would refuse the first call of a run that works unattended, so that it need not begin."""
        where = (None, deployment_id)
        if any(rules.is_paused(self.controls.get(each, frozenset()), critical=critical) for each in where):
            return True
        return not self.limits.isdisjoint(where) and rules.is_hard(self.on_limit, critical=critical)


def pauses() -> Pauses:
    """Read anew each time: a limit's pause ends by itself, with its window."""
    controls: dict[UUID | None, frozenset[str]] = {}
    for deployment_id, pause in SystemControl.objects.exclude(pause=Pause.NONE).values_list("deployment_id", "pause"):
        controls[deployment_id] = controls.get(deployment_id, frozenset()) | {pause}
    on_limit = SpendingPolicy.objects.values_list("on_limit", flat=True).first()
    return Pauses(controls, _reached(), on_limit or OnLimit.PAUSE_ALL)


def _reached() -> frozenset[UUID | None]:
    rows = Budget.objects.filter(paused_in__isnull=False, visitor_ref=None, task_ref=None)
    found: list[tuple[UUID | None, str, date]] = list(rows.values_list("deployment_id", "period", "paused_in"))
    if not found:
        return frozenset()
    day = today()[0]
    return frozenset(where for where, period, window in found if rules.present([(period, window)], day))


def tenants_with_lost_calls() -> list[UUID]:
    """The tenants of which a call should have ended by now. Outside of any scope."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT guard_lost_calls()")
        return [tenant_id for (tenant_id,) in cursor.fetchall()]
