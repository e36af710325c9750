"""Read a visitor's grant from a conversation's row, and work out what passed gates make of it. Nothing is written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol

from apps.access.rules import AccessController, Grant, Level
from kernel.clock import now


class GrantHolder(Protocol):
    """The row of a conversation, as far as it says what its visitor has proved."""

    level: str
    level_expires_at: datetime | None
    verified_gates: object
    customer: str
    customer_name: str


@dataclass(frozen=True)
class Passed:
    """A gate that `customer` passed. `until`: when it stops counting, even if the level lasts longer."""

    gate: str
    customer: str
    customer_name: str = ""
    until: datetime | None = None


def grant_of(holder: GrantHolder) -> Grant:
    proofs = {gate: _proof(kept) for gate, kept in _by_gate(holder.verified_gates)}
    return Grant(
        level=holder.level,
        expires_at=holder.level_expires_at,
        verified={gate: proof.until for gate, proof in proofs.items()},
        customer=holder.customer,
        customer_name=holder.customer_name,
        since={gate: proof.since for gate, proof in proofs.items() if proof.since},
    )


def is_worth_moving(holder: GrantHolder, levels: Mapping[str, Level], passed: Passed, *, gain: timedelta) -> bool:
    """Whether passing this gate again would do more than put the end of the same level off by less than `gain`."""
    before, after = grant_of(holder), moved_grant(holder, levels, [passed]).grant
    same = (before.level, before.customer, *before.verified) == (after.level, after.customer, *after.verified)
    if not same:
        return True
    if before.expires_at is None or after.expires_at is None:
        return before.expires_at != after.expires_at or before.verified != after.verified
    return after.expires_at - before.expires_at >= gain


def moved_grant(holder: GrantHolder, levels: Mapping[str, Level], passed: Iterable[Passed]) -> AccessController:
    moment = now()
    moved = AccessController(levels, grant_of(holder)).at(moment)
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


def _by_gate(stored: Any) -> Iterable[tuple[str, object]]:
    """Rows of before kept a list of names only."""
    return (stored if isinstance(stored, dict) else dict.fromkeys(stored)).items()


def _proof(kept: Any) -> _Proof:
    """Rows of before kept the end alone."""
    until, since = (kept.get("until"), kept.get("since")) if isinstance(kept, dict) else (kept, None)
    return _Proof(_moment(until), _moment(since))


def _moment(kept: str | None) -> datetime | None:
    return None if kept is None else datetime.fromisoformat(kept)


def kept_gates(grant: Grant) -> dict[str, dict[str, str | None]]:
    return {
        gate: {"until": _stamp(until), "since": _stamp(grant.since.get(gate))}
        for gate, until in sorted(grant.verified.items())
    }


def _stamp(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()
