"""Compute when a trigger is due next, and schedule it. Schedules are in the tenant's time zone, stored times in UTC."""

from __future__ import annotations

from datetime import datetime, timedelta

from apps.autonomy import queries, rules
from apps.autonomy.enums import TriggerKind
from apps.autonomy.models import Trigger
from apps.autonomy.schemas import CronSpec, IntervalSpec
from apps.bus import services as bus
from apps.bus.enums import Kind
from kernel import schedules
from kernel.clock import now


def first_due(trigger: Trigger) -> datetime | None:
    """From now on; None for a trigger without a schedule. Raises `SilasError`: bad_schedule, trigger_spec."""
    return next_due(trigger, after=now(), zone=queries.tenant_timezone())


def next_due(trigger: Trigger, *, after: datetime, zone: str) -> datetime | None:
    """The first time after `after`; missed times in between are skipped."""
    match rules.parse_spec(TriggerKind(trigger.kind), trigger.spec):
        case CronSpec(schedule=schedule):
            return schedules.next_due(schedule, after=after, zone=zone)
        case IntervalSpec(seconds=seconds):
            step = timedelta(seconds=seconds)
            if trigger.next_at is None or trigger.next_at > after:
                return after + step if trigger.next_at is None else trigger.next_at
            return trigger.next_at + step * ((after - trigger.next_at) // step + 1)
    return None


def schedule_trigger(trigger: Trigger) -> None:
    """Call after `next_at` of the locked trigger was written. A message that is no longer due starts nothing."""
    if trigger.next_at is not None:
        bus.schedule(Kind.TRIGGER_DUE, scope_id=trigger.pk, due_at=trigger.next_at)
