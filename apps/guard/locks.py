"""Lock a run, then its budgets by id. Locks are held for one short transaction, never during a dispatch."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import NamedTuple
from uuid import UUID

from django.conf import settings
from django.db.models.functions import Now

from apps.bus.queries import lease_held
from apps.guard import rules
from apps.guard.enums import OnLimit, Period
from apps.guard.models import Budget
from apps.guard.schemas import Admitted, BudgetFacts, Limits, RunFacts, RunRef
from apps.tenants.models import Tenant
from kernel.errors import NotFound
from kernel.tenancy import Read, current_tenant_id, read_together


class LockedRun(NamedTuple):
    """A row of `_LOCK`: what a call needs of its run. JSON columns are text."""

    pk: UUID
    tenant_id: UUID
    deployment_id: UUID | None
    task_ref: UUID | None
    origin: str
    critical: bool
    phase: str
    status: str
    halt_state: str
    allow: str | None
    deny: str
    limits: str
    seq: int
    calls: int
    tokens: int
    committed: Decimal
    content_marks: int
    marked_turn: UUID | None
    started_at: datetime
    read_at: datetime
    timezone: str
    on_limit: str | None
    visitor_daily_usd: Decimal | None
    paused: list[str]
    reached: list[str]


# The run, what is paused and in which windows a limit was reached, the tenant's spending policy, and the database's
# time: one statement, so that the rules judge one moment.
_LOCK = """
    SELECT run.id, run.tenant_id, run.deployment_id, run.task_ref, run.origin, run.critical, run.phase, run.status,
           run.halt_state, run.allow, run.deny, run.limits, run.seq, run.calls, run.input_tokens + run.output_tokens,
           run.cost_total + run.cost_reserved, run.content_marks, run.marked_turn, run.started_at,
           statement_timestamp(), tenant.timezone, policy.on_limit, policy.visitor_daily_usd,
           ARRAY(SELECT control.pause FROM guard_systemcontrol control WHERE control.tenant_id = run.tenant_id
                 AND (control.deployment_id IS NULL OR control.deployment_id = run.deployment_id)),
           ARRAY(SELECT budget.period || ' ' || budget.paused_in FROM guard_budget budget
                 WHERE budget.tenant_id = run.tenant_id AND budget.paused_in IS NOT NULL
                 AND budget.ref IN (run.tenant_id, run.deployment_id))
    FROM guard_guardedrun run JOIN tenants_tenant tenant ON tenant.id = run.tenant_id
         LEFT JOIN guard_spendingpolicy policy ON policy.tenant_id = run.tenant_id
    WHERE run.tenant_id = %s AND run.id = %s FOR NO KEY UPDATE OF run
"""
# Budgets are found by the ids of their holders and locked in the order of their own ids.
_COLUMNS = tuple(field.attname for field in Budget._meta.concrete_fields)
_LOCK_BUDGETS = f"""
    SELECT {", ".join(_COLUMNS)} FROM guard_budget
    WHERE tenant_id = %s AND ref = ANY(%s) ORDER BY id FOR NO KEY UPDATE
"""  # noqa: S608  (our own column names)
_LOCK_RUN_AGAIN = "SELECT FROM guard_guardedrun WHERE id = %s FOR NO KEY UPDATE"
_ROOM = "SELECT guard_platform_room(%s, (statement_timestamp() AT TIME ZONE %s)::date)"


def lock_run(ref: RunRef) -> tuple[LockedRun, RunFacts]:
    """Lock the run and read the facts about it, then whether its lease is held: one round trip. Raises `NotFound` for a
    run of another tenant."""
    runs = Read(_LOCK, [current_tenant_id(), ref.run_id], lambda rows: [LockedRun(*row) for row in rows])
    # A worker whose lease expired may still run while another repeats its job: only the holder may act.
    lease = [lease_held(ref.lease)] if ref.lease else []
    read_together(runs, *lease)
    if not runs.value:
        raise NotFound()
    (row,) = runs.value
    day = rules.local_day(row.timezone, row.read_at)
    reached = [(period, date.fromisoformat(window)) for period, window in map(str.split, row.reached)]
    facts = RunFacts(
        origin=row.origin,
        critical=row.critical,
        phase=row.phase,
        status=row.status,
        halt_state=row.halt_state,
        lease_held=all(held.value for held in lease),
        pauses=frozenset(row.paused),
        allow=None if row.allow is None else frozenset(json.loads(row.allow)),
        deny=frozenset(json.loads(row.deny)),
        limits=Limits.model_validate_json(row.limits),
        calls=row.calls,
        tokens=row.tokens,
        committed=row.committed,
        seconds=(row.read_at - row.started_at).total_seconds(),
        now=row.read_at,
        approval=ref.approval,
        marked=rules.is_marked(row.origin, row.content_marks, marked_turn=row.marked_turn, turn=ref.turn),
        limit_paused=rules.current_pause(reached, day),
        on_limit=row.on_limit or OnLimit.PAUSE_ALL,
        day=day,
    )
    return row, facts


def current_days() -> tuple[date, date]:
    """Return the tenant's calendar day and the installation's, by the database's clock."""
    zone, now = Tenant.objects.annotate(db_now=Now()).values_list("timezone", "db_now").get(pk=current_tenant_id())
    return rules.local_day(zone, now), platform_day(now)


def platform_day(now: datetime) -> date:
    return rules.local_day(settings.TIME_ZONE, now)


def lock_budgets(
    refs: Sequence[UUID], estimate: Decimal, *, day: date, visitor: UUID | None, visitor_limit: Decimal | None
) -> tuple[list[BudgetFacts], str]:
    """Lock the budgets of these holders, in their windows of `day`, and check the installation's own for the estimate:
    returns also the period of the one that has no room, or "".

    Creates the budget of a visitor who costs something for the first time, if the tenant limits visitors. One round
    trip, unless a visitor's budget has to be there before the installation's are locked.
    """
    budgets = _budgets(refs, day, visitor_limit=visitor_limit)
    room: Read[str] = Read(_ROOM, [estimate, settings.TIME_ZONE], lambda rows: rows[0][0])
    if visitor is None or visitor_limit is None:
        read_together(budgets, room)
    else:
        read_together(budgets)
        if not any(budget.ref == visitor for budget in budgets.value):
            # Two first calls of one visitor may race: the loser inserts nothing, and both then lock the same row.
            Budget.objects.bulk_create([Budget(visitor_ref=visitor, period=Period.DAY)], ignore_conflicts=True)
            budgets = _budgets(refs, day, visitor_limit=visitor_limit)
            read_together(budgets)
        read_together(room)
    return budgets.value, room.value


def lock_budgets_again(admitted: Admitted) -> list[BudgetFacts]:
    """Lock the run of a call that is settled, then the budgets that it reserved from, in the windows of that time; if
    it reserved nothing, all budgets of its holders, in their windows of its `day`. One round trip."""
    day = admitted.day
    assert day is not None
    run = Read(_LOCK_RUN_AGAIN, [admitted.run.run_id], list)
    # A reservation is released from the window that it was made in: after midnight, today's window never held it.
    budgets = _budgets(admitted.budget_refs, day, windows=dict(admitted.windows) if admitted.reserved else None)
    read_together(run, budgets)
    return budgets.value


def _budgets(
    refs: Sequence[UUID],
    day: date,
    *,
    windows: Mapping[UUID, date] | None = None,
    visitor_limit: Decimal | None = None,
) -> Read[list[BudgetFacts]]:
    """Budgets as of their windows of `day` or, with `windows`, those named there, as of these. One whose later window
    has begun is left out: an older movement does not change it."""

    def parse(rows: Sequence[tuple[object, ...]]) -> list[BudgetFacts]:
        found = []
        for row in (Budget.from_db(None, _COLUMNS, values) for values in rows):
            begun = row.window_start
            window = rules.current_window(row.period, day, begun) if windows is None else windows.get(row.pk)
            if window is not None and (begun is None or begun <= window):
                found.append(row.in_window(window, visitor_limit))
        return found

    # All callers lock in this one order, so that two runs which share several budgets cannot deadlock.
    return Read(_LOCK_BUDGETS, [current_tenant_id(), list(refs)], parse)
