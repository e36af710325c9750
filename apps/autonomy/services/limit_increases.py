"""Continue a session that its own limit stopped, when a person raises the limit.

The approval is bound to that session and to the new limit, and spent once. The card is opened in a trusted worker and
decided in a web process. The session that continues is a new one of the same occasion: completed phases, and what a
stopped analysis has seen, are not paid for again; what was used counts.
"""

from __future__ import annotations

from decimal import Decimal
from uuid import UUID

from apps.approvals.cards.schemas import Binding, CardSubject, CardText
from apps.approvals.cards.services import open_card
from apps.approvals.enums import ApprovalScope, CardKind
from apps.approvals.models import ApprovalToken, Card, Decision
from apps.approvals.tokens.payloads import approvable
from apps.approvals.tokens.services import verify_token
from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.autonomy import queries, rules
from apps.autonomy.locks import lock_session
from apps.autonomy.models import AutonomousSession
from apps.autonomy.schemas import DEFAULT_LIMITS, MOST_CALLS, MOST_SECONDS, MOST_TOKENS, MOST_USD, TaskLimits
from apps.autonomy.services import notices, session_start
from apps.guard.enums import TerminalReason
from apps.guard.models import GuardedRun
from apps.guard.rules import format_amount
from kernel.canonical import sha256_hex
from kernel.stored_texts import stored_text

SUBJECT = "autonomous_budget"
_CARD_SECONDS = 7 * 86_400
# The field of the limits that stopped a session, and its upper bound.
RAISABLE = {
    TerminalReason.COST_CAP_REACHED: ("cost_usd", MOST_USD),
    TerminalReason.BUDGET_TOKENS: ("tokens", MOST_TOKENS),
    TerminalReason.BUDGET_TOOL_CALLS: ("calls", MOST_CALLS),
    TerminalReason.BUDGET_WALL_CLOCK: ("wall_seconds", MOST_SECONDS),
}


def open_increase_card(session_id: UUID) -> Card | None:
    """Open a card to raise the limit that stopped this session.

    Returns None where it cannot be raised: the task has no owner or may not start any more, or the company allows no
    more than the session had.
    """
    session = lock_session(session_id)
    payload = payload_for(session)
    if payload is None or queries.spawn_refusal(session.task) is not None:
        return None
    card = open_card(
        CardKind.BUDGET,
        subject=CardSubject(SUBJECT, session.pk, session.task.deployment_id, requested_by="autonomy"),
        binding=Binding(ApprovalScope.BUDGET, payload, reversible=True),
        text=CardText(
            intent=stored_text("Raise the limit of {task}").format(task=session.task.name)[:300],
            rationale=stored_text("This run stopped at its limit. With a higher limit it continues where it stopped."),
            consequence={
                "approve": stored_text("Raise the limit and continue"),
                "decline": stored_text("Keep it stopped"),
            },
        ),
        seconds=_CARD_SECONDS,
    )
    notices.attach_card(session, card.pk)
    return card


def payload_for(session: AutonomousSession) -> dict[str, object] | None:
    """What the approval binds: the session, its state, and the limit before and after, with spent and remaining.

    None where nothing can be raised.
    """
    run = session.run
    raisable = RAISABLE.get(TerminalReason(session.terminal_reason or TerminalReason.FAILED))
    if run is None or raisable is None or not session.is_over:
        return None
    name, most = raisable
    limit, used = getattr(session.frozen_limits, name), _used(run, session, name)
    allowed = rules.smallest_limits(queries.company_limits(queries.autonomy_settings()), TaskLimits(**{name: most}))
    # At least one more full limit beyond what was used, which reservations may have taken past the limit.
    doubled = max(limit * 2, used + limit) if limit else getattr(DEFAULT_LIMITS, name)
    new = min(doubled, getattr(allowed, name))
    if limit is None or new <= limit or new <= used:
        return None
    return {
        "work_item_id": str(session.pk),
        "plan_hash": sha256_hex(f"{session.task_id}:{session.origin}:{run.pk}:{session.terminal_reason}"),
        "before": {f"limit_{name}": _text(limit), f"spent_{name}": _text(used), f"remaining_{name}": _text(0)},
        "after": {f"limit_{name}": _text(new), f"spent_{name}": _text(used), f"remaining_{name}": _text(new - used)},
    }


def _used(run: GuardedRun, session: AutonomousSession, name: str) -> object:
    """What this session has used, including reservations for calls whose result is unknown."""
    match name:
        case "cost_usd":
            return run.cost_total + run.cost_reserved
        case "tokens":
            return run.input_tokens + run.output_tokens
        case "calls":
            return run.calls
        case _:
            return int(((session.ended_at or run.started_at) - run.started_at).total_seconds())


def _text(value: object) -> str:
    return format_amount(value) if isinstance(value, Decimal) else str(value)


def apply_decision(card: Card, decision: Decision, token: ApprovalToken | None) -> AutonomousSession | None:
    """Continue the session within the new limit if the card was approved. In the decision's transaction."""
    if token is None:
        return None
    session = lock_session(card.subject_id)
    verdict = verify_token(token, approvable(ApprovalScope.BUDGET, card.payload))
    refusal = "" if verdict.ok else verdict.reason.value
    # The session may have changed since the card was opened; the approval covers the old state only.
    if not refusal and dict(card.payload) != payload_for(session):
        refusal = "stale"
    spawn_refusal = queries.spawn_refusal(session.task)
    refusal = refusal or (spawn_refusal.value if spawn_refusal is not None else "")
    if refusal:
        data = {"reason": refusal, "kind": session.trigger_kind, "times": 1}
        record(AuditEvent.SPAWN_REFUSED, subject=f"task:{session.task_id}", data=data)
        return None
    actor = f"user:{decision.user.pk}"
    record(AuditEvent.AUTONOMOUS_RAISED, actor=actor, subject=f"autonomous:{session.pk}", data={"card": str(card.pk)})
    return _continue(session, card)


def _continue(session: AutonomousSession, card: Card) -> AutonomousSession | None:
    """Continue the same occasion from its checkpoint.

    It gets the rest of the raised limit, what was left of the others, and its full time again.
    """
    name, _ = RAISABLE[TerminalReason(session.terminal_reason)]
    new = TaskLimits.model_validate({name: card.payload["after"][f"limit_{name}"]})
    raised = session.frozen_limits.model_copy(update={name: getattr(new, name)})
    left = queries.limits_left(session, raised)
    if name != "wall_seconds":
        left = left.model_copy(update={"wall_seconds": session.frozen_limits.wall_seconds})
    return session_start.continue_session(session, key=f"raised:{card.pk}", limits=left)
