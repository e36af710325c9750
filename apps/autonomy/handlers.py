"""Handlers of this room's bus messages. Every handler is safe to run twice.

Registered in `receivers`. Triggers, admission and session checks run in `upkeep` workers. Reviews and deliveries run in
`trusted` workers, which hold the signing key: only they open cards, write to memory and know people's addresses.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from uuid import UUID

from django.db import Error as DatabaseError

from apps.autonomy import mail_delivery, webhook_delivery
from apps.autonomy.enums import Channel
from apps.autonomy.locks import lock_session
from apps.autonomy.models import AutonomousSession, MemoryProposal, Outbox
from apps.autonomy.services import (
    admission,
    delegation,
    limit_increases,
    notice_emails,
    outbox,
    proposals,
    session_control,
    session_end,
    trigger_dispatch,
)
from apps.autonomy.webhook_delivery import NotSent
from apps.bus import services as bus
from apps.bus.deliveries import Delivery
from apps.bus.models import QueueMessage
from apps.bus.schemas import AlreadyProcessed, Lease, LeaseLost
from kernel.clock import now
from kernel.tenancy import in_scope

ReviewHandler = Callable[[Delivery, UUID], Awaitable[None]]
_review_handlers: dict[str, ReviewHandler] = {}


async def handle_trigger(delivery: Delivery) -> None:
    """Start what one trigger is due for. A trigger whose rows cannot be read is disabled, and its owner is told."""
    trigger_id = UUID(delivery.message.subject)
    try:
        await delivery.reschedule(trigger_dispatch.dispatch_trigger, trigger_id, delivery.lease)
    except (LeaseLost, AlreadyProcessed, DatabaseError):
        raise
    except Exception as error:  # noqa: BLE001 (any failure to read is this trigger's own)
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


def register_review(event: str, handler: ReviewHandler) -> None:
    """Deliver every `REVIEW_OWED` of this event to `handler`. Raises `ValueError` when it has another handler."""
    if _review_handlers.setdefault(event, handler) is not handler:
        raise ValueError(f"{event} has a handler already")


async def handle_review(delivery: Delivery) -> None:
    """Carry out one `REVIEW_OWED`: what a worker without the signing key, or a web process, cannot do itself."""
    payload = delivery.message.payload or {}
    await _review_handlers[payload["event"]](delivery, UUID(payload["subject"]))


async def open_proposal_cards(delivery: Delivery, session_id: UUID) -> None:
    await delivery.commit(_open_proposal_cards, session_id)


async def open_increase_card(delivery: Delivery, session_id: UUID) -> None:
    await delivery.commit(limit_increases.open_increase_card, session_id)


def _open_proposal_cards(session_id: UUID) -> None:
    rows = MemoryProposal.objects.filter(session_id=session_id, card_id=None, deleted_at=None)
    for proposal_id in rows.values_list("pk", flat=True):
        proposals.open_proposal_card(proposal_id)


async def handle_outbox(delivery: Delivery) -> None:
    """Send one outbox row. A row has a bus scope of its own, so no delivery waits for another.

    The row is read in one scope, sent outside of any, and settled in another.
    """
    row, content = await in_scope(delivery.tenant_id, _read_outbox, UUID(delivery.message.subject))
    if row is None:
        return
    problem: NotSent | None = None
    included: tuple[UUID, ...] = ()
    try:
        if row.channel == Channel.WEBHOOK:
            await webhook_delivery.post_row(row, content)
        else:
            included = await mail_delivery.send_row(delivery.tenant_id, row)
    except NotSent as refusal:
        problem = refusal
    # A scope of its own: the row is settled together with the delivery.
    await in_scope(delivery.tenant_id, _settle, delivery, row, problem, included)


def _read_outbox(row_id: UUID) -> tuple[Outbox | None, Mapping[str, object] | None]:
    """The row if it waits, and what is posted for it if it is a webhook's."""
    row = outbox.waiting_row(row_id)
    return row, outbox.content_of(row) if row is not None and row.channel == Channel.WEBHOOK else None


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
