"""Hold content back until a person approves it at a gate: one pause, one card and one end, for all four triggers.

An approval lets exactly the content pass that its card showed, for the gates it named; any other end of the card is a
rejection (ADR 101). The pause is a row, so a process that dies loses nothing. Lock order: card, pause, then the rows of
the turn or work item that resumes. Only web processes open cards; workers open pauses and end those whose time is up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from uuid import UUID, uuid4

from django.db.models import QuerySet

from apps.approvals import locks, queries, registry
from apps.approvals.cards.lifecycle import withdraw_cards_about
from apps.approvals.cards.schemas import Binding, CardSubject, CardText, Fact, GateReason
from apps.approvals.cards.services import open_card
from apps.approvals.enums import ApprovalScope, CardKind, CardStatus, Pace, PauseState, PauseTrigger, Risk, Withdrawal
from apps.approvals.models import ApprovalToken, Card, Decision, GatePause
from apps.approvals.tokens import payloads
from apps.approvals.tokens.schemas import GatePass
from apps.approvals.tokens.services import check_token, verify_token
from apps.audit.enums import AuditEvent
from apps.audit.services import record
from kernel.clock import now
from kernel.stored_texts import stored_text

GATE_PAUSE = "gate_pause"
_INTENTS = {
    PauseTrigger.INPUT: stored_text("Let the bot answer this message"),
    PauseTrigger.OUTPUT: stored_text("Send this answer to the visitor"),
    PauseTrigger.TOOL: stored_text("Run this call"),
    PauseTrigger.STEP: stored_text("Continue with this step"),
}
_LABELS = {
    PauseTrigger.INPUT: (stored_text("Let the bot answer it"), stored_text("Don't answer it, send the standard reply")),
    PauseTrigger.OUTPUT: (stored_text("Send it as it is"), stored_text("Don't send it, send the standard reply")),
    PauseTrigger.TOOL: (stored_text("Run it with these values"), stored_text("Don't run it")),
    PauseTrigger.STEP: (stored_text("Continue with it as shown"), stored_text("Stop the work here")),
}


def open_pause(
    trigger: PauseTrigger,
    *,
    subject: CardSubject,
    gates: Sequence[GateReason],
    holds: Mapping[str, object],
    kept: Mapping[str, object] | None = None,
    seconds: int | None = None,
) -> GatePause:
    """Hold `holds` back for the named gates.

    `subject` is what waits, `kept` what it needs to resume, `seconds` how long it waits at most; by default as the pace
    of gate cards says. `open_pause_card` is a separate step, because a worker may open a pause and cannot open cards.
    """
    pause_id, moment = uuid4(), now()
    payload = payloads.gate_payload(str(pause_id), trigger, [gate.model_dump() for gate in gates], holds)
    # Refuses now what could not be signed later, when a person has already read it.
    payloads.payload_hash(payload)
    pause: GatePause = GatePause.objects.create(
        id=pause_id,
        trigger=trigger,
        subject_kind=subject.kind,
        subject_id=subject.id,
        session_id=subject.session_id,
        deployment_id=subject.deployment_id,
        payload=payload,
        kept=dict(kept or {}),
        created_at=moment,
        expires_at=moment + timedelta(seconds=seconds or queries.card_lifetime(Pace.GATE, subject.deployment_id)),
    )
    record(AuditEvent.HELD_FOR_REVIEW, subject=_subject(pause), data={"pause": str(pause.pk), "trigger": trigger.value})
    return pause


def open_pause_card(
    pause: GatePause,
    *,
    reversible: bool,
    declared_risk: Risk = Risk.LOW,
    untrusted_target: bool = False,
    warnings: Sequence[str] = (),
    origins: Mapping[str, object] | None = None,
) -> Card | None:
    """Open the pause's card; None for a pause that has ended or has a card. Web processes only.

    `untrusted_target`: an outsider or the model decided where something goes. `warnings` are lines about what was read
    before, `origins` where the values of the call come from.
    """
    if pause.state != PauseState.WAITING or pause.expires_at <= now():
        return None
    if Card.objects.filter(subject_kind=GATE_PAUSE, subject_id=pause.pk).exists():
        return None
    trigger = PauseTrigger(pause.trigger)
    approve, decline = _LABELS[trigger]
    gates = pause.payload["gates"]
    return open_card(
        CardKind.GATE,
        subject=CardSubject(GATE_PAUSE, pause.pk, pause.deployment_id, pause.session_id),
        binding=Binding(
            ApprovalScope.SINGLE_STEP,
            pause.payload,
            reversible=reversible,
            declared_risk=declared_risk,
            untrusted_target=untrusted_target,
        ),
        text=CardText(
            intent=_INTENTS[trigger],
            rationale=stored_text("A gate requires approval here.")
            if len(gates) == 1
            else stored_text("Several gates require approval here."),
            consequence={"approve": approve, "decline": decline},
            facts=[Fact(stored_text("Warning"), text=line) for line in warnings],
            details={"origins": dict(origins)} if origins else {},
        ),
        until=pause.expires_at,
    )


def apply_decision(card: Card, decision: Decision, token: ApprovalToken | None) -> None:
    """End a pause whose card was decided. An approval is spent here, for exactly what the card showed."""
    pause = locks.lock_pause(card.subject_id)
    if pause.state != PauseState.WAITING:
        return
    bound = payloads.approvable(ApprovalScope.SINGLE_STEP, card.payload)
    # The card and the pause are two rows: an approval counts only while both still say the same.
    if token is not None and card.payload == pause.payload and verify_token(token, bound).ok:
        pause.token = token
        _end(pause, PauseState.APPROVED)
    else:
        _end(pause, PauseState.DECLINED)


def apply_card_end(card: Card) -> None:
    """End a pause whose card expired or was withdrawn."""
    pause = locks.lock_pause(card.subject_id)
    if pause.state == PauseState.WAITING:
        _end(pause, PauseState.EXPIRED if card.status == CardStatus.EXPIRED else PauseState.WITHDRAWN)


def expire_pause(pause_id: UUID, moment: datetime) -> None:
    """End a pause whose time is up at `moment`, even if its card was never opened."""
    pause = locks.lock_pause(pause_id)
    if pause.state == PauseState.WAITING and pause.expires_at <= moment:
        _end(pause, PauseState.EXPIRED)


def withdraw_pauses(subject_kind: str, subject_id: UUID, *, reason: Withdrawal, actor: str = "system") -> int:
    """Withdraw the pauses of a subject; approvals that nothing has used yet do not count any more. Returns how many
    pauses were still waiting for a person."""
    waiting = 0
    for pause_id in _unfinished(subject_kind, subject_id):
        # The card first: the order of locks is card, then pause.
        had_card = withdraw_cards_about(GATE_PAUSE, pause_id, reason=reason, actor=actor) > 0
        pause = locks.lock_pause(pause_id)
        waiting += had_card or pause.state == PauseState.WAITING
        if pause.state in (PauseState.WAITING, PauseState.APPROVED):
            _end(pause, PauseState.WITHDRAWN)
    return waiting


def lock_unfinished_pauses(subject_kind: str, subject_id: UUID) -> None:
    """Lock what `withdraw_pauses` locks, for a caller that must lock the subject before it withdraws."""
    for pause_id in _unfinished(subject_kind, subject_id):
        locks.lock_open_cards(subject_kind=GATE_PAUSE, subject_id=pause_id)
        locks.lock_pause(pause_id)


def _unfinished(subject_kind: str, subject_id: UUID) -> list[UUID]:
    pauses = _pauses_of(subject_kind, subject_id).filter(state__in=[PauseState.WAITING, PauseState.APPROVED])
    return list(pauses.order_by("pk").values_list("pk", flat=True))


def _pauses_of(subject_kind: str, subject_id: UUID) -> QuerySet[GatePause]:
    pauses: QuerySet[GatePause] = GatePause.objects.filter(subject_kind=subject_kind, subject_id=subject_id)
    return pauses


def overdue_pauses(subject_kind: str, subject_id: UUID, moment: datetime) -> list[UUID]:
    """Return the pauses of this subject that have not ended although their time is up at `moment`."""
    late = _pauses_of(subject_kind, subject_id).filter(state=PauseState.WAITING, expires_at__lte=moment)
    return list(late.order_by("pk").values_list("pk", flat=True))


def count_pauses(subject_kind: str, subject_id: UUID) -> int:
    return int(_pauses_of(subject_kind, subject_id).count())


def gate_pass(pause: GatePause) -> GatePass | None:
    """Return what the approval of this pause lets pass; None without a valid one. Decided from the signed token, which
    binds the row's content, and never from the state of the row."""
    payload = payloads.gate_payload(str(pause.pk), pause.trigger, pause.payload["gates"], pause.payload["holds"])
    if pause.token is None or not check_token(pause.token, payloads.approvable(ApprovalScope.SINGLE_STEP, payload)).ok:
        return None
    return GatePass(pause.trigger, pause.gate_names, payloads.payload_hash(payload["holds"]))


def gate_passes(subject_kind: str, subject_id: UUID, *, only: Sequence[UUID] | None = None) -> tuple[GatePass, ...]:
    """Return what people have approved for this subject; with `only`, in these pauses."""
    rows = _pauses_of(subject_kind, subject_id).filter(token__isnull=False)
    rows = rows if only is None else rows.filter(pk__in=only)
    passes = (gate_pass(pause) for pause in rows.select_related("token"))
    return tuple(valid for valid in passes if valid is not None)


def mark_resumed(pause: GatePause) -> None:
    """Record that the work has resumed, with or without an approval, and delete what was kept for that."""
    state = {"state": PauseState.RESUMED} if pause.state == PauseState.APPROVED else {}
    GatePause.objects.filter(pk=pause.pk).update(kept={}, **state)


def _end(pause: GatePause, state: PauseState) -> None:
    pause.state, pause.ended_at = state, now()
    if state == PauseState.WITHDRAWN:
        pause.kept = {}
    pause.save(update_fields=["state", "ended_at", "token", "kept"])
    data = {"pause": str(pause.pk), "trigger": str(pause.trigger), "outcome": state.value}
    record(AuditEvent.HELD_REVIEW_ENDED, subject=_subject(pause), data=data)
    registry.pause_handler_of(pause.subject_kind)(pause)


def _subject(pause: GatePause) -> str:
    return f"session:{pause.session_id}" if pause.session_id else f"{pause.subject_kind}:{pause.subject_id}"
