"""What becomes of calls whose process died? They are uncertain: kept, with their reservation, and never made again."""

from __future__ import annotations

from django.db.models.functions import Now

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.guard.enums import CallOutcomeLabel, CallState
from apps.guard.ledger import write_uncertain
from apps.guard.models import ToolCall


def settle_lost_calls() -> int:
    """Mark every admitted call whose deadline has passed; returns how many. Inside a scope; safe beside a late settler,
    who then learns that the call is lost."""
    lost = ToolCall.objects.filter(state=CallState.ADMITTED, deadline__lte=Now())
    calls = [call for call in lost if write_uncertain(call.pk, error_code="lost")]
    for call in calls:
        data = {"intent": call.intent, "outcome": CallOutcomeLabel.UNCERTAIN.value, "seq": call.seq}
        record(AuditEvent.TOOL_CALL, subject=f"run:{call.run_id}", data=data)
    return len(calls)
