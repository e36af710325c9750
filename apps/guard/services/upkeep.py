"""What becomes of calls whose process died? They are uncertain: kept, with their reservation, and never made again."""

from __future__ import annotations

from uuid import UUID

from django.db.models import QuerySet
from django.db.models.functions import Now

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.guard.enums import CallOutcomeLabel, CallState
from apps.guard.ledger import write_uncertain
from apps.guard.models import ToolCall


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
