"""What is a person shown about a batch, and about what came of one? Cards of many lines (spec 5.2.4, 0.5.4, 0.5.5).

Every line is the skill's words about bound values, never a model's. Web processes only: workers open no cards.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from apps.approvals.asks import About, Binding, CardText
from apps.approvals.enums import ApprovalScope, CardKind
from apps.approvals.models import Card
from apps.approvals.payloads import batch_payload
from apps.approvals.schemas import Fact
from apps.approvals.services import open_card
from apps.skills.schemas import ToolSpec
from apps.work.enums import WorkItemStatus
from apps.work.models import Batch, BatchItem, WorkItem
from apps.work.queries import lines_of
from apps.work.services import screening, ways
from apps.work.services.asking import gravest, is_lifted, short

BATCH = "batch"
_TITLE_CHARS = 200


def ask(batch: Batch) -> Card:
    """Put a batch before a person."""
    lines = list(lines_of(batch))
    tools = _tools(lines)
    count = f"{len(lines)} action{'s' if len(lines) != 1 else ''}"
    return open_card(
        CardKind.BATCH_REVIEW,
        about=About(BATCH, batch.pk, batch.deployment_id, requested_by=batch.requested_by),
        binding=Binding(
            ApprovalScope.CONNECTION_ACT,
            _payload(batch, lines),
            reversible=not any(ways.can_lift(tool) for tool in tools),
            declared_risk=gravest(tools),
            lifted=any(is_lifted(line.work_item.spec) for line in lines),
        ),
        text=CardText(
            intent=f"{short(tools[0].description, _TITLE_CHARS)}: {count}",
            rationale=batch.reason_summary or "The goal found these; each fits its rule.",
            consequence={"approve": f"Carry out {count}", "decline": "Change nothing"},
            affected=count,
            facts=_ways(tools),
        ),
        body={
            "items": [_line(line) for line in lines],
            "reason_summary": batch.reason_summary,
            "confidence_min": batch.confidence_min,
        },
    )


def _ways(tools: Sequence[ToolSpec]) -> list[Fact]:
    """How the lines run, each way once."""
    found = [fact for tool in tools for fact in ways.facts_of(tool)]
    return [fact for place, fact in enumerate(found) if fact not in found[:place]]


def show_results(undo: Batch, done: Sequence[WorkItem], *, until: datetime) -> Card:
    """What was done, with the one button that takes it back while there is time."""
    lines = list(lines_of(undo))
    what = done[0].title if len(done) == 1 else f"{len(done)} actions"
    session_id = done[0].session_id if len(done) == 1 else None
    return open_card(
        CardKind.POST_EXECUTION,
        about=About(BATCH, undo.pk, undo.deployment_id, session_id, undo.requested_by),
        binding=Binding(ApprovalScope.CONNECTION_ACT, _payload(undo, lines), reversible=True),
        text=CardText(
            intent=f"Done: {what}",
            rationale="It is done and proved. It can be taken back for a short while.",
            consequence={"approve": f"Undo {_how_many(len(lines))}", "decline": "Keep it as it is"},
            affected=_how_many(len(lines)),
            details={"calls": [_call(line) for line in lines]},
        ),
        body={"results": [_result(item) for item in done]},
        until=until,
    )


def _how_many(count: int) -> str:
    return "1 action" if count == 1 else f"{count} actions, the last one first"


def _result(item: WorkItem) -> dict[str, object]:
    good = item.status == WorkItemStatus.DONE
    said = short(item.summary.splitlines()[0], 299) if good and item.summary else item.get_reason_display()
    return {"title": item.title, "outcome": "" if said == "nothing to explain" else said, "ok": good}


def _payload(batch: Batch, lines: Sequence[BatchItem]) -> dict[str, object]:
    ids = [line.item_id for line in lines]
    return batch_payload(goal_id=str(batch.goal_ref), action=batch.action, item_ids=ids)


def _tools(lines: Sequence[BatchItem]) -> list[ToolSpec]:
    found = []
    for line in lines:
        known = screening.tools_in(line.work_item.spec.skills)
        found += [known[call.tool] for call in line.work_item.spec.calls]
    return found


def _call(line: BatchItem) -> dict[str, object]:
    call = line.work_item.spec.calls[0]
    return {"tool": call.tool, "args": call.args}


def _line(line: BatchItem) -> dict[str, object]:
    return {
        "item_id": line.item_id,
        "title": line.title,
        "actor": line.actor,
        "occurred_at": line.occurred_at.isoformat() if line.occurred_at else None,
        "reason": line.reason,
        "confidence": line.confidence,
        "unusual": line.unusual,
    }
