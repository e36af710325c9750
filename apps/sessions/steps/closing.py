"""Steps 9 to 16: what came of the turn? All of it in one transaction, with the end of the lease.

The session's row is locked first and its owner epoch compared: when a person has taken over since the turn began,
nothing is said. A former holder of the lease cannot commit anything here (`bus.ack` refuses and rolls the closing
back).
"""

from __future__ import annotations

from typing import Any

from django.db import connection

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.bus import services as bus
from apps.sessions import chronicle, converse, handoff, proposals
from apps.sessions.enums import EntryKind, Owner, Sender, TurnStatus
from apps.sessions.locks import lock_session
from apps.sessions.state import TurnState
from kernel.clock import now
from kernel.taint import Taint

_END = """
    UPDATE silas_sessions_turn SET status = %s, reason = %s, step = %s, model_name = %s, finished_at = %s WHERE id = %s
"""


def still_ours(state: TurnState) -> bool:
    """Lock the conversation; when a person has taken over, end the turn without a word."""
    deployment, state.session = state.session.deployment, lock_session(state.session.pk)
    state.session.deployment = deployment
    if state.session.owner == Owner.BOT and state.session.owner_epoch == state.epoch:
        return True
    bus.ack(state.lease)
    record_outcome(state)
    _end(state, TurnStatus.STOPPED, "taken_over")
    record(AuditEvent.TURN_SUPPRESSED, subject=f"session:{state.session.pk}", data={"step": state.step})
    return False


def drop_memory_requests(state: TurnState) -> None:
    """Steps 9 and 10. Nothing a visitor's model asks to look up or keep is done without a memory of its own: it is
    counted.
    """
    if state.response is not None and state.response.memory_ops:
        count = len(state.response.memory_ops)
        record(AuditEvent.MEMORY_OPS_DROPPED, subject=f"session:{state.session.pk}", data={"count": count})


def record_response(state: TurnState) -> None:
    """Step 11 (and 13: the frame leaves when the transaction has committed). Kept raw as it was said: step 11.5."""
    text = state.stop.text if state.stop else (state.response.message if state.response else "")
    if not text:
        return
    chronicle.append(
        state.session,
        kind=EntryKind.MESSAGE,
        sender=Sender.BOT,
        text=text,
        payload={} if state.stop else _extras(state),
        taint=Taint.EXTERNAL,
        turn=state.number,
    )


def propose_plan(state: TurnState) -> None:
    """Step 12. A plan becomes a card, or is dispatched under a standing approval, or is refused with its reason."""
    if state.response is not None and state.response.plan_action is not None:
        proposals.propose(state, state.response.plan_action)


def hand_over(state: TurnState) -> None:
    """Step 13, its other half: who asked for a person, or whom a gate hands on, waits for staff from here on."""
    wanted = state.stop.wants_person if state.stop else bool(state.response and state.response.handoff)
    if wanted:
        handoff.want_person(state.session)


def record_outcome(state: TurnState) -> None:
    """Step 15. What the gates and models did, as counts and codes, in a turn that nobody hears of too; mood is fixed by
    the deployment's persona.
    """
    converse.settle(state)
    subject = f"session:{state.session.pk}"
    for event, data in state.audit:
        record(AuditEvent(event), subject=subject, data=data)
    if state.fell_back:
        record(AuditEvent.MODEL_FELL_BACK, subject=subject, data={"reason": state.fell_back})


def finish(state: TurnState) -> None:
    """Step 16. The turn is counted, its message is done with, and its end is written down."""
    state.session.turns = state.number
    chronicle.touch(state.session)
    stopped = state.stop.reason if state.stop else ""
    _end(state, TurnStatus.STOPPED if stopped else TurnStatus.DONE, stopped)
    bus.ack(state.lease)
    data = {"turn": state.number, "level": state.access.grant.level, "passages": len(state.passages)}
    record(
        AuditEvent.TURN_COMPLETED,
        subject=f"session:{state.session.pk}",
        data=data | ({"stopped": stopped} if stopped else {}),
    )


def fail(state: TurnState, *, reason: str) -> None:
    """The turn broke off before it could close: its message goes back to the queue, or is dead after the fifth time."""
    bus.nack(state.lease, reason=reason)
    record_outcome(state)
    _end(state, TurnStatus.FAILED, reason[:80])


def _extras(state: TurnState) -> dict[str, Any]:
    if state.response is None:
        return {}
    extras: dict[str, Any] = {}
    if state.response.citations:
        extras["citations"] = [citation.model_dump(mode="json") for citation in state.response.citations]
    if state.response.suggestions:
        extras["suggestions"] = list(state.response.suggestions)
    return extras


def _end(state: TurnState, status: TurnStatus, reason: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(_END, [status.value, reason, state.step, state.model_name, now(), state.turn_id])
