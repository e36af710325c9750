"""Give up calls whose process died: they are uncertain, kept with their reservation, and never made again.

Nothing is written for a call that ends well, and no message stands for one that does not: one standing message of the
whole installation asks for overdue calls of all tenants, by an index of the calls that are under way.
"""

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


async def settle_lost(delivery: Delivery) -> None:
    """The handler of `lost_calls`."""
    tenants = await in_thread(tenants_with_lost_calls)
    await in_thread(for_each_tenant, tenants, in_tenant_scope(settle_lost_calls))
    await delivery.reschedule(lambda: now() + _EVERY)


def settle_lost_calls() -> int:
    """Mark every admitted call whose deadline has passed; returns how many. Inside a scope; safe beside a late settler,
    who then learns that the call is lost."""
    return _give_up(ToolCall.objects.filter(state=CallState.ADMITTED, deadline__lte=Now()))


def give_up_calls(run_id: UUID) -> int:
    """Mark every call of this run that is under way, because its worker is gone or was ended; returns how many."""
    return _give_up(ToolCall.objects.filter(run_id=run_id, state=CallState.ADMITTED))


def _give_up(lost: QuerySet[ToolCall]) -> int:
    calls = [call for call in lost if write_uncertain(call.pk, error_code="lost")]
    for call in calls:
        data = {"intent": call.intent, "outcome": CallOutcomeLabel.UNCERTAIN.value, "seq": call.seq}
        record(AuditEvent.TOOL_CALL, subject=f"run:{call.run_id}", data=data)
    return len(calls)
