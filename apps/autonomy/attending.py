"""What does this room leave to a web process? To ask people about what sessions propose, to put what they kept where it
is recalled, to suggest what could be done next: workers open no cards and have no right to memory.

`carry_out` is the consumer of `review_owed` on the proxy queue. Every event is safe to deliver twice.
"""

from __future__ import annotations

from uuid import UUID

from apps.autonomy.models import AutonomousSession, MemoryProposal, Suggestion
from apps.autonomy.services import owing, preferring, proposals, raising, recalling, suggesting
from apps.bus.deliveries import Delivery
from apps.work.planner import paid_run
from apps.work.services import following
from apps.work.services.following import FollowUpJob
from kernel.llm.schemas import AgentResponse
from kernel.tenancy import in_scope


def owe_cards(session: AutonomousSession) -> None:
    """A session ended: a person shall be asked about what it proposes, if anything."""
    if MemoryProposal.objects.filter(session=session, card_id=None).exists():
        owing.owe(owing.ASK, session.pk)


async def carry_out(delivery: Delivery) -> None:
    payload = delivery.message.payload or {}
    subject = UUID(payload["subject"])
    match payload["event"]:
        case owing.ASK:
            await delivery.commit(_ask, subject)
        case owing.RECALL:
            await recalling.carry_out(delivery, subject)
        case owing.AFTER_WORK:
            await delivery.commit(suggesting.after_work, subject)
        case owing.PREFER:
            await preferring.carry_out(delivery, subject)
        case owing.RAISE:
            await delivery.commit(raising.ask, subject)
        case owing.PLAN:
            await _plan(delivery, subject)


def _ask(session_id: UUID) -> None:
    waiting = MemoryProposal.objects.filter(session_id=session_id, card_id=None, deleted_at=None)
    for proposal_id in waiting.values_list("pk", flat=True):
        proposals.ask_about(proposal_id)


async def _plan(delivery: Delivery, suggestion_id: UUID) -> None:
    """Somebody took a suggestion up: its plan is worded outside of every scope, and asks for a yes of its own."""
    job = await in_scope(delivery.tenant_id, _job, suggestion_id)
    if job is None:
        return
    run = await paid_run(job)
    await delivery.commit(
        _proposed, job, _plan_of(run.output if run else None), delivery.message.trace_id, suggestion_id
    )


def _job(suggestion_id: UUID) -> FollowUpJob | None:
    row = Suggestion.objects.filter(pk=suggestion_id).first()
    if row is None or not row.subject.startswith("work:"):
        return None
    wish = row.intent.removeprefix("Next: ")
    return following.open_job(UUID(row.subject.removeprefix("work:")), wish, asked_by=row.pk)


def _plan_of(answer: AgentResponse | None) -> str:
    return (answer.plan_action.plan_markdown or "") if answer is not None and answer.plan_action else ""


def _proposed(job: FollowUpJob, plan_markdown: str, trace_id: str, suggestion_id: UUID) -> None:
    proposal = following.take(job, plan_markdown, trace_id=trace_id)
    led_to = f"work:{proposal.work_item_id}" if proposal.work_item_id else "no_plan"
    Suggestion.objects.filter(pk=suggestion_id).update(led_to=led_to)
