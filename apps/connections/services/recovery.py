"""Cards about connections that are broken or about to end, and what follows from the answers.

In web processes, inside the caller's tenant scope (spec 5.10.3, 5.10.4).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from uuid import uuid4

from apps.approvals.cards.schemas import Binding, CardSubject, CardText
from apps.approvals.cards.services import open_card
from apps.approvals.enums import ApprovalScope, CardKind
from apps.approvals.models import ApprovalToken, Card, Decision
from apps.approvals.queries import open_cards_about
from apps.connections import rules
from apps.connections.enums import ConnectionStatus, Recovery
from apps.connections.locks import lock_connection
from apps.connections.models import Connection, SetupRun
from apps.connections.services import it_requests, requests
from apps.connections.services.setup_state import parse_failure
from apps.connections.services.status import change_status, schedule_check
from kernel.clock import now
from kernel.errors import SilasError
from kernel.stored_texts import stored_text

BROKEN = "connection_failure"
_REMIND_LATER = "remind_later"
_RESTARTS = (Recovery.RETRY, Recovery.RECONNECT, Recovery.PERSONAL_ACCOUNT)


def open_failure_card(row: Connection) -> Card | None:
    """Open a card about what went wrong last; None while one is open, or when nothing is wrong any more."""
    failure = row.failure or _last_failure(row)
    if failure is None or open_cards_about(row.pk, BROKEN).filter(kind=CardKind.CONNECTION_FAILURE).exists():
        return None
    payload = rules.failure_payload(parse_failure(failure), row.name)
    options = {option["action"]: option["description"] for option in payload["recovery_options"]}
    skip = options.pop(Recovery.SKIP.value)
    return open_card(
        CardKind.CONNECTION_FAILURE,
        subject=CardSubject(BROKEN, row.pk),
        binding=Binding(ApprovalScope.SINGLE_STEP, payload, reversible=True),
        text=CardText(
            intent=f"{row.name} isn't working",
            rationale=payload["message"],
            consequence={**options, "decline": skip},
        ),
    )


def open_reconnect_card(row: Connection) -> Card | None:
    """Suggest to sign in again for a connection that is in use and whose sign-in ends soon."""
    ends = row.refresh_token_expires_at
    waiting = open_cards_about(row.pk, BROKEN).filter(kind=CardKind.SUGGESTION)
    if ends is None or row.status != ConnectionStatus.ACTIVE or waiting.exists():
        return None
    return open_card(
        CardKind.SUGGESTION,
        subject=CardSubject(BROKEN, row.pk),
        binding=Binding(
            ApprovalScope.SINGLE_STEP,
            {
                "suggestion_id": str(uuid4()),
                "scope_id": f"connection:{row.pk}",
                "source": "connection_check",
                "cooldown_key": f"ends_soon:{row.pk}",
                "options": [{"label": stored_text("Remind me later"), "value": _REMIND_LATER}],
            },
            reversible=True,
        ),
        text=CardText(
            intent=stored_text("The sign-in of {account} ends on {date} (UTC)").format(
                account=row.name, date=f"{ends:%Y-%m-%d}"
            ),
            rationale=stored_text("After that, the account can't be used until a colleague signs in again."),
            consequence={
                "approve": stored_text("Reconnect now"),
                _REMIND_LATER: stored_text("Remind me later"),
                "decline": stored_text("Let it end"),
            },
        ),
    )


def apply_reminder(card: Card, decision: Decision, token: ApprovalToken | None) -> None:
    """Sign in again before the sign-in ends, or suggest it later. In the transaction that decides."""
    row, choice = lock_connection(card.subject_id), decision.said.get("choice", "")
    if choice == _REMIND_LATER:
        Connection.objects.filter(pk=row.pk).update(warned_at=None)
    elif choice == "approve":
        _restart(row, f"user:{decision.user_id}")


def apply_recovery(card: Card, decision: Decision, token: ApprovalToken | None) -> None:
    """Do what a person chose, in the transaction that decides. A choice that is no longer possible does nothing."""
    row, choice = lock_connection(card.subject_id), decision.said.get("choice", "")
    actor = f"user:{decision.user_id}"
    if choice in _RESTARTS:
        _restart(row, actor)
    elif choice == Recovery.FEWER:
        _restart(row, actor, fewer=True)
    elif choice == Recovery.LATER and row.status == ConnectionStatus.FAILED and row.permissions_granted:
        _check_later(row, actor)
    elif choice == Recovery.LATER:
        _restart(row, actor, later=_retry_delay(row))
    elif choice == Recovery.DRAFT_IT_REQUEST:
        it_requests.draft(row, actor=actor)


def _restart(row: Connection, actor: str, *, fewer: bool = False, later: timedelta = timedelta()) -> None:
    if row.status == ConnectionStatus.FAILED and not SetupRun.objects.filter(connection=row).exists():
        requests.start_discovery(row)  # it was never approved, so the card about it comes after the discovery
        return
    approved = list(row.permissions_granted) or list(row.initial_permissions)
    permissions = [name for name in approved if rules.only_reads(name)] if fewer else None
    try:
        requests.reconnect(row.pk, actor=actor, permissions=permissions, later=later)
    except SilasError:
        return  # it is being set up already, or was removed


def _check_later(row: Connection, actor: str) -> None:
    """Activate the connection and check it after a while; it fails again if it still does not work."""
    row.next_check_at, row.recovered, row.failure = now() + _retry_delay(row), True, None
    fields = ("next_check_at", "recovered", "failure")
    change_status(row, ConnectionStatus.ACTIVE, *fields, actor=actor, reason="retry_later")
    schedule_check(row)


def _retry_delay(row: Connection) -> timedelta:
    """Return how long the service asked not to be called."""
    return timedelta(minutes=parse_failure(row.failure or {}).retry_minutes or rules.USUAL_MINUTES)


def _last_failure(row: Connection) -> Mapping[str, object] | None:
    last = SetupRun.objects.filter(connection=row).first()
    return last.failure if last is not None else None
