"""Steps 9 to 16: record everything that came of the turn, in one transaction with the end of its lease.

The session's row is locked and its owner epoch compared: when a person has taken over since the turn began, nothing is
recorded as said. A former holder of the lease cannot commit anything here (`bus.ack` refuses and rolls the closing
back).
"""

from __future__ import annotations

from uuid import UUID

from apps.approvals.cards import pauses
from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.bus import services as bus
from apps.knowledge import gaps
from apps.knowledge.enums import GapReason
from apps.memory.enums import SourceKind
from apps.persona import rules as persona
from apps.persona import services as personas
from apps.sessions import (
    chronicle,
    escalations,
    model_runs,
    person_wanted,
    proposals,
    queries,
    rules,
    signals,
    turn_pauses,
    window,
)
from apps.sessions.enums import EntryKind, Sender, TurnStatus
from apps.sessions.locks import lock_session
from apps.sessions.models import Turn
from apps.sessions.state import Stop, TurnState
from kernel.clock import now
from kernel.language import in_language
from kernel.taint import Taint
from kernel.tenancy import before_commit
from llm.language_detection import detect_language
from llm.offline import intents

INPUT_GATES = "input_gates"


def still_ours(state: TurnState) -> bool:
    """Lock the conversation and end the lease; when a person has taken over, end the turn without a
    word: what its gates let in or kept out of the message stays so."""
    # The locked row is another object; without this its deployment would be read once more.
    deployment = state.session.deployment
    ended = bus.ack_with(state.lease)
    state.session = lock_session(state.session.pk, ended)
    state.session.deployment = deployment
    state.more = ended.value
    ours = rules.may_speak(state.session.owner, state.session.owner_epoch, began_in=state.epoch)
    if ours and not state.overheard:
        return True
    record_outcome(state)
    kept_out = state.step == INPUT_GATES and state.stop is not None
    _end(state, TurnStatus.STOPPED, state.stop.reason if state.stop and kept_out else "taken_over")
    if not state.overheard:
        record(AuditEvent.TURN_SUPPRESSED, subject=f"session:{state.session.pk}", data={"step": state.step})
    return False


def escalate(state: TurnState) -> None:
    """Step 8, its other half: what a block asks for, and the pause where a person has to look, in the transaction that
    says so (spec 5.1.1)."""
    state.stop = _carried_out(state, turn_pauses.hold(state, state.stop))


def _carried_out(state: TurnState, stop: Stop | None) -> Stop | None:
    """Its report and its task. A task that cannot be asked for leaves what its author wrote for that case."""
    while stop is not None and stop.fix is not None and not proposals.fix(state, stop.fix):
        stop = stop.otherwise
    if stop is not None and stop.report:
        gate = stop.reason.removeprefix("gate:")
        record(AuditEvent.GATE_REPORTED, subject=f"session:{state.session.pk}", data={"gate": gate})
    return stop


def record_response(state: TurnState) -> None:
    """Step 11 (and 13: the frame leaves when the transaction has committed)."""
    text = _told(state)
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


def _told(state: TurnState) -> str:
    """Sentences of our own in the visitor's language; what a model or an author wrote stays as it is."""
    if state.stop is not None:
        with in_language(_language(state)):
            return str(state.stop.text)
    return state.response.message if state.response else ""


def _language(state: TurnState) -> str:
    before = (said.text for said in reversed(state.recent) if said.sender == Sender.VISITOR)
    return detect_language((state.message.text, *before))


def screen_plan(state: TurnState) -> None:
    """Step 12, its first half: a plan that is refused is refused before anything is said of it."""
    state.session.language = _language(state)
    proposals.screen(state, language=state.session.language)


def propose_plan(state: TurnState) -> None:
    """Step 12. A plan becomes a card, or is dispatched under a standing approval."""
    proposals.propose(state)


def hand_over(state: TurnState) -> None:
    """Step 13, its other half: who asked for a person, or whom a gate hands on, waits for staff from here on."""
    stop = state.stop or _carried_out(state, _refusal(state))
    if stop is not None and stop.wants_person:
        person_wanted.want_person(state.session, queue=stop.queue, because=stop.reason, language=_language(state))
    elif state.stop is None and state.response is not None and state.response.handoff:
        person_wanted.want_person(state.session, because=person_wanted.ASKED, language=_language(state))


def _refusal(state: TurnState) -> Stop | None:
    """What the gate that refused the plan leads to; its words have been said with the refusal."""
    return escalations.after_refusal(state) if state.response and state.refused_by else None


def record_outcome(state: TurnState) -> None:
    """Step 15. What the gates and models did, as counts and codes, also for turns without an answer."""
    model_runs.settle(state)
    subject = f"session:{state.session.pk}"
    for event, data in state.audit:
        record(AuditEvent(event), subject=subject, data=data)
    if state.fell_back:
        record(AuditEvent.MODEL_FELL_BACK, subject=subject, data={"reason": state.fell_back})


def move_mood(state: TurnState) -> None:
    """Step 15. The mood of the conversation, of a deployment with a personality."""
    if state.tone is None or state.overheard:
        return
    blocked = state.stop is not None and state.stop.held is None
    after = max((each.seq for each in state.recent if each.sender == Sender.VISITOR), default=0)
    completed = queries.work_completed(state.session.pk, after=after, until=state.message.seq)
    events = persona.events_of_turn(state.message.text, blocked=blocked, number=state.number, completed=completed)
    mood = personas.move_mood(
        state.session.mood, events, deployment_id=state.session.deployment_id, session_id=state.session.pk
    )
    if mood != state.session.mood:
        state.session.mood = mood
        state.session.save(update_fields=["mood"])


def finish(state: TurnState) -> None:
    """Step 16. The turn is counted, its message is done with, and its end is written down."""
    state.session.turns = state.number
    chronicle.touch(state.session)
    stopped = state.stop.reason if state.stop else ""
    _tell_unanswered(state)
    waits = state.stop is not None and state.stop.held is not None
    _end(state, TurnStatus.PAUSED if waits else TurnStatus.STOPPED if stopped else TurnStatus.DONE, stopped)
    if state.resumed is not None:
        pauses.mark_resumed(state.resumed)
    data = {"turn": state.number, "level": state.access.grant.level, "passages": len(state.passages)}
    left_out = len(state.window.evicted) if state.window else 0
    data |= {"prompts": list(state.prompts)} if state.prompts else {}
    data |= {"register": state.register, "mode": state.mode} if state.register and state.mode else {}
    data |= {"release": state.settings.number} if state.settings.number else {}
    data |= {"tone": f"{state.tone.context}:{state.tone.levels}"} if state.tone else {}
    data |= {name: count for name, count in (("evicted", left_out), ("untold", state.untold)) if count}
    record(
        AuditEvent.TURN_COMPLETED,
        subject=f"session:{state.session.pk}",
        data=data | ({"stopped": stopped} if stopped else {}),
    )


def _tell_unanswered(state: TurnState) -> None:
    """A question that the answer knew nothing about; its words as memory keeps them, without what is private."""
    answer = state.response
    if state.stop is not None or answer is None or state.heard or answer.citations or answer.plan_action:
        return
    said = [note.content for note in state.notes if note.source == SourceKind.CONVERSATION_RAW]
    if said and not answer.handoff and intents.looks_like_question(said[-1]):
        signals.question_unanswered(state.session, said[-1])
        if not state.session.is_test:
            asker = state.session.whose or str(state.session.pk)
            gaps.record_question(state.session.pk, said[-1], asker=asker, reason=GapReason.UNANSWERED)


def fail(state: TurnState, *, reason: str) -> None:
    """The turn broke off before it could close: its message goes back to the queue, or is dead after the fifth time."""
    bus.nack(state.lease, reason=reason)
    record_outcome(state)
    _end(state, TurnStatus.FAILED, reason[:80])


def _extras(state: TurnState) -> dict[str, object]:
    if state.response is None:
        return {}
    extras: dict[str, object] = {}
    if state.response.citations:
        extras["citations"] = [citation.model_dump(mode="json") for citation in state.response.citations]
    if state.response.suggestions:
        extras["suggestions"] = list(state.response.suggestions)
    return extras


def _end(state: TurnState, status: TurnStatus, reason: str) -> None:
    values = {
        "status": status,
        "reason": reason,
        "step": state.step,
        "model_name": state.model_name,
        "context": window.record_of(state),
        "read_as": None if state.text == state.message.text else state.text,
        "finished_at": now(),
    }
    # With the other writes of the closing, in one round trip.
    before_commit(_write_ends, (state.turn_id, values))


def _write_ends(ends: list[tuple[UUID, dict[str, object]]]) -> None:
    for turn_id, values in ends:
        Turn.objects.filter(pk=turn_id).update(**values)
