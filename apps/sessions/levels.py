"""Raise or lower a visitor's access level: the one way for script gates of a turn and signed identities of a site.

Works under the conversation's lock, on the row as it is now and not as a turn remembers it. Each change is audited and
shown to the visitor. Called by the turn's step 14 and by `identity`, in the tenant's scope; nothing else writes
grants.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.sessions import chronicle
from apps.sessions.access import PUBLIC, AccessController, Grant, Level
from apps.sessions.enums import EntryKind, Sender
from apps.sessions.models import ChatSession
from kernel.clock import now
from kernel.taint import Taint

_GRANT = ("level", "level_expires_at", "verified_gates", "customer", "customer_name", "last_customer")


@dataclass(frozen=True)
class Passed:
    """A gate that `customer` passed. `until`: when that counts no longer, whatever the level says."""

    gate: str
    customer: str
    customer_name: str = ""
    until: datetime | None = None


def grant_of(session: ChatSession) -> Grant:
    proofs = {gate: _proof(kept) for gate, kept in _by_gate(session.verified_gates)}
    return Grant(
        level=session.level,
        expires_at=session.level_expires_at,
        verified={gate: proof.until for gate, proof in proofs.items()},
        customer=session.customer,
        customer_name=session.customer_name,
        since={gate: proof.since for gate, proof in proofs.items() if proof.since},
    )


def move(session: ChatSession, levels: Mapping[str, Level], passed: Iterable[Passed]) -> AccessController:
    """Where the level is once these gates have passed, and time has. `session` is locked."""
    passed = tuple(passed)
    moved = _moved(session, levels, passed)
    if moved.grant != grant_of(session):
        _write(session, moved.grant, earned=bool(passed))
    return moved


def is_worth_moving(session: ChatSession, levels: Mapping[str, Level], passed: Passed, *, gain: timedelta) -> bool:
    """Whether passing this gate again would do more than put the end of the same level off by less than `gain`."""
    before, after = grant_of(session), _moved(session, levels, [passed]).grant
    same = (before.level, before.customer, *before.verified) == (after.level, after.customer, *after.verified)
    if not same:
        return True
    if before.expires_at is None or after.expires_at is None:
        return before.expires_at != after.expires_at or before.verified != after.verified
    return after.expires_at - before.expires_at >= gain


def _moved(session: ChatSession, levels: Mapping[str, Level], passed: Iterable[Passed]) -> AccessController:
    moment = now()
    moved = AccessController(levels, grant_of(session)).at(moment)
    for each in passed:
        moved = moved.gate_passed(
            each.gate,
            customer=each.customer,
            customer_name=each.customer_name,
            moment=moment,
            until=each.until,
        )
    return moved


@dataclass(frozen=True)
class _Proof:
    """A passed gate, as the row keeps it."""

    until: datetime | None
    since: datetime | None


def _by_gate(stored: Any) -> Iterable[tuple[str, Any]]:
    """Rows of before kept a list of names only."""
    return (stored if isinstance(stored, dict) else dict.fromkeys(stored)).items()


def _proof(kept: Any) -> _Proof:
    """Rows of before kept the end alone."""
    until, since = (kept.get("until"), kept.get("since")) if isinstance(kept, dict) else (kept, None)
    return _Proof(_moment(until), _moment(since))


def _moment(kept: str | None) -> datetime | None:
    return None if kept is None else datetime.fromisoformat(kept)


def _kept(grant: Grant) -> dict[str, dict[str, str | None]]:
    return {
        gate: {"until": _stamp(until), "since": _stamp(grant.since.get(gate))}
        for gate, until in sorted(grant.verified.items())
    }


def _stamp(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()


def _write(session: ChatSession, grant: Grant, *, earned: bool) -> None:
    """`earned`: by a gate; an end that has only come nearer, because the level was edited, is told and no rise."""
    was, whose = session.level, session.whose
    session.level, session.level_expires_at = grant.level, grant.expires_at
    session.verified_gates = _kept(grant)
    session.customer, session.customer_name = grant.customer, grant.customer_name
    session.last_customer = whose if grant.level == PUBLIC else grant.customer
    session.save(update_fields=_GRANT)
    if grant.level != PUBLIC and earned:
        data = {"level": grant.level, "from": was, "customer": grant.customer, "gates": sorted(grant.verified)}
        record(AuditEvent.LEVEL_RAISED, subject=f"session:{session.pk}", data=data)
    elif was != PUBLIC and grant.level != was:
        record(AuditEvent.LEVEL_EXPIRED, subject=f"session:{session.pk}", data={"from": was})
    _tell(session)


def _tell(session: ChatSession) -> None:
    payload: dict[str, Any] = {"level": session.level}
    if session.level != PUBLIC and session.level_expires_at:
        payload["expires_at"] = session.level_expires_at.isoformat()
    chronicle.append(session, kind=EntryKind.ACCESS, sender=Sender.SYSTEM, payload=payload, taint=Taint.AUTH)
