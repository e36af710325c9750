"""Lock a run, then its budgets by id. Locks are held for one short transaction, never during a dispatch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from uuid import UUID

from django.conf import settings
from django.db import connection
from django.db.models.functions import Now

from apps.bus.queries import is_lease_held
from apps.guard import rules
from apps.guard.enums import OnLimit, Period
from apps.guard.models import Budget, GuardedRun
from apps.guard.schemas import ZERO, BudgetFacts, BudgetRow, RunFacts, RunRef
from apps.tenants.models import Tenant
from kernel.errors import NotFound
from kernel.language import gettext
from kernel.tenancy import current_tenant_id

# The run, what is paused and in which windows a limit was reached, the tenant's spending policy, and the database's
# time: one statement, so that the rules judge one moment.
_LOCK = """
    SELECT run.*, statement_timestamp() AS read_at, tenant.timezone, policy.on_limit, policy.visitor_daily_usd,
           ARRAY(SELECT control.pause FROM guard_systemcontrol control WHERE control.tenant_id = run.tenant_id
                 AND (control.deployment_id IS NULL OR control.deployment_id = run.deployment_id)) AS paused,
           ARRAY(SELECT budget.period || ' ' || budget.paused_in FROM guard_budget budget
                 WHERE budget.tenant_id = run.tenant_id AND budget.paused_in IS NOT NULL
                 AND budget.ref IN (run.tenant_id, run.deployment_id)) AS reached
    FROM guard_guardedrun run JOIN tenants_tenant tenant ON tenant.id = run.tenant_id
         LEFT JOIN guard_spendingpolicy policy ON policy.tenant_id = run.tenant_id
    WHERE run.tenant_id = %s AND run.id = %s FOR NO KEY UPDATE OF run
"""
# Budgets are found by the ids of their holders and locked in the order of their own ids.
_BUDGETS = """
    SELECT budget.id, budget.ref, budget.deployment_id, budget.visitor_ref, budget.task_ref, budget.period,
           budget.window_start, budget.spent, budget.reserved, budget.limit_usd, budget.alerted, budget.paused_in
    FROM guard_budget budget
"""
_LOCK_BUDGETS = f"""
    {_BUDGETS}
    WHERE budget.tenant_id = %(tenant)s AND budget.ref = ANY(ARRAY(
        SELECT unnest(ARRAY[run.tenant_id, run.deployment_id, run.task_ref, %(visitor)s::uuid])
        FROM guard_guardedrun run WHERE run.tenant_id = %(tenant)s AND run.id = %(run)s
    ))
    ORDER BY budget.id FOR NO KEY UPDATE
"""  # noqa: S608  (our own column names)
# The budgets that a call reserved from, when it is settled.
LOCK_BUDGETS_BY_ID = f"{_BUDGETS} WHERE budget.id = ANY(%s::uuid[]) ORDER BY budget.id FOR NO KEY UPDATE"
_ROOM = "SELECT guard_platform_room(%s, (statement_timestamp() AT TIME ZONE %s)::date)"


@dataclass(frozen=True)
class LockedRun:
    """A run under its row lock, and the facts that the rules need. `budget_refs` are the ids by which its budgets are
    found, `visitor_limit` is what each visitor may cost a day in US dollars."""

    row: GuardedRun
    facts: RunFacts
    budget_refs: tuple[UUID, ...]
    visitor_limit: Decimal | None = None


def lock_run(ref: RunRef) -> LockedRun:
    """Lock the run and read the facts about it, then whether its lease is held. Raises `NotFound` for a run of another
    tenant."""
    row = next(iter(GuardedRun.objects.raw(_LOCK, [current_tenant_id(), ref.run_id])), None)
    if row is None:
        raise NotFound(gettext("run"))
    day = rules.local_day(row.timezone, row.read_at)
    facts = RunFacts(
        origin=row.origin,
        critical=row.critical,
        phase=row.phase,
        status=row.status,
        halt_state=row.halt_state,
        lease_held=is_lease_held(ref.lease) if ref.lease else True,
        pauses=frozenset(row.paused),
        allow=None if row.allow is None else frozenset(row.allow),
        deny=frozenset(row.deny),
        limits=row.frozen_limits,
        calls=row.calls,
        tokens=row.input_tokens + row.output_tokens,
        committed=row.cost_total + row.cost_reserved,
        seconds=(row.read_at - row.started_at).total_seconds(),
        now=row.read_at,
        approval=ref.approval,
        marked=rules.is_marked(row.origin, row.content_marks, marked_turn=row.marked_turn, turn=ref.turn),
        limit_paused=rules.current_pause(map(_parse_reached, row.reached), day),
        on_limit=row.on_limit or OnLimit.PAUSE_ALL,
        day=day,
    )
    holders = (row.tenant_id, row.deployment_id, row.task_ref, ref.visitor)
    budget_refs = tuple(holder for holder in holders if holder)
    return LockedRun(row, facts, budget_refs, row.visitor_daily_usd)


def _parse_reached(text: str) -> tuple[str, date]:
    period, window = text.split()
    return period, date.fromisoformat(window)


def current_days() -> tuple[date, date]:
    """Return the tenant's calendar day and the installation's, by the database's clock."""
    zone, now = Tenant.objects.annotate(db_now=Now()).values_list("timezone", "db_now").get(pk=current_tenant_id())
    return rules.local_day(zone, now), platform_day(now)


def platform_day(now: datetime) -> date:
    return rules.local_day(settings.TIME_ZONE, now)


@dataclass(frozen=True)
class LockedBudgets:
    """`rows` as stored and `facts` in their current windows, in the same order. `platform` is the period of the
    installation's own budget that has no room for the estimate, or ""."""

    rows: tuple[BudgetRow, ...]
    facts: tuple[BudgetFacts, ...]
    platform: str


def lock_budgets(run: LockedRun, ref: RunRef, estimate: Decimal) -> LockedBudgets:
    """Lock every budget that the run spends from, in the order of their ids, then check the installation's own.

    Creates the budget of a visitor who costs something for the first time, if the tenant limits visitors.
    """
    rows = _locked_budgets(ref)
    if ref.visitor and run.visitor_limit is not None and not any(row.visitor_ref == ref.visitor for row in rows):
        Budget.objects.bulk_create([Budget(visitor_ref=ref.visitor, period=Period.DAY)], ignore_conflicts=True)
        rows = _locked_budgets(ref)
    with connection.cursor() as cursor:
        cursor.execute(_ROOM, [estimate, settings.TIME_ZONE])
        (platform,) = cursor.fetchone()
    facts = tuple(_budget_facts(row, run.facts.day, run.visitor_limit) for row in rows)
    return LockedBudgets(tuple(rows), facts, platform)


def _locked_budgets(ref: RunRef) -> list[BudgetRow]:
    values = {"tenant": current_tenant_id(), "run": ref.run_id, "visitor": ref.visitor}
    with connection.cursor() as cursor:
        cursor.execute(_LOCK_BUDGETS, values)
        return [BudgetRow(*row) for row in cursor.fetchall()]


def windows_for(budget_refs: Iterable[UUID], day: date) -> tuple[tuple[UUID, date], ...]:
    """Return the budgets, with windows, that a charge of that day belongs to; for a call that reserved nothing."""
    rows = Budget.objects.filter(ref__in=list(budget_refs)).order_by("pk").values_list("pk", "period", "window_start")
    return tuple((pk, rules.current_window(period, day, begun)) for pk, period, begun in rows)


def _budget_facts(row: BudgetRow, day: date, visitor_limit: Decimal | None) -> BudgetFacts:
    window = rules.current_window(row.period, day, row.window_start)
    spent, reserved = (row.spent, row.reserved) if row.window_start == window else (ZERO, ZERO)
    return BudgetFacts(
        budget_id=row.budget_id,
        holder=rules.holder_of(row.deployment_id, row.visitor_ref, row.task_ref),
        ref=row.ref,
        window=window,
        period=row.period,
        limit=visitor_limit if row.limit_usd is None else row.limit_usd,
        spent=spent,
        committed=spent + reserved,
        paused=row.paused_in == window,
        alerted=row.alerted if row.window_start == window else 0,
    )
