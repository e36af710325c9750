"""Hold back what a gate wants a person to look at: one pause, one card and one end, for all four triggers (ADR 101).

Always holds: an approval lets exactly the content pass that its card showed, for the gates it named; anything but an
approval is a no. The row is the pause, so a process that dies loses nothing. Lock order: card, pause, then the rows of
whoever resumes. Cards are opened in web processes only; workers begin pauses and end those whose time is up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

from django.db.models import QuerySet

from apps.approvals import locks, payloads, queries, signals
from apps.approvals.asks import About, Binding, CardText, GateReason
from apps.approvals.enums import ApprovalScope, CardKind, CardStatus, Pace, PauseState, PauseTrigger, Risk, Withdrawal
from apps.approvals.models import ApprovalToken, Card, Decision, GatePause
from apps.approvals.schemas import Fact, GatePass
from apps.approvals.services.cards import open_card
from apps.approvals.services.course import withdraw_about
from apps.approvals.services.tokens import check, verify
from apps.audit.enums import AuditEvent
from apps.audit.services import record
from kernel.clock import now

GATE_PAUSE = "gate_pause"
_INTENTS = {
    PauseTrigger.INPUT: "Let the bot answer this message",
    PauseTrigger.OUTPUT: "Send this answer to the visitor",
    PauseTrigger.TOOL: "Run this call",
    PauseTrigger.STEP: "Continue with this step",
}
_LABELS = {
    PauseTrigger.INPUT: ("Let the bot answer it", "Don't answer it, send the standard reply"),
    PauseTrigger.OUTPUT: ("Send it as it is", "Don't send it, send the standard reply"),
    PauseTrigger.TOOL: ("Run it with these values", "Don't run it"),
    PauseTrigger.STEP: ("Continue with it as shown", "Stop the work here"),
}


def begin(
    trigger: PauseTrigger,
    *,
    about: About,
    gates: Sequence[GateReason],
    holds: Mapping[str, Any],
    kept: Mapping[str, Any] | None = None,
    seconds: int | None = None,
) -> GatePause:
    """Hold `holds` back for the named gates. `about`: what waits; `kept`: what going on takes; `seconds`: how long,
    else as the gates' pace says. The card is another step (`ask`), because a worker may begin a pause."""
    pause_id, moment = uuid4(), now()
    payload = payloads.gate_payload(str(pause_id), trigger, [gate.model_dump() for gate in gates], holds)
    payloads.payload_hash(payload)
    pause: GatePause = GatePause.objects.create(
        id=pause_id,
        trigger=trigger,
        subject_kind=about.kind,
        subject_id=about.id,
        session_id=about.session_id,
        deployment_id=about.deployment_id,
        payload=payload,
        kept=dict(kept or {}),
        created_at=moment,
        expires_at=moment + timedelta(seconds=seconds or queries.patience(Pace.GATE, about.deployment_id)),
    )
    record(AuditEvent.HELD_FOR_REVIEW, subject=_subject(pause), data={"pause": str(pause.pk), "trigger": trigger.value})
    return pause


def ask(
    pause: GatePause,
    *,
    reversible: bool,
    declared_risk: Risk = Risk.LOW,
    lifted: bool = False,
    warnings: Sequence[str] = (),
    origins: Mapping[str, Any] | None = None,
) -> Card | None:
    """Open the pause's card, in a web process; None for a pause that is over or has its card. `lifted`: an outsider or
    the model decided where something goes; `warnings`: lines about what was read before; `origins`: where the values of
    the call come from."""
    if pause.state != PauseState.WAITING or pause.expires_at <= now() or _has_card(pause):
        return None
    trigger = PauseTrigger(pause.trigger)
    approve, decline = _LABELS[trigger]
    gates = pause.payload["gates"]
    return open_card(
        CardKind.GATE,
        about=About(GATE_PAUSE, pause.pk, pause.deployment_id, pause.session_id),
        binding=Binding(
            ApprovalScope.SINGLE_STEP,
            pause.payload,
            reversible=reversible,
            declared_risk=declared_risk,
            lifted=lifted,
        ),
        text=CardText(
            intent=_INTENTS[trigger],
            rationale="A gate asks for a person here." if len(gates) == 1 else "Several gates ask for a person here.",
            consequence={"approve": approve, "decline": decline},
            facts=[Fact("Warning", text=line) for line in warnings],
            details={"origins": dict(origins)} if origins else {},
        ),
        until=pause.expires_at,
    )


def _has_card(pause: GatePause) -> bool:
    return bool(Card.objects.filter(subject_kind=GATE_PAUSE, subject_id=pause.pk).exists())


def decided(card: Card, decision: Decision, token: ApprovalToken | None) -> None:
    """A person answered the card of a pause. An approval is spent here, for exactly what the card showed."""
    pause = locks.lock_pause(card.subject_id)
    if pause.state != PauseState.WAITING:
        return
    bound = payloads.approvable(ApprovalScope.SINGLE_STEP, card.payload)
    if token is not None and card.payload == pause.payload and verify(token, bound).ok:
        pause.token = token
        _end(pause, PauseState.APPROVED)
    else:
        _end(pause, PauseState.DECLINED)


def came_to_nothing(card: Card) -> None:
    """The card of a pause expired or was withdrawn."""
    pause = locks.lock_pause(card.subject_id)
    if pause.state == PauseState.WAITING:
        _end(pause, PauseState.EXPIRED if card.status == CardStatus.EXPIRED else PauseState.WITHDRAWN)


def expire(pause_id: UUID) -> None:
    """End a pause whose time is up, also one whose card was never opened."""
    pause = locks.lock_pause(pause_id)
    if pause.state == PauseState.WAITING and pause.expires_at <= now():
        _end(pause, PauseState.EXPIRED)


def withdraw_pauses(subject_kind: str, subject_id: UUID, *, reason: Withdrawal, actor: str = "system") -> int:
    """Take back what this subject waits for; an approval that nothing has used yet counts no more. Returns how many
    pauses were still waiting for a person."""
    waited = 0
    for pause_id in _unfinished(subject_kind, subject_id):
        asked = withdraw_about(GATE_PAUSE, pause_id, reason=reason, actor=actor) > 0
        pause = locks.lock_pause(pause_id)
        waited += asked or pause.state == PauseState.WAITING
        if pause.state in (PauseState.WAITING, PauseState.APPROVED):
            _end(pause, PauseState.WITHDRAWN)
    return waited


def lock_unfinished(subject_kind: str, subject_id: UUID) -> None:
    """Lock what `withdraw_pauses` locks, for a caller who locks the subject before it withdraws."""
    for pause_id in _unfinished(subject_kind, subject_id):
        locks.lock_waiting(subject_kind=GATE_PAUSE, subject_id=pause_id)
        locks.lock_pause(pause_id)


def _unfinished(subject_kind: str, subject_id: UUID) -> list[UUID]:
    found = _of(subject_kind, subject_id).filter(state__in=[PauseState.WAITING, PauseState.APPROVED])
    return list(found.order_by("pk").values_list("pk", flat=True))


def _of(subject_kind: str, subject_id: UUID) -> QuerySet[GatePause]:
    found: QuerySet[GatePause] = GatePause.objects.filter(subject_kind=subject_kind, subject_id=subject_id)
    return found


def overdue(subject_kind: str, subject_id: UUID) -> list[UUID]:
    """The pauses of this subject whose time is up and that have not ended."""
    late = _of(subject_kind, subject_id).filter(state=PauseState.WAITING, expires_at__lte=now())
    return list(late.order_by("pk").values_list("pk", flat=True))


def count_of(subject_kind: str, subject_id: UUID) -> int:
    """How often this subject was held back."""
    return int(_of(subject_kind, subject_id).count())


def pass_of(pause: GatePause) -> GatePass | None:
    """What the approval of this pause lets through; None without one that holds. Decided from the signed token, which
    binds the row's content, and never from the state of the row."""
    payload = payloads.gate_payload(str(pause.pk), pause.trigger, pause.payload["gates"], pause.payload["holds"])
    if pause.token is None or not check(pause.token, payloads.approvable(ApprovalScope.SINGLE_STEP, payload)).ok:
        return None
    return GatePass(pause.trigger, pause.gate_names, payloads.payload_hash(payload["holds"]))


def passes_of(subject_kind: str, subject_id: UUID, *, only: Sequence[UUID] | None = None) -> tuple[GatePass, ...]:
    """What people have let through for this subject; `only`: of these pauses."""
    rows = _of(subject_kind, subject_id).filter(token__isnull=False)
    rows = rows if only is None else rows.filter(pk__in=only)
    return tuple(found for pause in rows.select_related("token") if (found := pass_of(pause)) is not None)


def resume(pause: GatePause) -> None:
    """Whoever waited has gone on, with or without an approval: what was kept for that is forgotten."""
    done = {"state": PauseState.RESUMED} if pause.state == PauseState.APPROVED else {}
    GatePause.objects.filter(pk=pause.pk).update(kept={}, **done)


def _end(pause: GatePause, state: PauseState) -> None:
    pause.state, pause.ended_at = state, now()
    if state == PauseState.WITHDRAWN:
        pause.kept = {}
    pause.save(update_fields=["state", "ended_at", "token", "kept"])
    data = {"pause": str(pause.pk), "trigger": str(pause.trigger), "outcome": state.value}
    record(AuditEvent.HELD_REVIEW_ENDED, subject=_subject(pause), data=data)
    signals.pause_ended(pause)


def _subject(pause: GatePause) -> str:
    return f"session:{pause.session_id}" if pause.session_id else f"{pause.subject_kind}:{pause.subject_id}"
