"""Handlers of this room's bus messages. Every handler is safe to run twice.

Registered in `receivers`. Triggers, admission and session checks run in `upkeep` workers. Suggestions, reviews and
deliveries run in `trusted` workers, which hold the signing key: only they open cards, write to memory and know people's
addresses.
"""

from __future__ import annotations

from uuid import UUID

from django.db import Error as DatabaseError

from apps.autonomy import mail_delivery, webhook_delivery
from apps.autonomy.enums import Channel
from apps.autonomy.locks import lock_session
from apps.autonomy.models import AutonomousSession, MemoryProposal, Outbox, Suggestion
from apps.autonomy.services import (
    admission,
    bus_messages,
    calibration,
    delegation,
    limit_increases,
    notice_emails,
    outbox,
    preferences,
    proposal_storage,
    proposals,
    session_control,
    session_end,
    suggestions,
    trigger_dispatch,
)
from apps.autonomy.webhook_delivery import NotSent
from apps.bus import services as bus
from apps.bus.deliveries import Delivery
from apps.bus.models import QueueMessage
from apps.bus.schemas import AlreadyProcessed, Lease, LeaseLost
from apps.work.planner import paid_run
from apps.work.services import follow_ups
from apps.work.services.follow_ups import FollowUpJob
from kernel.clock import now
from kernel.tenancy import in_scope, run_isolated


async def handle_trigger(delivery: Delivery) -> None:
    """Start what one trigger is due for. A trigger whose rows cannot be read is disabled, and its owner is told."""
    trigger_id = UUID(delivery.message.subject)
    try:
        await delivery.reschedule(trigger_dispatch.dispatch_trigger, trigger_id, delivery.lease)
    except (LeaseLost, AlreadyProcessed, DatabaseError):
        raise
    except Exception as error:  # noqa: BLE001 (whatever cannot be read, it is this trigger's)
        await delivery.reschedule(trigger_dispatch.disable_unreadable_trigger, trigger_id, error)


async def handle_admission(delivery: Delivery) -> None:
    """Queue the sessions that collect results, then admit those for which there is room."""
    await delivery.commit(_admit, delivery.lease)


def _admit(lease: Lease) -> None:
    # One run serves all admission messages of the company that are waiting.
    bus.ack_duplicates(lease)
    delegation.start_collecting_sessions()
    admission.admit_waiting()


async def handle_session_check(delivery: Delivery) -> None:
    await delivery.reschedule(session_control.check_session, UUID(delivery.message.subject))


def handle_dead_session(message: QueueMessage) -> bool:
    """End a session whose message was given up (five workers died of it, or none could run it) as lost.

    Counts as an attempt. Returns whether the task has an owner, who is then told.
    """
    session_id = UUID((message.payload or {})["session"])
    if not AutonomousSession.objects.filter(pk=session_id).exists():
        return False
    session = lock_session(session_id)
    session_end.end(session, session_end.LOST)
    return session.task.owner_id is not None


async def handle_suggestions(delivery: Delivery) -> None:
    """Look for suggestions at each deployment of the company; an error at one does not stop the others."""
    for deployment_id in await in_scope(delivery.tenant_id, suggestions.deployments_to_check):
        await in_scope(delivery.tenant_id, run_isolated, _suggest, deployment_id, lambda _: None)
    await delivery.reschedule(suggestions.next_check)


def _suggest(deployment_id: UUID) -> None:
    calibration.propose_changes(deployment_id)
    preferences.propose_preferences(deployment_id)
    suggestions.suggest_from_rows(deployment_id)


async def handle_review(delivery: Delivery) -> None:
    """Carry out one `REVIEW_OWED`: open a card, store or remember what was kept, or plan an accepted suggestion."""
    payload = delivery.message.payload or {}
    subject = UUID(payload["subject"])
    match payload["event"]:
        case bus_messages.ASK:
            await delivery.commit(_open_proposal_cards, subject)
        case bus_messages.RECALL:
            await proposal_storage.store_kept(delivery, subject)
        case bus_messages.AFTER_WORK:
            await delivery.commit(suggestions.suggest_after_work, subject)
        case bus_messages.PREFER:
            await preferences.store_kept(delivery, subject)
        case bus_messages.RAISE:
            await delivery.commit(limit_increases.open_increase_card, subject)
        case bus_messages.PLAN:
            await _plan(delivery, subject)


def _open_proposal_cards(session_id: UUID) -> None:
    rows = MemoryProposal.objects.filter(session_id=session_id, card_id=None, deleted_at=None)
    for proposal_id in rows.values_list("pk", flat=True):
        proposals.open_proposal_card(proposal_id)


async def _plan(delivery: Delivery, suggestion_id: UUID) -> None:
    """Plan what an accepted suggestion names. The model runs outside every scope; the plan needs its own approval."""
    job = await in_scope(delivery.tenant_id, _follow_up_job, suggestion_id)
    if job is None:
        return
    run = await paid_run(job)
    action = run.output.plan_action if run is not None else None
    plan = (action.plan_markdown or "") if action is not None else ""
    await delivery.commit(_propose_plan, job, plan, delivery.message.trace_id, suggestion_id)


def _follow_up_job(suggestion_id: UUID) -> FollowUpJob | None:
    row = Suggestion.objects.filter(pk=suggestion_id).first()
    if row is None or not row.subject.startswith("work:"):
        return None
    request = row.intent.removeprefix("Next: ")
    return follow_ups.open_job(UUID(row.subject.removeprefix("work:")), request, asked_by=row.pk)


def _propose_plan(job: FollowUpJob, plan_markdown: str, trace_id: str, suggestion_id: UUID) -> None:
    proposal = follow_ups.propose_follow_up(job, plan_markdown, trace_id=trace_id)
    led_to = f"work:{proposal.work_item_id}" if proposal.work_item_id else "no_plan"
    Suggestion.objects.filter(pk=suggestion_id).update(led_to=led_to)


async def handle_outbox(delivery: Delivery) -> None:
    """Send one outbox row. A row has a bus scope of its own, so no delivery waits for another.

    The row is read in one scope, sent outside of any, and settled in another.
    """
    row = await in_scope(delivery.tenant_id, outbox.waiting_row, UUID(delivery.message.subject))
    if row is None:
        return
    problem: NotSent | None = None
    included: tuple[UUID, ...] = ()
    try:
        if row.channel == Channel.WEBHOOK:
            await webhook_delivery.post_row(row)
        else:
            included = await mail_delivery.send_row(delivery.tenant_id, row)
    except NotSent as refusal:
        problem = refusal
    # A scope of its own: the row is settled together with the delivery.
    await in_scope(delivery.tenant_id, _settle, delivery, row, problem, included)


def _settle(delivery: Delivery, row: Outbox, problem: NotSent | None, included: tuple[UUID, ...]) -> None:
    if problem is None:
        outbox.mark_sent(row)
        notice_emails.mark_included_sent(included)
        delivery.finish()
    elif problem.until is not None:
        delivery.defer(max((problem.until - now()).total_seconds(), 1), problem.code)
    elif (seconds := outbox.mark_failed(row, problem.code, permanent=problem.permanent)) is not None:
        delivery.defer(seconds, problem.code)
    else:
        delivery.finish()


def handle_dead_outbox(message: QueueMessage) -> bool:
    """Give up a row whose message was given up. Returns whether owners are told, as they are of a webhook."""
    row = outbox.waiting_row(UUID(message.subject))
    if row is None:
        return False
    outbox.mark_failed(row, message.reason, permanent=True)
    return row.channel == Channel.WEBHOOK
