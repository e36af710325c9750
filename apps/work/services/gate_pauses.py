"""Pause an item where gates want a person to look, and move it on when the pause has ended (ADR 101).

Always holds: the item pauses in the transaction that closes its attempt, and no process waits; an approval owes the
item to the executors again, any other end of the pause ends the item as the first asking gate says (`on_block`). A web
process opens the card. Lock order: card, pause, item, course.
"""

from __future__ import annotations

from uuid import UUID

from apps.approvals.asks import About, GateReason
from apps.approvals.enums import PauseState, Risk, Withdrawal
from apps.approvals.locks import lock_pause
from apps.approvals.models import GatePause
from apps.approvals.schemas import GatePass
from apps.approvals.services import pauses
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
from kernel.llm.calls import PlannedCall

# One item asks people no more often than it may make calls; beyond that, and for what no card can show, it ends.
MAX_PAUSES, MAX_SHOWN_CHARS = rules.MAX_CALLS, 20_000
_REASON_CHARS = 300


def pause_item(item: WorkItem, course: Course, held: PendingReview) -> None:
    """Pause the locked item. In the scope that closes its attempt; a worker may do this."""
    first = held.asking[0]
    pause = _begin(item, held)
    if pause is None:
        _stop(item, WorkReason.GATE, gate=first.gate_name, on_block=first.on_block)
        return
    begin_wait(course, Waiting.REVIEW, pause.expires_at)
    move(item, WorkItemStatus.PAUSED, reason=WorkReason.REVIEW)
    outbox.enqueue_review(item, pause.pk)


def _begin(item: WorkItem, held: PendingReview) -> GatePause | None:
    """None where the item has asked too often, or no card could show what is held back."""
    if pauses.count_of(WORK_ITEM, item.pk) >= MAX_PAUSES:
        return None
    first = held.asking[0]
    try:
        if len(canonical_json(held.holds)) > MAX_SHOWN_CHARS:
            return None
        return pauses.begin(
            held.trigger,
            about=About(WORK_ITEM, item.pk, item.deployment_id, item.session_id),
            gates=[GateReason(name=one.gate_name, reason=one.reason[:_REASON_CHARS]) for one in held.asking],
            holds=held.holds,
            kept={"gate": first.gate_name, "on_block": first.on_block},
            seconds=held.seconds,
        )
    except (SilasError, ValueError):  # a value that cannot be signed as it stands
        return None


def open_card(pause_id: UUID) -> None:
    """Open the card of a pause. Web processes only."""
    pause = lock_pause(pause_id)
    spec = work_item(pause.subject_id).spec
    tools, account = _tools_at_stake(pause, spec), _account(pause, spec)
    pauses.ask(
        pause,
        reversible=not any(execution_facts.raises_risk(tool) for tool in tools),
        declared_risk=highest_risk(tools) if tools else Risk.LOW,
        lifted=account is not None and account.is_marked,
        warnings=(visitor_messages.READ_INSTRUCTIONS,) if guarded.read_instructions(pause.subject_id) else (),
        origins=account.model_dump(mode="json") if account else None,
    )


def _account(pause: GatePause, spec: WorkItemSpec) -> PlanOrigins | None:
    """Where the values of the call come from: as of the plan, and by the agent's hand what the plan does not hold. None
    where nothing was written down of the plan."""
    call = PlannedCall(pause.payload["holds"]["tool"], pause.payload["holds"]["args"])
    tool = screening.tools_in(spec.skills).get(call.tool)
    if tool is None or origins_in(spec.body) is None:
        return None
    return follow_up_tracer(spec).account([(call, tool)])


def _tools_at_stake(pause: GatePause, spec: WorkItemSpec) -> list[ToolSpec]:
    """What an approval lets happen: the call that is held back, or what is left of the work behind a step."""
    known = screening.tools_in(spec.skills)
    is_behind = "value" in pause.payload["holds"]
    names = [call.tool for call in spec.calls] if is_behind else [pause.payload["holds"]["tool"]]
    return [known[name] for name in dict.fromkeys(names) if name in known]


def on_pause_ended(pause: GatePause) -> None:
    """A pause of an item has ended: the item is owed to the executors again, or ends. Hears every pause's end."""
    if pause.subject_kind != WORK_ITEM:
        return
    item = lock_item(pause.subject_id)
    course = lock_course(item)
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
    pauses.resume(pause)


def expire_overdue(item_id: UUID) -> None:
    """End the pauses of an item whose time is up, also those whose card was never opened."""
    for pause_id in pauses.overdue(WORK_ITEM, item_id):
        pauses.expire(pause_id)


def withdraw_pauses(item_id: UUID) -> None:
    """Take back what still asks about an item that has ended."""
    pauses.withdraw_pauses(WORK_ITEM, item_id, reason=Withdrawal.CANCELLED)


def passes_of(item: WorkItem) -> tuple[GatePass, ...]:
    """What people have let through for this item."""
    return pauses.passes_of(WORK_ITEM, item.pk)


def _stop(item: WorkItem, reason: WorkReason, *, gate: str, on_block: str) -> None:
    acted = LedgerEntry.objects.filter(attempt__work_item=item, success=True).exists()
    said = visitor_messages.PARTS_STAY if acted else visitor_messages.NOTHING_CHANGED
    completion.end_item(item, WorkItemStatus.BLOCKED, reason, error=f"gate {gate}", result=said, escalation=on_block)
