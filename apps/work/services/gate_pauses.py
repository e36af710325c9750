"""Pause an item where gates need a person, and continue it when the pause has ended (ADR 101).

Always holds: the item pauses in the transaction that closes its attempt, and no process waits; an approval queues the
item for the executors again, any other end of the pause ends the item as the first asking gate says (`on_block`). A
process with that right opens the card. Lock order: card, pause, item, course.
"""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from apps.approvals.cards import pauses
from apps.approvals.cards.schemas import CardSubject, GateReason
from apps.approvals.enums import PauseState, Risk, Withdrawal
from apps.approvals.locks import lock_pause
from apps.approvals.models import GatePause
from apps.approvals.tokens.schemas import GatePass
from apps.guard import queries as guarded
from apps.skills.schemas import ToolSpec
from apps.work import rules, visitor_messages
from apps.work.enums import Waiting, WorkItemStatus, WorkReason
from apps.work.locks import lock_course, lock_item
from apps.work.models import Course, LedgerEntry, WorkItem
from apps.work.provenance import PlanOrigins, follow_up_tracer, origins_in
from apps.work.queries import work_item
from apps.work.schemas import WorkItemSpec
from apps.work.services import cancellation, completion, execution_facts, execution_queue, outbox, screening
from apps.work.services.approval_requests import WORK_ITEM, highest_risk
from apps.work.services.items import move
from apps.work.services.wait_state import begin_wait, forget_wait
from apps.work.step_gates import PendingReview
from kernel.canonical import canonical_json
from kernel.errors import SilasError
from llm.calls import PlannedCall

# An item pauses at most as often as it may make calls. Beyond that, or if a card cannot show the content, it ends.
MAX_PAUSES, MAX_SHOWN_CHARS = rules.MAX_CALLS, 20_000
_REASON_CHARS = 300


def pause_item(item: WorkItem, course: Course, review: PendingReview) -> None:
    """Pause the locked item. In the scope that closes its attempt; a worker may do this."""
    first = review.asking[0]
    pause = _begin(item, review)
    if pause is None:
        _stop(item, WorkReason.GATE, gate=first.gate_name, on_block=first.on_block)
        return
    begin_wait(course, Waiting.REVIEW, pause.expires_at)
    move(item, WorkItemStatus.PAUSED, reason=WorkReason.REVIEW)
    outbox.enqueue_review(item, pause.pk)


def _begin(item: WorkItem, review: PendingReview) -> GatePause | None:
    """None if the item has asked too often, or no card could show what is held back."""
    if pauses.count_pauses(WORK_ITEM, item.pk) >= MAX_PAUSES:
        return None
    first = review.asking[0]
    try:
        # No person reads so much on a card, and what is not read must not be approved.
        if len(canonical_json(review.holds)) > MAX_SHOWN_CHARS:
            return None
        return pauses.open_pause(
            review.trigger,
            subject=CardSubject(WORK_ITEM, item.pk, item.deployment_id, item.session_id),
            gates=[GateReason(name=result.gate_name, reason=result.reason[:_REASON_CHARS]) for result in review.asking],
            holds=review.holds,
            kept={"gate": first.gate_name, "on_block": first.on_block},
            seconds=review.seconds,
        )
    except (SilasError, ValueError):  # a value that cannot be signed as it stands
        return None


def open_card(pause_id: UUID) -> None:
    """Open the card of a pause. Only processes that may open cards."""
    pause = lock_pause(pause_id)
    spec = work_item(pause.subject_id).spec
    tools, account = _tools_at_stake(pause, spec), _origins_for(pause, spec)
    pauses.open_pause_card(
        pause,
        reversible=not any(execution_facts.raises_risk(tool) for tool in tools),
        declared_risk=highest_risk(tools) if tools else Risk.LOW,
        untrusted_target=account is not None and account.is_marked,
        warnings=(visitor_messages.READ_INSTRUCTIONS,) if guarded.has_content_marks(pause.subject_id) else (),
        origins=account.model_dump(mode="json") if account else None,
    )


def _origins_for(pause: GatePause, spec: WorkItemSpec) -> PlanOrigins | None:
    """Return the origins of the call's values: those of the plan, and the model's for values that the plan does not
    contain. None if the plan has no origins."""
    call = PlannedCall(pause.payload["holds"]["tool"], pause.payload["holds"]["args"])
    tool = screening.tools_in(spec.skills).get(call.tool)
    if tool is None or origins_in(spec.body) is None:
        return None
    return follow_up_tracer(spec).origins_of([(call, tool)])


def _tools_at_stake(pause: GatePause, spec: WorkItemSpec) -> list[ToolSpec]:
    """Return what an approval lets happen: the call that is held back, or the remaining work after a step."""
    tools_by_name = screening.tools_in(spec.skills)
    is_behind = "value" in pause.payload["holds"]
    names = [call.tool for call in spec.calls] if is_behind else [pause.payload["holds"]["tool"]]
    return [tools_by_name[name] for name in dict.fromkeys(names) if name in tools_by_name]


def on_pause_ended(pause: GatePause) -> None:
    """Queue the item again, or end it."""
    item = lock_item(pause.subject_id)
    course = lock_course(item)
    # The item went on or ended meanwhile; a pause's end must not start it again.
    if course.waiting_for != Waiting.REVIEW or WorkItemStatus(item.status) in rules.FINAL:
        return
    forget_wait(course)
    if pause.state == PauseState.APPROVED:
        execution_queue.enqueue(item)
    elif pause.state == PauseState.WITHDRAWN:
        cancellation.end_if_open(item)
    else:
        declined = pause.state == PauseState.DECLINED
        reason = WorkReason.REVIEW_DECLINED if declined else WorkReason.REVIEW_EXPIRED
        _stop(item, reason, gate=pause.kept["gate"], on_block=pause.kept["on_block"])
    pauses.mark_resumed(pause)


def expire_overdue(item_id: UUID, moment: datetime) -> None:
    """End the item's pauses that are overdue at `moment`, also those whose card was never opened."""
    for pause_id in pauses.overdue_pauses(WORK_ITEM, item_id, moment):
        pauses.expire_pause(pause_id, moment)


def withdraw_pauses(item_id: UUID) -> None:
    """Withdraw the open pauses of an item that has ended."""
    pauses.withdraw_pauses(WORK_ITEM, item_id, reason=Withdrawal.CANCELLED)


def passes_of(item: WorkItem) -> tuple[GatePass, ...]:
    """Return what people have approved at gates of this item."""
    return pauses.gate_passes(WORK_ITEM, item.pk)


def _stop(item: WorkItem, reason: WorkReason, *, gate: str, on_block: str) -> None:
    acted = LedgerEntry.objects.filter(attempt__work_item=item, success=True).exists()
    message = visitor_messages.PARTS_STAY if acted else visitor_messages.NOTHING_CHANGED
    completion.end_item(item, WorkItemStatus.BLOCKED, reason, error=f"gate {gate}", result=message, escalation=on_block)
