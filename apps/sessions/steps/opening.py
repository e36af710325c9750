"""Steps 0 and 0.5: lease the next message, freeze the policy, and find work that already waits for a person.

One transaction. Everything the turn needs of the rows is read here once and frozen. A message that a person answers
passes the gates only (`handled_by_human`, ADR 43).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID, uuid5

from django.conf import settings

from apps.access.grants import grant_of
from apps.access.rules import AccessController
from apps.approvals.cards import pauses
from apps.approvals.locks import lock_pause
from apps.approvals.models import GatePause
from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.bus import services as bus
from apps.bus.enums import Queue
from apps.bus.schemas import Lease
from apps.guard.enums import Origin
from apps.guard.schemas import Limits, RunRef
from apps.guard.services import open_run
from apps.persona import queries as persona
from apps.persona.schemas import Tone
from apps.persona.services import tone_of_turn
from apps.releases.schemas import ServedSettings
from apps.releases.served import settings_of
from apps.sessions import policy, queries, served, turn_pauses
from apps.sessions.context_state import Focus
from apps.sessions.enums import Owner, Sender, TurnStatus
from apps.sessions.model_runs import admit_free
from apps.sessions.models import ChatSession, Turn
from apps.sessions.queries import Said
from apps.sessions.state import TurnState
from apps.work.queries import declined_work, open_work
from kernel.clock import now
from kernel.tenancy import before_commit

HISTORY_MESSAGES = 30
# How many declined requests a model is told of.
DECLINED_TOLD = 3


def open_turn(session_id: UUID, *, consumer: str) -> TurnState | None:
    seconds = settings.TURN_LEASE_SECONDS
    found = queries.session_with(session_id)
    lease = bus.lease(Queue.PROXY, consumer=consumer, scope_id=session_id, seconds=seconds, along=[found])
    if lease is None:
        return None
    session = found.value
    payload = lease.message.payload or {}
    # Checked with the lease, because it may have been disabled after the message was accepted.
    if not session.deployment.enabled:
        _drop(lease, session)
        # The next message of the conversation is due as well, and must not wait for the sweep.
        return open_turn(session_id, consumer=consumer)
    overheard = bool(payload.get("overheard"))
    resumed = _resumed(payload)
    if resumed is not None and (session.owner == Owner.HUMAN or turn_pauses.is_void(resumed, session)):
        _drop(lease, session)
        pauses.mark_resumed(resumed)
        return open_turn(session_id, consumer=consumer)
    if session.owner == Owner.HUMAN and not overheard:
        _leave_to_a_person(session)
        overheard = True
    state = _state(lease, session, seq=int(payload["seq"]), overheard=overheard)
    if resumed is not None:
        state.resumed = resumed
        state.passes = pauses.gate_passes(
            turn_pauses.TURN, session.pk, only=[UUID(one) for one in turn_pauses.earlier(state)]
        )
    return state


def _resumed(payload: Mapping[str, Any]) -> GatePause | None:
    """The pause after which this message goes on."""
    return lock_pause(UUID(payload["pause"])) if payload.get("pause") else None


def _state(lease: Lease, session: ChatSession, *, seq: int, overheard: bool) -> TurnState:
    said = queries.said_until(session.pk, seq, limit=HISTORY_MESSAGES)
    waiting = open_work(session.pk, subject=session.customer)
    declined = declined_work(session.pk, subject=session.customer)
    baseline = persona.baseline_of(session.deployment_id)
    release = served.release_for(session)
    frozen = policy.load_usable(session.deployment, said, waiting, declined, baseline, release)
    serving = settings_of(session.deployment, release.value, axes=baseline.value)
    _bind(session, serving)
    *recent, message = said.value
    # No gate has let it in yet; this turn's own gates decide about it.
    message = message._replace(kept_out=False)
    spoken = (each.text for each in (*recent, message) if each.sender == Sender.VISITOR)
    frozen = policy.as_named(frozen, spoken)
    if lease.message.attempts:
        _close_lost(session, message)
    turn_id, access = _begin(session, message), AccessController(frozen.levels, grant_of(session)).at(now())
    state = TurnState(
        tenant_id=session.tenant_id,
        turn_id=turn_id,
        number=session.turns + 1,
        epoch=session.owner_epoch,
        lease=lease,
        session=session,
        settings=serving,
        message=message,
        recent=tuple(recent),
        policy=frozen,
        access=access,
        open_work=tuple(title for whose, title in waiting.value if whose in ("", access.subject)),
        declined_work=tuple(
            (title, why or "") for whose, title, why in declined.value[-DECLINED_TOLD:] if whose in ("", access.subject)
        ),
        run=_run_of(session, turn_id),
        tone=_tone(serving, session, recent, message),
        text=message.text,
        focus=Focus.of(session.focus),
        overheard=overheard,
    )
    # A message to a person is answered by no model.
    if not overheard:
        admit_free(state)
    return state


def _tone(serving: ServedSettings, session: ChatSession, recent: list[Said], message: Said) -> Tone | None:
    if serving.axes is None:
        return None
    in_group = any(each.sender == Sender.HUMAN for each in recent)
    return tone_of_turn(serving.axes, session.mood, message.text, in_group=in_group)


def _bind(session: ChatSession, serving: ServedSettings) -> None:
    """Keep the release with the conversation: it began before there was one, or its own was rolled back."""
    if serving.release != session.release_id and not session.is_test:
        session.release_id = serving.release
        session.save(update_fields=["release"])


def _begin(session: ChatSession, message: Said) -> UUID:
    """Write down that this turn began."""
    turn = Turn(
        tenant_id=session.tenant_id,
        session_id=session.pk,
        message_seq=message.seq,
        number=session.turns + 1,
        release_id=session.release_id,
        epoch=session.owner_epoch,
        started_at=now(),
        step="precompile_gates",
    )
    before_commit(Turn.objects.bulk_create, turn)
    return UUID(str(turn.pk))


def _close_lost(session: ChatSession, message: Said) -> None:
    """An earlier turn of the message that still runs has lost its process: its lease was given to us."""
    lost = Turn.objects.filter(session_id=session.pk, message_seq=message.seq, status=TurnStatus.RUNNING)
    lost.update(status=TurnStatus.FAILED, reason="process_lost", finished_at=now())


def _run_of(session: ChatSession, turn_id: UUID) -> RunRef:
    """The guarded run that all turns of this conversation share, opened with the first. Its cap keeps one visitor from
    using up the tenant's budget; beyond it the conversation goes on with what costs nothing.
    """
    if session.run_id is None:
        limits = Limits(cost_usd=settings.MAX_CONVERSATION_USD)
        session.run_id = open_run(Origin.CHAT, session.pk, deployment_id=session.deployment_id, limits=limits).pk
        session.save(update_fields=["run_id"])
    return RunRef(session.tenant_id, session.run_id, visitor=_visitor(session), turn=turn_id)


def _visitor(session: ChatSession) -> UUID:
    """Who spends: the customer, in whichever of their conversations; before anybody is known, the conversation."""
    return uuid5(session.tenant_id, session.whose) if session.whose else session.pk


def _drop(lease: Lease, session: ChatSession) -> None:
    """End the turn without an answer."""
    bus.ack(lease)
    _leave_to_a_person(session)


def _leave_to_a_person(session: ChatSession) -> None:
    """The bot does not give the answer that the visitor's message waited for."""
    record(AuditEvent.TURN_SUPPRESSED, subject=f"session:{session.pk}", data={"step": "precompile_gates"})
