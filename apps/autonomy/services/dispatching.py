"""Which triggers are due, and what becomes of them? Called by the tick, a short transaction a batch.

Always: the next time is computed before anything begins, and stored with the session in one transaction, so that
neither a crash nor a second beat begins it twice; a trigger that cannot be read is switched off and stops nobody else;
what was missed is one run. Rivals pass each other by (`SKIP LOCKED`).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from django.db import connection
from django.db.models import Exists, OuterRef
from django.db.models.functions import Now

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.autonomy import queries, rules
from apps.autonomy.enums import SessionStatus, SpawnRefusal, TriggerKind
from apps.autonomy.models import AutonomousSession, AutonomySettings, Task, Trigger
from apps.autonomy.schemas import Owed, TaskLimits
from apps.autonomy.services import notices, spawning
from apps.autonomy.services.timing import next_due
from kernel.errors import SilasError
from kernel.tenancy import current_tenant_id

BATCH = 250
_SHOWN = 50
_MOVE = """
    UPDATE autonomy_trigger AS t SET next_at = new.next_at, last_at = statement_timestamp()
    FROM unnest(%s::uuid[], %s::timestamptz[]) AS new(id, next_at) WHERE t.id = new.id
"""
_TAKE = """
    WITH gone AS (DELETE FROM autonomy_occurrence WHERE tenant_id = %s AND trigger_id = %s RETURNING *)
    SELECT id, subject FROM gone ORDER BY created_at, id
"""
_HAPPENED = """
    SELECT trigger_id FROM autonomy_occurrence happened WHERE tenant_id = %s AND NOT EXISTS (
        SELECT FROM autonomy_autonomoussession waiting
        WHERE waiting.trigger_id = happened.trigger_id AND status = 'queued' AND admitted_at IS NULL
    ) GROUP BY trigger_id ORDER BY min(created_at) LIMIT %s
"""


@dataclass
class _Consent:
    """Who may begin anything, asked once a batch."""

    settings: AutonomySettings = field(default_factory=queries.settings_of)
    opted: set[UUID] = field(default_factory=set)

    def against(self, task: Task) -> SpawnRefusal | None:
        return rules.may_begin(
            enabled=self.settings.enabled,
            deleted=task.deleted_at is not None,
            quarantined=task.quarantined_at is not None,
            owned=task.owner_id is not None,
            opted_in=task.owner_id in self.opted,
        )


@dataclass(frozen=True)
class Due:
    """A trigger whose time has come, locked, with its task. `waits`: a run of it still waits for its turn; `read_at`:
    when that was, by the database's clock."""

    trigger: Trigger
    waits: bool
    read_at: datetime


def dispatch_due() -> int:
    """Queue what the clock owes; returns how many triggers were looked at. Call again until it is 0."""
    due = due_triggers()
    if not due:
        return 0
    moved = {trigger.pk: at for trigger, at in _next_times(due)}
    _move(moved)
    _begin([each for each in due if each.trigger.pk in moved])
    return len(due)


def due_triggers() -> list[Due]:
    """The most overdue, locked; what a rival holds is passed by."""
    queued = AutonomousSession.objects.filter(trigger=OuterRef("pk"), status=SessionStatus.QUEUED, admitted_at=None)
    triggers = (
        Trigger.objects.filter(enabled=True, deleted_at=None, next_at__lte=Now())
        .select_related("task")
        .annotate(waits=Exists(queued), read_at=Now())
        .order_by("next_at")
        .select_for_update(of=("self",), no_key=True, skip_locked=True)
    )
    return [Due(trigger, trigger.waits, trigger.read_at) for trigger in triggers[:BATCH]]


def _next_times(due: list[Due]) -> list[tuple[Trigger, datetime | None]]:
    """Of those that can be read; the others are switched off with the reason."""
    zone = queries.zone()
    found: list[tuple[Trigger, datetime | None]] = []
    for each in due:
        trigger = each.trigger
        try:
            stopped = trigger.task.deleted_at is not None or trigger.task.quarantined_at is not None
            found.append((trigger, None if stopped else _next(each, zone)))
        except SilasError as unreadable:
            switch_off(trigger, reason=unreadable.code)
        except Exception as error:  # noqa: BLE001 (one trigger's fault must not stop the others)
            switch_off(trigger, reason=type(error).__name__)
    return found


def _next(due: Due, zone: str) -> datetime | None:
    """After now by the database's clock: a worker whose own is late would find the same time due for ever."""
    return next_due(due.trigger, after=due.read_at, zone=zone)


def switch_off(trigger: Trigger, *, reason: str) -> None:
    """Its owner is told, once: of rivals one switches it off."""
    on = Trigger.objects.filter(pk=trigger.pk, enabled=True)
    if not on.update(enabled=False, disabled_reason=reason[:60], next_at=None):
        return
    notices.tell_of_trigger(trigger, reason=reason)
    data = {"reason": reason[:60], "task": str(trigger.task_id)}
    record(AuditEvent.TRIGGER_DISABLED, subject=f"trigger:{trigger.pk}", data=data)


def _move(moved: dict[UUID, datetime | None]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(_MOVE, [list(moved), list(moved.values())])


def _begin(due: list[Due]) -> None:
    """A session for each that may begin. One that still waits for its turn stands for the times missed since."""
    consent = _Consent(opted=queries.opted_in({each.trigger.task.owner_id for each in due}))
    refusals: Counter[tuple[Task, str, SpawnRefusal]] = Counter()
    sessions = []
    for each in due:
        trigger = each.trigger
        refusal = consent.against(trigger.task)
        if refusal is not None:
            refusals[trigger.task, trigger.kind, refusal] += 1
        elif not each.waits:
            assert trigger.next_at is not None
            key = f"{trigger.pk}:{trigger.next_at.isoformat()}"
            params = {"due_at": trigger.next_at.isoformat(), "since": _iso(trigger.last_at)}
            sessions += _readable(trigger, consent.settings, Owed(key, params))
    if sessions:
        spawning.insert(sessions)
    for (task, kind, refusal), times in refusals.items():
        spawning.refused(task, TriggerKind(kind), refusal, times=times)


def _readable(trigger: Trigger, settings: AutonomySettings, owed: Owed) -> list[AutonomousSession]:
    """None where the task's row cannot be read: the trigger is switched off, and the others begin."""
    try:
        return [_session(trigger, settings, owed)]
    except Exception as error:  # noqa: BLE001 (one task's fault must not stop the others)
        switch_off(trigger, reason=type(error).__name__)
        return []


def _session(trigger: Trigger, settings: AutonomySettings, owed: Owed) -> AutonomousSession:
    limits = spawning.frozen_limits(trigger.task, settings, TaskLimits(cost_usd=trigger.cap_usd))
    return spawning.new_session(
        trigger.task,
        kind=TriggerKind(trigger.kind),
        owed=owed,
        limits=limits,
        trigger=trigger,
        requested_by=f"trigger:{trigger.pk}",
    )


def _iso(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()


def happened() -> list[UUID]:
    """The triggers for which something has happened, longest ago first; not those of which a run still waits."""
    with connection.cursor() as cursor:
        cursor.execute(_HAPPENED, [current_tenant_id(), BATCH])
        return [trigger_id for (trigger_id,) in cursor.fetchall()]


def dispatch_happened(trigger_id: UUID) -> int:
    """Make one run of all that happened for this trigger; returns of how much. While such a run still waits for its
    turn, what comes in waits with it."""
    rows = Trigger.objects.select_for_update(of=("self",), skip_locked=True, no_key=True).select_related("task")
    trigger: Trigger | None = rows.filter(pk=trigger_id).first()
    if trigger is None or _has_one_waiting(trigger):
        return 0
    with connection.cursor() as cursor:
        cursor.execute(_TAKE, [current_tenant_id(), trigger.pk])
        taken = cursor.fetchall()
    if not taken:
        return 0
    subjects = list(dict.fromkeys(subject for _, subject in taken if subject))
    Trigger.objects.filter(pk=trigger.pk).update(last_at=Now())
    if trigger.deleted_at is not None or not trigger.enabled:
        spawning.refused(trigger.task, TriggerKind(trigger.kind), SpawnRefusal.TRIGGER_OFF, times=len(taken))
        return len(taken)
    params = {"occurrences": len(taken), "subjects": subjects[:_SHOWN], "since": _iso(trigger.last_at)}
    _spawn(trigger, Owed(f"{trigger.pk}:{taken[0][0]}", params), subjects)
    return len(taken)


def give_up(trigger_id: UUID, error: Exception) -> None:
    """Nothing can be begun for it, until somebody has mended its task and switches it on again."""
    trigger = Trigger.objects.select_related("task").filter(pk=trigger_id).first()
    if trigger is not None:
        switch_off(trigger, reason=type(error).__name__)


def _spawn(trigger: Trigger, owed: Owed, subjects: list[str]) -> None:
    """What follows another task's session runs inside what that one has left, with its result if it is wanted."""
    parent = None
    if trigger.kind == TriggerKind.CHAIN:
        parent = AutonomousSession.objects.select_related("run").filter(pk=subjects[-1]).first()
    with_context = parent is not None and bool(trigger.spec.get("with_context", True))
    spawning.spawn(
        trigger.task,
        kind=TriggerKind(trigger.kind),
        owed=owed,
        requested_by=f"trigger:{trigger.pk}",
        trigger=trigger,
        parent=parent,
        context=parent.output if parent is not None and with_context else "",
    )


def _has_one_waiting(trigger: Trigger) -> bool:
    waiting = AutonomousSession.objects.filter(trigger=trigger, status=SessionStatus.QUEUED, admitted_at__isnull=True)
    return bool(waiting.exists())


def ticked() -> None:
    """This company was looked at."""
    AutonomySettings.objects.update(ticked_at=Now())


def due_tenants() -> list[UUID]:
    """Outside of any scope: whose heartbeat has come."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT autonomy_due_tenants()")
        return [tenant_id for (tenant_id,) in cursor.fetchall()]
