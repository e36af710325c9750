"""Raise or lower a visitor's access level: the one way for script gates of a turn and signed identities of a site.

Works under the conversation's lock, on the row as it is now and not as a turn remembers it. Each change is audited and
shown to the visitor. Called by the turn's step 14 and by `visitors.identity`, in the tenant's scope; nothing else
writes grants.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from apps.access.grants import Passed, grant_of, kept_gates, moved_grant
from apps.access.rules import PUBLIC, AccessController, Grant, Level
from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.sessions import chronicle
from apps.sessions.enums import EntryKind, Sender
from apps.sessions.models import ChatSession
from apps.sessions.signals import customer_verified
from kernel.taint import Taint

_GRANT = ("level", "level_expires_at", "verified_gates", "customer", "customer_name", "last_customer")


def move(session: ChatSession, levels: Mapping[str, Level], passed: Iterable[Passed]) -> AccessController:
    """Where the level is once these gates have passed, and time has. `session` is locked."""
    passed = tuple(passed)
    moved = moved_grant(session, levels, passed)
    if moved.grant != grant_of(session):
        _write(session, moved.grant, earned=bool(passed))
    return moved


def end(session: ChatSession) -> None:
    """End a raised level now: what comes next is not known to be from the same person. `session` is locked."""
    if session.level != PUBLIC:
        _write(session, Grant(), earned=False)


def _write(session: ChatSession, grant: Grant, *, earned: bool) -> None:
    """`earned`: by a gate; an end that has only come nearer, because the level was edited, is told and no rise."""
    was, whose = session.level, session.whose
    session.level, session.level_expires_at = grant.level, grant.expires_at
    session.verified_gates = kept_gates(grant)
    session.customer, session.customer_name = grant.customer, grant.customer_name
    session.last_customer = whose if grant.level == PUBLIC else grant.customer
    session.save(update_fields=_GRANT)
    if grant.level != PUBLIC and earned:
        data = {"level": grant.level, "from": was, "customer": grant.customer, "gates": sorted(grant.verified)}
        record(AuditEvent.LEVEL_RAISED, subject=f"session:{session.pk}", data=data)
        customer_verified(session)
    elif was != PUBLIC and grant.level != was:
        record(AuditEvent.LEVEL_EXPIRED, subject=f"session:{session.pk}", data={"from": was})
    _tell(session)


def _tell(session: ChatSession) -> None:
    payload: dict[str, object] = {"level": session.level}
    if session.level != PUBLIC and session.level_expires_at:
        payload["expires_at"] = session.level_expires_at.isoformat()
    chronicle.append(session, kind=EntryKind.ACCESS, sender=Sender.SYSTEM, payload=payload, taint=Taint.AUTH)
