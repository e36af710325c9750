"""Let a signed identity pass its gate when a conversation starts.

A valid token passes the gate that its key names in the way every gate is passed (`levels.move`); the level ends with
the token at the latest. An invalid one raises no level and does not prevent writing; the answer carries the reason.
Attempts are counted like those of a script gate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from apps.access import ratelimit
from apps.access.grants import Passed, is_worth_moving
from apps.access.rules import PUBLIC
from apps.access.signed_identity import Identity, Unproven, read
from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.sessions import levels, policy
from apps.sessions.locks import lock_session
from apps.sessions.models import ChatSession
from apps.sessions.schemas import StartedSession
from apps.sessions.services import resumable, start_session
from apps.tenants.models import Deployment
from apps.tenants.queries import VerifyingKey, verifying_keys
from apps.visitors.signals import identity_signed
from kernel.ratelimit.fixed_window import Limit

# A level that stands already is put off only if that wins as much; a page that comes back often writes nothing.
WORTH_A_WRITE = timedelta(seconds=60)


@dataclass(frozen=True)
class Known:
    """What a token is judged by: the conversation that is resumed, and the deployment's keys."""

    session_id: UUID | None
    keys: Sequence[VerifyingKey]


@dataclass(frozen=True)
class Named:
    """What a token came to; `counted` is what to give back when it is believed."""

    found: Identity | Unproven
    counted: tuple[Limit, ...] = ()


def known(deployment: Deployment, *, resume_token: str) -> Known:
    """Inside the tenant's scope."""
    before = resumable(deployment, resume_token)
    return Known(before.pk if before else None, verifying_keys(deployment.pk))


def look(deployment: Deployment, token: str, known: Known) -> Named:
    """Count the try, and check the token. Outside of any scope: tries are counted in Redis."""
    # Without keys nothing is checked, so nothing can be guessed.
    counted = ratelimit.count_signed(deployment.tenant_id, known.session_id) if known.keys else ()
    if isinstance(counted, str):
        return Named(Unproven(counted))
    return Named(read(token, known.keys, audience=deployment.public_key), counted)


def start(
    deployment: Deployment, named: Named, *, resume_token: str = "", **beginning: Any
) -> tuple[StartedSession, str]:
    """Begin or resume a conversation for whom the token names, inside the tenant's scope; the answer's second half is
    why it was not believed, or empty. Another customer's conversation is not resumed; a new one begins.
    `beginning`: as in `start_session`."""
    before = resumable(deployment, resume_token)
    if before is not None:
        # Of two customers who are named for it at once, the second finds the first one's.
        lock_session(before.pk)
    customer = named.found.customer if isinstance(named.found, Identity) else ""
    started = start_session(deployment, resume_token=resume_token, customer=customer, **beginning)
    return started, _settle(started.session_id, deployment, named.found)


def believed(named: Named) -> None:
    """A token that passed its gate, committed, was no try at guessing."""
    ratelimit.take_back(named.counted)


def _settle(session_id: UUID, deployment: Deployment, found: Identity | Unproven) -> str:
    """Move the level, or write down that it stays; the reason, or empty."""
    if isinstance(found, Identity):
        return "" if _pass(lock_session(session_id), deployment, found) else "identity_gate_unused"
    if found.code in ratelimit.NOT_CHECKED:
        data = {"by": ratelimit.NOT_CHECKED[found.code]}
        record(AuditEvent.IDENTITY_THROTTLED, subject=f"session:{session_id}", data=data)
    elif found.code != "identity_key_missing":
        data = {"by": "signed", "reason": found.code}
        record(AuditEvent.IDENTITY_FAILED, subject=f"session:{session_id}", data=data)
    return found.code


def _pass(session: ChatSession, deployment: Deployment, found: Identity) -> bool:
    """Whether some level asks for the gate; then it is passed, as a script's would be."""
    rules = policy.load(deployment).levels
    if not any(found.gate in level.requires for level in rules.values()):
        return False
    passed = Passed(found.gate, found.customer, found.name, found.until)
    if is_worth_moving(session, rules, passed, gain=WORTH_A_WRITE):
        levels.move(session, rules, [passed])
        if session.level != PUBLIC and session.customer == found.customer:
            identity_signed(found)
    return True
