"""Build and open the cards of batches: the batch review, and the results with undo (spec 5.2.4, 0.5.4, 0.5.5).

Every line is the skill's words about bound values, never a model's. Only processes that may open cards.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from apps.approvals.cards.risk import max_risk
from apps.approvals.cards.schemas import Binding, CardSubject, CardText, Fact
from apps.approvals.cards.services import open_card
from apps.approvals.enums import ApprovalScope, CardKind, Risk
from apps.approvals.models import Card
from apps.approvals.tokens.payloads import batch_payload
from apps.skills import queries as skills
from apps.skills.schemas import ToolSpec
from apps.work.enums import WorkItemStatus, WorkReason
from apps.work.models import Batch, BatchItem, WorkItem
from apps.work.queries import lines_of
from apps.work.services import execution_facts, screening
from apps.work.services.approval_requests import RequestedCall, card_reads_of, has_marked_values, highest_risk, shorten
from kernel.language import in_english
from kernel.stored_texts import stored_text

BATCH = "batch"
Reads = Sequence[Mapping[str, Any]]
_TITLE_CHARS, _FACT_CHARS = 200, 300
_DONE = stored_text("Done and verified. You can undo it for a short time.")
_PARTLY_DONE = stored_text(
    "Partly done; see each result. What was done is verified and can be undone for a short time."
)


def open_batch_card(batch: Batch, *, instead_of: Card | None = None, rationale: str = "") -> Card:
    """Ask a person to decide a batch. `instead_of`: the card before, whose risk is kept."""
    lines = list(lines_of(batch))
    tools = _tools(lines)
    count = _actions(len(lines))
    return open_card(
        CardKind.BATCH_REVIEW,
        subject=CardSubject(BATCH, batch.pk, batch.deployment_id, requested_by=batch.requested_by),
        binding=Binding(
            ApprovalScope.CONNECTION_ACT,
            _payload(batch, lines),
            reversible=not any(execution_facts.raises_risk(tool) for tool in tools),
            declared_risk=max_risk(highest_risk(tools), Risk(instead_of.risk) if instead_of else Risk.LOW),
            untrusted_target=instead_of is None and any(has_marked_values(line.work_item.spec) for line in lines),
            reads=_reads(lines),
        ),
        text=CardText(
            intent=stored_text("{description}: {count}").format(
                description=shorten(tools[0].description, _TITLE_CHARS), count=count
            ),
            rationale=rationale or batch.reason_summary or stored_text("The goal found these; each matches its rule."),
            consequence={
                "approve": stored_text("Carry out {count}").format(count=count),
                "decline": stored_text("Change nothing"),
            },
            affected=count,
            facts=_execution_facts(tools),
        ),
        body={
            "items": [_line(line) for line in lines],
            "reason_summary": batch.reason_summary,
            "confidence_min": batch.confidence_min,
        },
        supersedes=instead_of,
    )


def reads_of_line(card: Card, item_id: str) -> list[dict[str, object]]:
    """Return the records whose state the card shows for this line."""
    return [read for read in card.reads if read.get("item") == item_id]


def _reads(lines: Sequence[BatchItem]) -> list[dict[str, object]]:
    """Return the records that each line shows, tagged with the line's id: lines may be about different customers."""
    return [
        {**read, "item": line.item_id}
        for line in lines
        for read in card_reads_of(_calls_of(line.work_item), line.work_item.subject)
    ]


def _calls_of(item: WorkItem) -> Sequence[RequestedCall]:
    return screening.resolve_calls(item.spec.calls, screening.tools_in(item.spec.skills))


def _execution_facts(tools: Sequence[ToolSpec]) -> list[Fact]:
    """Return how the lines run, each way once."""
    facts = [fact for tool in tools for fact in execution_facts.execution_facts(tool)]
    return [fact for place, fact in enumerate(facts) if fact not in facts[:place]]


def open_results_card(
    undo: Batch,
    done: Sequence[WorkItem],
    *,
    reads: Mapping[UUID, Reads],
    until: datetime,
    instead_of: Card | None = None,
    rationale: str = "",
) -> Card:
    """Show what was done, with the button that undoes it while there is time. `reads`: by finished item, the records
    that it changed, at their current revisions."""
    lines = list(lines_of(undo))
    succeeded = sum(item.status == WorkItemStatus.DONE for item in done)
    count = (
        _actions(len(done))
        if succeeded == len(done)
        else stored_text("{some:d} of {all:d} actions").format(some=succeeded, all=len(done))
    )
    subject = done[0].title if len(done) == 1 else count
    session_id = done[0].session_id if len(done) == 1 else None
    current_reads = [
        {**read, "item": line.item_id}
        for line in lines
        if line.work_item.follow_up_of_id is not None
        for read in reads.get(line.work_item.follow_up_of_id, ())
    ]
    return open_card(
        CardKind.POST_EXECUTION,
        subject=CardSubject(BATCH, undo.pk, undo.deployment_id, session_id, undo.requested_by),
        binding=Binding(ApprovalScope.CONNECTION_ACT, _payload(undo, lines), reversible=True, reads=current_reads),
        text=CardText(
            intent=stored_text("Done: {title}").format(title=subject),
            rationale=rationale or (_DONE if succeeded == len(done) else _PARTLY_DONE),
            consequence={
                "approve": stored_text("Undo {count}").format(count=_count_label(len(lines))),
                "decline": stored_text("Keep it as it is"),
            },
            affected=_count_label(len(lines)),
            facts=[fact for line in lines for fact in _undo_facts(line)],
            details={"calls": [_call(line) for line in lines]},
        ),
        body={"results": [_result(item) for item in done]},
        until=until,
        supersedes=instead_of,
    )


def _undo_facts(line: BatchItem) -> list[Fact]:
    """Return what undo would change, as the tool states it: the current value and the restored one."""
    calls, subject = _calls_of(line.work_item), line.work_item.subject
    return [
        Fact(**fact) for requested in calls for fact in skills.card_facts(requested.tool, requested.call.args, subject)
    ]


def _actions(count: int) -> str:
    return stored_text("1 action") if count == 1 else stored_text("{count:d} actions").format(count=count)


def _count_label(count: int) -> str:
    if count == 1:
        return _actions(count)
    return stored_text("{count:d} actions, the last one first").format(count=count)


def _result(item: WorkItem) -> dict[str, object]:
    good = item.status == WorkItemStatus.DONE
    outcome = (
        shorten(item.summary.splitlines()[0], 299)
        if good and item.summary
        else in_english(WorkReason(item.reason).label)
    )
    return {"title": item.title, "outcome": "" if outcome == in_english(WorkReason.NONE.label) else outcome, "ok": good}


def _payload(batch: Batch, lines: Sequence[BatchItem]) -> dict[str, object]:
    ids = [line.item_id for line in lines]
    return batch_payload(goal_id=str(batch.goal_ref), action=batch.action, item_ids=ids)


def _tools(lines: Sequence[BatchItem]) -> list[ToolSpec]:
    tools = []
    for line in lines:
        tools_by_name = screening.tools_in(line.work_item.spec.skills)
        tools += [tools_by_name[call.tool] for call in line.work_item.spec.calls]
    return tools


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
        "facts": [
            {name: shorten(words, _FACT_CHARS) for name, words in fact.items()}
            for requested in _calls_of(line.work_item)
            for fact in skills.card_facts(requested.tool, requested.call.args, line.work_item.subject)
        ],
    }
