"""What is a person told of a connection that does not work or is about to end, and what can they do about it? In web
processes, inside the caller's tenant scope (spec 5.10.3, 5.10.4)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import uuid4

from apps.approvals.asks import About, Binding, CardText
from apps.approvals.enums import ApprovalScope, CardKind
from apps.approvals.models import Card, Decision
from apps.approvals.queries import waiting_about
from apps.approvals.services import open_card
from apps.connections import rules
from apps.connections.enums import ConnectionStatus, Recovery
from apps.connections.locks import lock_connection
from apps.connections.models import Connection, SetupRun
from apps.connections.services import it_requests, requests
from apps.connections.services.setup_state import parse_failure
from apps.connections.services.status import change_status, schedule_check
from kernel.clock import now
from kernel.errors import SilasError

BROKEN = "connection_failure"
_RECONNECT, _LATER = "reconnect", "remind_later"
_AGAIN = (Recovery.RETRY, Recovery.RECONNECT, Recovery.PERSONAL_ACCOUNT)


def open_failure_card(row: Connection) -> Card | None:
    """The failure card of what went wrong last; None where one waits already, or nothing is wrong any more."""
    said = row.failure or _last_failure(row)
    if said is None or waiting_about(row.pk, BROKEN).filter(kind=CardKind.CONNECTION_FAILURE).exists():
        return None
    payload = rules.failure_payload(parse_failure(said), row.name)
    options = {each["action"]: each["description"] for each in payload["recovery_options"]}
    skip = options.pop(Recovery.SKIP.value)
    return open_card(
        CardKind.CONNECTION_FAILURE,
        about=About(BROKEN, row.pk),
        binding=Binding(ApprovalScope.SINGLE_STEP, payload, reversible=True),
        text=CardText(
            intent=f"{row.name} does not work",
            rationale=payload["message"],
            consequence={**options, "decline": skip},
        ),
    )


def open_reconnect_card(row: Connection) -> Card | None:
    """Low friction: its sign-in ends soon, and somebody uses it."""
    ends = row.refresh_token_expires_at
    asked = waiting_about(row.pk, BROKEN).filter(kind=CardKind.SUGGESTION)
    if ends is None or row.status != ConnectionStatus.ACTIVE or asked.exists():
        return None
    return open_card(
        CardKind.SUGGESTION,
        about=About(BROKEN, row.pk),
        binding=Binding(
            ApprovalScope.SINGLE_STEP,
            {
                "suggestion_id": str(uuid4()),
                "scope_id": f"connection:{row.pk}",
                "source": "connection_check",
                "cooldown_key": f"ends_soon:{row.pk}",
                "options": [{"label": "Remind me later", "value": _LATER}],
            },
            reversible=True,
        ),
        text=CardText(
            intent=f"The sign-in of {row.name} ends on {ends.day} {ends:%B} {ends.year} (UTC)",
            rationale="After that the account cannot be used until a colleague signs in again.",
            consequence={"approve": "Reconnect now", _LATER: "Remind me later", "decline": "Let it end"},
        ),
    )


def apply_decision(card: Card, decision: Decision) -> None:
    """What a person chose; receivers call it in that transaction. What can no longer be done is left."""
    row, chosen = lock_connection(card.subject_id), decision.said.get("choice", "")
    actor = f"user:{decision.user_id}"
    if card.kind == CardKind.SUGGESTION:
        return _suggested(row, chosen, actor)
    return _recover(row, chosen, actor)


def _suggested(row: Connection, chosen: str, actor: str) -> None:
    if chosen == _LATER:
        Connection.objects.filter(pk=row.pk).update(warned_at=None)
    elif chosen == "approve":
        _begin_again(row, actor)


def _recover(row: Connection, chosen: str, actor: str) -> None:
    if chosen in _AGAIN:
        _begin_again(row, actor)
    elif chosen == Recovery.FEWER:
        _begin_again(row, actor, fewer=True)
    elif chosen == Recovery.LATER and row.status == ConnectionStatus.FAILED and row.permissions_granted:
        _later(row, actor)
    elif chosen == Recovery.LATER:
        _begin_again(row, actor, later=_time_of(row))
    elif chosen == Recovery.DRAFT_IT_REQUEST:
        it_requests.draft(row, actor=actor)


def _begin_again(row: Connection, actor: str, *, fewer: bool = False, later: timedelta = timedelta()) -> None:
    if row.status == ConnectionStatus.FAILED and not SetupRun.objects.filter(connection=row).exists():
        return requests.start_discovery(row)  # nobody was asked yet
    approved = list(row.permissions_granted) or list(row.initial_permissions)
    permissions = [name for name in approved if rules.only_reads(name)] if fewer else None
    try:
        requests.reconnect(row.pk, actor=actor, permissions=permissions, later=later)
    except SilasError:
        return None  # it is being set up already, or is no more: there is nothing to begin


def _later(row: Connection, actor: str) -> None:
    """It is looked at again after a while, and is broken again if it still does not work."""
    row.next_check_at, row.recovered, row.failure = now() + _time_of(row), True, None
    change_status(
        row, ConnectionStatus.ACTIVE, "next_check_at", "recovered", "failure", actor=actor, reason="retry_later"
    )
    schedule_check(row)


def _time_of(row: Connection) -> timedelta:
    """How long the service wants to be left alone."""
    return timedelta(minutes=parse_failure(row.failure or {}).retry_minutes or rules.USUAL_MINUTES)


def _last_failure(row: Connection) -> Any:
    last = SetupRun.objects.filter(connection=row).first()
    return last.failure if last is not None else None
