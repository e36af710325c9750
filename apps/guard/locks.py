"""The guard's row locks: the run first, then budgets by id. Held for one short transaction, never over a dispatch."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from uuid import UUID

from django.db.models import Q
from django.db.models.functions import Now

from apps.bus.queries import lease_held
from apps.guard import rules
from apps.guard.models import Budget, GuardedRun
from apps.guard.schemas import ZERO, BudgetFacts, RunFacts, RunRef
from apps.tenants.models import Tenant
from kernel.errors import NotFound
from kernel.tenancy import current_tenant_id

# Written by hand because it is on every call's way: the run, what is paused, and the database's time, in one statement.
_LOCK = """
    SELECT run.*, statement_timestamp() AS db_now,
           ARRAY(SELECT control.pause FROM guard_systemcontrol control WHERE control.tenant_id = run.tenant_id
                 AND (control.deployment_id IS NULL OR control.deployment_id = run.deployment_id)) AS pauses
    FROM guard_guardedrun run WHERE run.tenant_id = %s AND run.id = %s FOR NO KEY UPDATE OF run
"""


@dataclass(frozen=True)
class LockedRun:
    """A run under its row lock, and what the rules need to know of it."""

    row: GuardedRun
    facts: RunFacts


def lock_run(ref: RunRef) -> LockedRun:
    """One statement, and one more where a lease has to hold. Raises `NotFound` for a run that is not this tenant's."""
    row: GuardedRun | None = next(iter(GuardedRun.objects.raw(_LOCK, [current_tenant_id(), ref.run_id])), None)
    if row is None:
        raise NotFound("run")
    return LockedRun(row, _facts(row, held=ref.lease is None or lease_held(ref.lease)))


def _facts(row: GuardedRun, *, held: bool) -> RunFacts:
    now: datetime = row.db_now  # type: ignore[attr-defined]
    return RunFacts(
        origin=row.origin,
        phase=row.phase,
        status=row.status,
        halt_state=row.halt_state,
        lease_held=held,
        pauses=frozenset(row.pauses),  # type: ignore[attr-defined]
        allow=None if row.allow is None else frozenset(row.allow),
        deny=frozenset(row.deny),
        limits=row.frozen_limits,
        approval=row.approved,
        calls=row.calls,
        tokens=row.input_tokens + row.output_tokens,
        committed=row.cost_total + row.cost_reserved,
        seconds=(now - row.started_at).total_seconds(),
        now=now,
    )


def tenant_day() -> date:
    """The tenant's calendar day, by the database's clock."""
    zone, now = Tenant.objects.annotate(db_now=Now()).values_list("timezone", "db_now").get(pk=current_tenant_id())
    return rules.day_in(zone, now)


def lock_budgets(deployment_id: UUID | None, day: date) -> tuple[BudgetFacts, ...]:
    """Every budget that the deployment spends from, in that day's window."""
    rows = Budget.objects.select_for_update(no_key=True).filter(_spends_from(deployment_id)).order_by("pk")
    return tuple(_budget(row, day) for row in rows)


def windows_of(deployment_id: UUID | None, day: date) -> tuple[tuple[UUID, date], ...]:
    """The budgets that a charge of that day belongs to, for a call that reserved nothing and cost something."""
    rows = Budget.objects.filter(_spends_from(deployment_id)).values_list("pk", "period")
    return tuple((pk, rules.window_start(period, day)) for pk, period in rows)


def _spends_from(deployment_id: UUID | None) -> Q:
    return Q(deployment=None) | Q(deployment=deployment_id)


def _budget(row: Budget, day: date) -> BudgetFacts:
    window = rules.window_start(row.period, day)
    committed = row.spent + row.reserved if row.window_start == window else ZERO
    return BudgetFacts(row.pk, window, row.period, row.limit_usd, committed)
