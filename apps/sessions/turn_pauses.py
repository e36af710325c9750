"""Pause a turn until a person has decided: the turn ends with a pause and a waiting line, and is queued again later.

Nothing waits in a process: the row of the pause says how to go on (ADR 101). What a person approved lets exactly that
content through; anything else ends with the gate's safe answer. A pause whose conversation has moved on (taken over,
resolved, forgotten) has no effect.
"""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from apps.approvals.cards import pauses
from apps.approvals.cards.schemas import CardSubject, GateReason
from apps.approvals.enums import PauseState, PauseTrigger, Withdrawal
from apps.approvals.models import GatePause
from apps.approvals.tokens.payloads import has_passed_gate
from apps.bus import services as bus
from apps.bus.enums import Kind, Queue, Sender
from apps.gates.content import sentences
from apps.gates.enums import GateAction, GateCode, GateLane
from apps.gates.schemas import GateReport, GateResult
from apps.sessions import escalations, value_sources
from apps.sessions.context_state import Focus
from apps.sessions.models import ChatSession
from apps.sessions.state import Held, Stop, TurnState
from apps.work.provenance import PlanOrigins
from kernel.language import gettext_lazy
from llm.calls import PlannedCall

TURN = "turn"
WAITING = gettext_lazy("A colleague is checking this. We'll reply here.")
# A visitor floods no review queue: beyond these the safe answer is given at once.
MOST_WAITING, MOST_FOR_A_MESSAGE = 3, 3
_REASON_CHARS = 300


def held_back(state: TurnState, report: GateReport, trigger: PauseTrigger, holds: Mapping[str, object]) -> Stop | None:
    """How the turn waits when gates ask for a person; None when people have let exactly this through already."""
    asking = tuple(
        result
        for result in report.asking
        if not has_passed_gate(state.passes, trigger=trigger, gate=result.gate_name, holds=holds)
    )
    return waits(Held(trigger, asking, holds)) if asking else None


def waits(held: Held) -> Stop:
    return Stop(f"gate:{held.asking[0].gate_name}", WAITING, held=held)


def hold(state: TurnState, stop: Stop | None) -> Stop | None:
    """Write the pause down and ask a person, in the closing transaction; the safe answer where too much waits."""
    if stop is None or stop.held is None:
        return stop
    held, before = stop.held, earlier(state)
    waiting = GatePause.objects.filter(subject_kind=TURN, subject_id=state.session.pk, state=PauseState.WAITING)
    # Under the conversation's lock, so that two turns cannot exceed it together.
    if len(before) >= MOST_FOR_A_MESSAGE or waiting.count() >= MOST_WAITING:
        return escalations.stop_for(held.asking[0], state.policy.escalations)
    gates = [GateReason(name=one.gate_name, reason=one.reason[:_REASON_CHARS]) for one in held.asking]
    session = state.session
    pause = pauses.open_pause(
        held.trigger,
        subject=CardSubject(TURN, session.pk, session.deployment_id, session.pk),
        gates=gates,
        holds=held.holds,
        kept=_kept(state, held, before),
        seconds=_seconds(state, held),
    )
    account = _account(state, held)
    pauses.open_pause_card(
        pause,
        reversible=held.trigger != PauseTrigger.OUTPUT,
        untrusted_target=account is not None and account.is_marked,
        warnings=sentences(state.marks),
        origins=account.model_dump(mode="json") if account else None,
    )
    return stop


def _account(state: TurnState, held: Held) -> PlanOrigins | None:
    """Where the values of a call come from; None for what is no call of one of the deployment's tools."""
    name = held.holds.get("tool", "")
    tool = next((each for each in state.policy.tools if each.name == name), None)
    if tool is None:
        return None
    return value_sources.tracing_of(state).origins_of([(PlannedCall(name, dict(held.holds["args"])), tool)])


def earlier(state: TurnState) -> list[str]:
    """The pauses of this message so far, oldest first."""
    if state.resumed is None:
        return []
    return [*state.resumed.kept.get("earlier", ()), str(state.resumed.pk)]


def _seconds(state: TurnState, held: Held) -> int | None:
    """The shortest time that one of the asking gates sets for itself; None where none does."""
    asking = {result.gate_name for result in held.asking}
    named = [gate.wait_seconds for gate in state.policy.gates if gate.name in asking and gate.wait_seconds]
    return min(named, default=None)


def _kept(state: TurnState, held: Held, before: list[str]) -> dict[str, object]:
    kept: dict[str, object] = {
        "seq": state.message.seq,
        "epoch": state.epoch,
        "forgettings": state.focus.forgettings,
        "customer": state.session.customer,
        "trace": state.lease.message.trace_id,
        "earlier": before,
        "gate": held.asking[0].gate_name,
        "on_block": held.asking[0].on_block,
    }
    if held.trigger == PauseTrigger.OUTPUT and state.response is not None:
        kept["answer"] = {
            "response": state.response.model_dump(mode="json"),
            "text": state.text,
            "route": state.route,
            "model_name": state.model_name,
            "prompts": list(state.prompts),
            "refused_by": state.refused_by,
            "marks": [vars(mark) for mark in state.marks],
        }
    return kept


def enqueue_turn(pause: GatePause) -> None:
    """A pause of a turn has ended, with an answer or without: its message gets another turn, once."""
    if pause.state == PauseState.WITHDRAWN:
        return
    bus.send_message(
        Queue.PROXY,
        kind=Kind.USER_MESSAGE,
        scope_id=pause.subject_id,
        sender=Sender.USER,
        payload={"seq": pause.kept["seq"], "pause": str(pause.pk)},
        trace_id=pause.kept["trace"],
        # One turn for one pause, however often its end is told.
        message_id=f"pause:{pause.pk}",
    )


def lock_pauses(session_id: UUID) -> None:
    """Lock what `withdraw_pauses` locks, for a caller that must lock the conversation before it withdraws."""
    pauses.lock_unfinished_pauses(TURN, session_id)


def withdraw_pauses(session_id: UUID, *, reason: Withdrawal, actor: str) -> None:
    """Take back what the turns of a conversation wait for, with the cards. Before the conversation is locked."""
    pauses.withdraw_pauses(TURN, session_id, reason=reason, actor=actor)


def is_void(pause: GatePause, session: ChatSession) -> bool:
    """True when the conversation has moved on from what the pause was about."""
    kept = pause.kept
    if pause.state not in (PauseState.APPROVED, PauseState.DECLINED, PauseState.EXPIRED) or not kept:
        return True
    return bool(kept["epoch"] != session.owner_epoch or kept["forgettings"] != Focus.of(session.focus).forgettings)


def refusal(state: TurnState, trigger: PauseTrigger) -> Stop | None:
    """The gate's safe answer, where this turn continues after an unapproved pause at this trigger."""
    pause = state.resumed
    if pause is None or pause.trigger != trigger:
        return None
    kept = pause.kept
    # What was prepared for a customer is not told to the person who is there after them.
    if pause.state == PauseState.APPROVED and kept["customer"] in ("", state.session.customer):
        return None
    problem = GateResult(
        kept["gate"], GateLane.POLICY, GateAction.REQUIRE_APPROVAL, GateCode.NEEDS_APPROVAL, on_block=kept["on_block"]
    )
    return escalations.stop_for(problem, state.policy.escalations)
