"""The guard's row locks: the run first, then budgets by id. Held for one short transaction, never over a dispatch."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from uuid import UUID

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import F, OuterRef, Q, Value
from django.db.models.functions import Now

from apps.bus.queries import lease_held
from apps.guard import rules
from apps.guard.models import Budget, GuardedRun, SystemControl
from apps.guard.schemas import ZERO, BudgetFacts, RunFacts, RunRef
from kernel.errors import NotFound


@dataclass(frozen=True)
class LockedRun:
    """A run under its row lock, with what the same statement read: controls, lease, time and the tenant's day."""

    row: GuardedRun
    facts: RunFacts
    day: date


def lock_run(ref: RunRef) -> LockedRun:
    """One statement. Raises `NotFound` for a run that is not this tenant's."""
    controls = SystemControl.objects.filter(Q(deployment=None) | Q(deployment=OuterRef("deployment")))
    row = (
        GuardedRun.objects.select_for_update(of=("self",))
        .filter(pk=ref.run_id)
        .annotate(
            db_now=Now(),
            zone=F("tenant__timezone"),
            pauses=ArraySubquery(controls.values("pause")),
            lease_held=lease_held(ref.lease) if ref.lease else Value(True),
        )
        .first()
    )
    if row is None:
        raise NotFound("run")
    return LockedRun(row, _facts(row), rules.day_in(row.zone, row.db_now))


def _facts(row: GuardedRun) -> RunFacts:
    now: datetime = row.db_now  # type: ignore[attr-defined]
    return RunFacts(
        origin=row.origin,
        phase=row.phase,
        status=row.status,
        halt_state=row.halt_state,
        lease_held=row.lease_held,  # type: ignore[attr-defined]
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


def lock_budgets(run: LockedRun) -> tuple[BudgetFacts, ...]:
    """Every budget that the run spends from, in its present window."""
    rows = Budget.objects.select_for_update().filter(_spends_from(run.row.deployment_id)).order_by("pk")
    return tuple(_budget(row, run.day) for row in rows)


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
