"""Steps 1 and 14: does policy let this message in, and did it prove who the visitor is?

Gates run between the transactions: a script may take seconds. What they earned is written at once, before any tool is
offered, so that the audit log shows a level rise before the first call that needed it (ADR 0004).
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.gates.enums import GateTrigger
from apps.gates.schemas import GateReport
from apps.gates.services import check_gates
from apps.sessions import chronicle, escalations, guessing, policy
from apps.sessions.access import PUBLIC, AccessController
from apps.sessions.enums import EntryKind, Sender
from apps.sessions.locks import lock_session
from apps.sessions.models import ChatSession
from apps.sessions.state import Stop, TurnState
from apps.sessions.steps.opening import grant_of
from kernel.clock import now
from kernel.taint import Taint
from kernel.tenancy import in_scope

# How many earlier messages of the visitor an identity check may read: a name in one, the date of birth in the next.
CLAIM_MESSAGES = 2


async def check(state: TurnState) -> Stop | None:
    """Step 1. A block ends the turn with its escalation; a rewritten message is what every later step reads."""
    said = [entry.text for entry in state.recent if entry.sender == Sender.VISITOR]
    context = {
        "message": state.text,
        "sender": "visitor",
        "recent": said[-CLAIM_MESSAGES:],
        "verified_gates": sorted(state.access.grant.verified),
    }
    guess = await guessing.begin(state, context)
    held_back = guess.gates if guess.stop else frozenset[str]()
    report = await run_gates(state, GateTrigger.EVERY_USER_MESSAGE, context, without=held_back)
    state.text = str(report.context.get("message", state.text))
    state.verified = report.verified
    if any(result.gate_name in guess.gates for result in report.verified):
        await guessing.passed(guess)
    if report.blocked is None:
        return guess.stop
    if report.blocked.gate_name in policy.level_gates(state.policy):
        state.audit.append((AuditEvent.IDENTITY_FAILED, {"gate": report.blocked.gate_name}))
    return escalations.stop_for(report.blocked, state.policy.escalations)


async def run_gates(
    state: TurnState, trigger: GateTrigger, context: dict[str, Any], *, without: frozenset[str] = frozenset()
) -> GateReport:
    """The turn's frozen gates of one trigger, less those named in `without`. Scripts run in a thread, with their files
    read in a scope before."""
    frozen = replace(state.policy, gates=tuple(gate for gate in state.policy.gates if gate.name not in without))
    scripts = policy.scripts_due(frozen, trigger, context)
    levels = policy.level_gates(frozen)
    if not scripts:
        report = check_gates(frozen.gates, trigger, context, level_gates=levels)
    else:
        files = await in_scope(state.tenant_id, policy.gate_files, frozen, scripts, context)
        report = await asyncio.to_thread(check_gates, frozen.gates, trigger, context, level_gates=levels, files=files)
    state.audit += report.audit
    return report


async def apply_levels(state: TurnState) -> Stop | None:
    """Step 14. Passed identity checks move the level in a transaction of their own; so does an expiry."""
    moved = state.access
    for result in state.verified:
        if result.subject is not None:
            moved = moved.gate_passed(
                result.gate_name, customer=result.subject.id, customer_name=result.subject.name, moment=now()
            )
    if moved.grant != grant_of(state.session):
        await in_scope(state.tenant_id, _write_grant, state, moved)
    state.access = moved
    return None


def _write_grant(state: TurnState, moved: AccessController) -> None:
    session = lock_session(state.session.pk)
    was, grant = session.level, moved.grant
    session.level, session.level_expires_at = grant.level, grant.expires_at
    session.verified_gates = sorted(grant.verified)
    session.customer, session.customer_name = grant.customer, grant.customer_name
    session.save(update_fields=["level", "level_expires_at", "verified_gates", "customer", "customer_name"])
    if grant.level != PUBLIC:
        data = {"level": grant.level, "from": was, "customer": grant.customer, "gates": sorted(grant.verified)}
        record(AuditEvent.LEVEL_RAISED, subject=f"session:{session.pk}", data=data)
    elif was != PUBLIC:
        record(AuditEvent.LEVEL_EXPIRED, subject=f"session:{session.pk}", data={"from": was})
    _tell_level(session)
    session.deployment = state.session.deployment
    state.session = session


def _tell_level(session: ChatSession) -> None:
    payload: dict[str, Any] = {"level": session.level}
    if session.level_expires_at:
        payload["expires_at"] = session.level_expires_at.isoformat()
    chronicle.append(session, kind=EntryKind.ACCESS, sender=Sender.SYSTEM, payload=payload, taint=Taint.AUTH)
