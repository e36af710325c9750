"""Steps 1 and 14: run the input gates on the message, and raise the access level that they earned.

Gates run between the transactions, because a script may take seconds. A level is written at once, before any tool is
offered, so that the audit log shows it rise before the first call that needed it.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from functools import partial
from typing import Any

from apps.access.grants import Passed, grant_of
from apps.approvals.enums import PauseTrigger
from apps.audit.enums import AuditEvent
from apps.gates.allowance import Allowance
from apps.gates.enums import GateTrigger
from apps.gates.schemas import GateReport
from apps.guard.services import GateJudge
from apps.sessions import escalations, gate_runs, identity_claims, levels, policy, turn_pauses
from apps.sessions.enums import Sender
from apps.sessions.locks import lock_session
from apps.sessions.model_runs import model_of
from apps.sessions.ratelimit import limits
from apps.sessions.rules import CLAIM_MESSAGES
from apps.sessions.state import Stop, TurnState
from kernel.tenancy import in_scope
from llm.enums import Role


async def check(state: TurnState) -> Stop | None:
    """Step 1. A block ends the turn with its escalation, and a wish for a person pauses it; a rewritten message is what
    every later step reads."""
    if (refused := turn_pauses.refusal(state, PauseTrigger.INPUT)) is not None:
        return refused
    context = _asked_about(state)
    guess = await identity_claims.begin(state, context)
    held_back = guess.gates if guess.stop else frozenset[str]()
    report, stop = await _judged(state, context, without=held_back)
    state.text = str(report.context.get("message", state.text))
    state.verified = report.verified
    # A correct claim gives its count back, so that only wrong ones use up the limit.
    if any(result.gate_name in guess.gates for result in report.verified):
        await identity_claims.passed(guess)
    if stop is None:
        return guess.stop
    if report.blocked and report.blocked.gate_name in policy.level_gates(state.policy):
        state.audit.append((AuditEvent.IDENTITY_FAILED, {"gate": report.blocked.gate_name}))
    return stop


async def overhear(state: TurnState) -> Stop | None:
    """Step 1 for messages to a person: decide whether and how models may read them later. No answer or escalation
    follows, no level moves, no identity is checked and no advisory gate runs (ADR 43)."""
    report = await run_gates(
        state, GateTrigger.EVERY_USER_MESSAGE, _asked_about(state), without=gate_runs.idle_gates(state.policy)
    )
    state.text = str(report.context.get("message", state.text))
    problem = report.blocked or report.needs_approval
    return Stop(f"gate:{problem.gate_name}") if problem else None


def _asked_about(state: TurnState) -> dict[str, object]:
    """What the gates of a message are asked about."""
    said = [entry.text for entry in state.recent if entry.sender == Sender.VISITOR]
    return {
        "message": state.text,
        "sender": "visitor",
        "recent": said[-CLAIM_MESSAGES:],
        "verified_gates": sorted(state.access.grant.verified),
    }


async def _judged(
    state: TurnState, context: dict[str, object], *, without: frozenset[str]
) -> tuple[GateReport, Stop | None]:
    """What the gates say, asked again where the escalation of a block is to retry; and how the turn ends if it does."""
    tried: Counter[str] = Counter()
    while True:
        report = await run_gates(state, GateTrigger.EVERY_USER_MESSAGE, context, without=without)
        if report.blocked is None:
            holds = {"message": report.context.get("message", state.text)}
            return report, turn_pauses.held_back(state, report, PauseTrigger.INPUT, holds)
        chosen = escalations.after_block(state, report.blocked, tried, repeats=escalations.RETRIES)
        if isinstance(chosen, Stop):
            return report, chosen


async def run_gates(
    state: TurnState, trigger: GateTrigger, context: dict[str, Any], *, without: frozenset[str] = frozenset()
) -> GateReport:
    """The turn's frozen gates of one trigger, less those named in `without`."""
    report = await gate_runs.run_policy_gates(
        state.tenant_id, state.policy, trigger, context, allowance=_with_a_model(state), without=without
    )
    state.audit += report.audit
    return report


def _with_a_model(state: TurnState) -> Allowance:
    """The turn's allowance; gates that ask a model ask the planner's, unless they name their own."""
    if state.allowance.ask is None:
        model, keys = model_of(state, Role.PLANNER), state.session.deployment.keys
        counted = partial(limits.may_ask, state.tenant_id, state.session.pk)
        here = asyncio.get_running_loop()
        state.allowance.ask = GateJudge(state.run, model, here, keys=keys, may_ask=counted)
    return state.allowance


async def apply_levels(state: TurnState) -> Stop | None:
    """Step 14. Passed identity checks move the level in a transaction of their own; so does an expiry."""
    passed = [
        Passed(result.gate_name, result.subject.id, result.subject.name)
        for result in state.verified
        if result.subject is not None
    ]
    if passed or state.access.grant != grant_of(state.session):
        await in_scope(state.tenant_id, _move, state, passed)
    return None


def _move(state: TurnState, passed: list[Passed]) -> None:
    # As the row is now: a level that another process raised or ended since the turn began is not overwritten.
    session = lock_session(state.session.pk)
    state.access = levels.move(session, state.policy.levels, passed)
    session.deployment = state.session.deployment
    state.session = session
