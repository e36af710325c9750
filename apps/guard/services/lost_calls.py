"""Give up calls whose process died: they become uncertain, keep their reservation, and are never made again.

One recurring message of the whole installation looks for overdue calls of all tenants, by an index of the calls that
are under way, so that no message is needed per call."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from django.db.models import QuerySet
from django.db.models.functions import Now

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.bus.deliveries import Delivery
from apps.guard.enums import CallOutcomeLabel, CallState
from apps.guard.ledger import write_uncertain
from apps.guard.models import ToolCall
from apps.guard.queries import tenants_with_lost_calls
from kernel.clock import now
from kernel.tenancy import for_each_tenant, in_tenant_scope, in_thread

_EVERY = timedelta(minutes=1)


async def handle_lost_calls(delivery: Delivery) -> None:
    """Handle the `lost_calls` message."""
    tenants = await in_thread(tenants_with_lost_calls)
    await in_thread(for_each_tenant, tenants, in_tenant_scope(mark_lost_calls))
    await delivery.reschedule(lambda: now() + _EVERY)


def mark_lost_calls() -> int:
    """Mark every admitted call whose deadline has passed as uncertain; returns how many. Inside a scope. A settlement
    that comes later gets `CallLost`."""
    return _give_up(ToolCall.objects.filter(state=CallState.ADMITTED, deadline__lte=Now()))


def abandon_calls(run_id: UUID) -> int:
    """Mark every call of this run that is under way as uncertain, because its worker is gone; returns how many."""
    return _give_up(ToolCall.objects.filter(run_id=run_id, state=CallState.ADMITTED))


def _give_up(lost: QuerySet[ToolCall]) -> int:
    calls = [call for call in lost if write_uncertain(call.pk, error_code="lost")]
    for call in calls:
        data = {"intent": call.intent, "outcome": CallOutcomeLabel.UNCERTAIN.value, "seq": call.seq}
        record(AuditEvent.TOOL_CALL, subject=f"run:{call.run_id}", data=data)
    return len(calls)
