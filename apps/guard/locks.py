"""The guard's row locks: the run first, then budgets by id. Held for one short transaction, never over a dispatch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import connection
from django.db.models.functions import Now

from apps.bus.queries import lease_held
from apps.guard import rules
from apps.guard.enums import OnLimit, Period
from apps.guard.models import Budget, GuardedRun
from apps.guard.schemas import ZERO, BudgetFacts, RunFacts, RunRef
from apps.tenants.models import Tenant
from kernel.errors import NotFound
from kernel.tenancy import current_tenant_id
from kernel.tenancy.rows import Question, Rows, ask, first

# Written by hand because it is on every call's way: the run, what is paused and in which windows a limit was reached,
# what the tenant wants of its money, and the database's time, in one statement.
_RUNS = Rows(GuardedRun, alias="run")
_LOCK = f"""
    SELECT statement_timestamp(), tenant.timezone, policy.on_limit, policy.visitor_daily_usd,
           ARRAY(SELECT control.pause FROM guard_systemcontrol control WHERE control.tenant_id = run.tenant_id
                 AND (control.deployment_id IS NULL OR control.deployment_id = run.deployment_id)),
           ARRAY(SELECT budget.period || ' ' || budget.paused_in FROM guard_budget budget
                 WHERE budget.tenant_id = run.tenant_id AND budget.paused_in IS NOT NULL
                 AND budget.ref IN (run.tenant_id, run.deployment_id)),
           {_RUNS.columns}
    FROM guard_guardedrun run JOIN tenants_tenant tenant ON tenant.id = run.tenant_id
         LEFT JOIN guard_spendingpolicy policy ON policy.tenant_id = run.tenant_id
    WHERE run.tenant_id = %s AND run.id = %s FOR NO KEY UPDATE OF run
"""  # noqa: S608  (our own column names)
_BUDGETS = Rows(Budget, alias="budget")
# Found by the ids of whoever the run spends from alone, and locked in the order of their own.
_LOCK_BUDGETS = f"""
    SELECT {_BUDGETS.columns} FROM guard_budget budget
    WHERE budget.tenant_id = %s AND budget.ref = ANY(%s::uuid[]) ORDER BY budget.id FOR NO KEY UPDATE
"""  # noqa: S608  (our own column names)
_ROOM = "SELECT guard_platform_room(%s, %s)"


@dataclass(frozen=True)
class LockedRun:
    """A run under its row lock, and what the rules need to know of it. `spends_from`: the ids by which its budgets are
    found; `visitor_limit`: what each visitor may cost a day."""

    row: GuardedRun
    facts: RunFacts
    spends_from: tuple[UUID, ...]
    visitor_limit: Decimal | None = None


def lock_run(ref: RunRef) -> LockedRun:
    """One statement, and one more where a lease has to hold. Raises `NotFound` for a run that is not this tenant's."""
    with connection.cursor() as cursor:
        cursor.execute(_LOCK, [current_tenant_id(), ref.run_id])
        found = cursor.fetchone()
    if found is None:
        raise NotFound("run")
    now, zone, on_limit, visitor_limit, pauses, reached, *values = found
    row, day = _RUNS.make(values), rules.day_in(zone, now)
    money: dict[str, Any] = {
        "limit_paused": rules.present(map(_reached, reached), day),
        "on_limit": on_limit or OnLimit.PAUSE_ALL,
        "day": day,
    }
    held = ref.lease is None or lease_held(ref.lease)
    facts = _facts(row, now, frozenset(pauses), held=held, money=money)
    return LockedRun(row, facts, _spends_from(row, ref), visitor_limit)


def _spends_from(row: GuardedRun, ref: RunRef) -> tuple[UUID, ...]:
    """Whose budgets a call of this run is paid from: the tenant's, its deployment's, its task's and its visitor's."""
    return tuple(each for each in (row.tenant_id, row.deployment_id, row.task_ref, ref.visitor) if each)


def _reached(said: str) -> tuple[str, date]:
    period, window = said.split()
    return period, date.fromisoformat(window)


def _facts(row: GuardedRun, now: datetime, pauses: frozenset[str], *, held: bool, money: dict[str, Any]) -> RunFacts:
    return RunFacts(
        origin=row.origin,
        critical=row.critical,
        phase=row.phase,
        status=row.status,
        halt_state=row.halt_state,
        lease_held=held,
        pauses=pauses,
        allow=None if row.allow is None else frozenset(row.allow),
        deny=frozenset(row.deny),
        limits=row.frozen_limits,
        approval=row.approved,
        calls=row.calls,
        tokens=row.input_tokens + row.output_tokens,
        committed=row.cost_total + row.cost_reserved,
        seconds=(now - row.started_at).total_seconds(),
        now=now,
        **money,
    )


def today() -> tuple[date, date]:
    """The tenant's calendar day and the installation's, by the database's clock."""
    zone, now = Tenant.objects.annotate(db_now=Now()).values_list("timezone", "db_now").get(pk=current_tenant_id())
    return rules.day_in(zone, now), platform_day(now)


def platform_day(now: datetime) -> date:
    return rules.day_in(settings.TIME_ZONE, now)


def lock_budgets(run: LockedRun, visitor: UUID | None, estimate: Decimal) -> tuple[tuple[BudgetFacts, ...], str]:
    """Every budget that the run spends from, in the present window, and the period of the installation's own that has
    no room for the estimate (or ""). One round trip, in the order of ids, the installation's last; two more when a
    visitor costs something for the first time where each has a limit."""
    held = Question(_LOCK_BUDGETS, [run.row.tenant_id, list(run.spends_from)], _budget_rows)
    room = Question(_ROOM, [estimate, platform_day(run.facts.now)], first)
    rows, platform = ask(held, room)
    if visitor and run.visitor_limit is not None and not any(row.visitor_ref == visitor for row in rows):
        Budget.objects.bulk_create([Budget(visitor_ref=visitor, period=Period.DAY)], ignore_conflicts=True)
        rows, platform = ask(held, room)
    return tuple(_budget(row, run.facts.day, run.visitor_limit) for row in rows), platform


def windows_of(spends_from: Iterable[UUID], day: date) -> tuple[tuple[UUID, date], ...]:
    """The budgets that a charge of that day belongs to, for a call that reserved nothing and cost something."""
    rows = Budget.objects.filter(ref__in=list(spends_from)).order_by("pk").values_list("pk", "period", "window_start")
    return tuple((pk, rules.present_window(period, day, begun)) for pk, period, begun in rows)


def _budget_rows(rows: Iterable[tuple[Any, ...]]) -> list[Budget]:
    return [_BUDGETS.make(values) for values in rows]


def _budget(row: Budget, day: date, visitor_limit: Decimal | None) -> BudgetFacts:
    window = rules.present_window(row.period, day, row.window_start)
    spent, reserved = (row.spent, row.reserved) if row.window_start == window else (ZERO, ZERO)
    limit = visitor_limit if row.limit_usd is None else row.limit_usd
    told = row.alerted if row.window_start == window else 0
    return BudgetFacts(
        budget_id=row.pk,
        holder=row.holder,
        ref=row.ref,
        window=window,
        period=row.period,
        limit=limit,
        spent=spent,
        committed=spent + reserved,
        paused=row.paused_in == window,
        told=told,
    )
