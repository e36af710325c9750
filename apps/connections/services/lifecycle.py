"""Pause, resume, choose and remove a connection; answer and cancel its set-up, in a browser or not.

Inside the caller's tenant scope, for members who may decide cards and for API keys (`user` None).
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from uuid import UUID

from apps.approvals.cards.lifecycle import withdraw_cards_about
from apps.approvals.enums import Withdrawal
from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.connections import credentials, queries, rules
from apps.connections.enums import ConnectionStatus, SetupState
from apps.connections.locks import lock_connection, lock_setup
from apps.connections.models import Connection, SetupRun
from apps.connections.services import setup_state
from apps.connections.services.recovery import BROKEN
from apps.connections.services.requests import CONNECTION
from apps.connections.services.status import change_status, schedule_check
from apps.tenants.enums import Capability
from apps.tenants.models import User
from apps.tenants.queries import require_role
from apps.tenants.rules import roles_with
from kernel.clock import now
from kernel.error_codes import ErrorCode
from kernel.errors import NotFound, SilasError
from kernel.language import gettext

_ACTIONS = ("done", "trouble")
_LONGEST_PARAMETER = 4000


def pause(connection_id: UUID, *, actor: str, user: User | None = None) -> Connection:
    """Stop tools from using the connection, and its checks, until it is resumed. Raises 409 `connection_settled`."""
    _require_role(user)
    row = lock_connection(connection_id)
    change_status(row, ConnectionStatus.PAUSED, actor=actor)
    return row


def resume(connection_id: UUID, *, actor: str, user: User | None = None) -> Connection:
    """Raises 409 `connection_settled` for one that is not paused."""
    _require_role(user)
    row = lock_connection(connection_id)
    if row.status != ConnectionStatus.PAUSED:
        raise SilasError(ErrorCode.CONNECTION_SETTLED, gettext("This connection isn't paused."))
    row.next_check_at = now()
    change_status(row, ConnectionStatus.ACTIVE, "next_check_at", actor=actor)
    schedule_check(row)
    return row


def remove(connection_id: UUID, *, actor: str, user: User | None = None) -> None:
    """Remove the connection for good: its credentials are deleted with this commit, the audit log stays. Raises
    `NotFound`."""
    _require_role(user)
    row = lock_connection(connection_id)
    if row.status == ConnectionStatus.REMOVED:
        raise NotFound()
    for setup in SetupRun.objects.filter(connection=row, state__in=rules.UNDER_WAY):
        setup_state.cancel(setup.pk, actor=actor)
    credentials.drop_all(row.pk)
    for kind in (CONNECTION, BROKEN):
        withdraw_cards_about(kind, row.pk, reason=Withdrawal.CANCELLED, actor=actor)
    row.refresh_from_db()
    row.is_usual = False
    change_status(row, ConnectionStatus.REMOVED, "is_usual", actor=actor)
    record(AuditEvent.CONNECTION_REMOVED, actor=actor, subject=f"connection:{row.pk}")


def choose(connection_id: UUID, *, actor: str, user: User | None = None) -> Connection:
    """Make tools use this account of its skill and no other, whether or not it works. Raises `NotFound`, and 409
    `connection_settled` for one that was never connected."""
    _require_role(user)
    row = lock_connection(connection_id)
    if row.status == ConnectionStatus.REMOVED:
        raise NotFound()
    if row.pk not in {account.id for account in queries.accounts()}:
        raise SilasError(ErrorCode.CONNECTION_SETTLED, gettext("This account was never connected."))
    others = Connection.objects.filter(skill_name=row.skill_name, is_usual=True).exclude(pk=row.pk)
    others.update(is_usual=False)
    Connection.objects.filter(pk=row.pk).update(is_usual=True)
    record(AuditEvent.CONNECTION_CHOSEN, actor=actor, subject=f"connection:{row.pk}")
    row.refresh_from_db()
    return row


def answer(connection_id: UUID, *, step_id: str, action: str, actor: str, user: User | None = None) -> SetupRun:
    """Answer the step that is shown: it is done, or does not work. Raises 404, and 409 `setup_not_asking`,
    `answered_already`, 422 `answer_unknown`."""
    _require_role(user)
    setup = queries.setup_under_way(connection_id)
    if setup is None or setup.step_id != step_id:
        raise SilasError(ErrorCode.SETUP_NOT_ASKING, gettext("This step is no longer current."))
    setup = lock_setup(setup.pk)
    if action not in _ACTIONS:
        raise SilasError(ErrorCode.ANSWER_UNKNOWN)
    if (setup.step or {}).get("type") != "device_code":
        raise SilasError(ErrorCode.SETUP_NOT_ASKING, gettext("This step can't be answered here."))
    setup_state.store_answer(setup, {"action": action}, actor=actor)
    return setup


def cancel(connection_id: UUID, *, actor: str, user: User | None = None) -> SetupRun:
    """Cancel the set-up that is under way. Raises 409 `setup_over` when there is none."""
    _require_role(user)
    setup = queries.setup_under_way(connection_id)
    if setup is None:
        raise SilasError(ErrorCode.SETUP_OVER, gettext("No setup is in progress."))
    return setup_state.cancel(setup.pk, actor=actor)


def open_redirect(connection_id: UUID, *, user: User, browser: str) -> str:
    """Return the service's address for this person's browser, and bind the way back to its session. Raises 409
    `setup_not_asking`."""
    _require_role(user)
    setup = queries.setup_under_way(connection_id)
    if setup is None or setup.state != SetupState.ASKING or (setup.step or {}).get("type") != "browser_redirect":
        raise SilasError(ErrorCode.SETUP_NOT_ASKING, gettext("This set-up isn't waiting for a sign-in."))
    SetupRun.objects.filter(pk=setup.pk).update(browser=_browser_hash(browser))
    address: str = (setup.step or {})["auth_url"]
    return address


def finish_redirect(state: UUID, parameters: Mapping[str, str], *, user: User, browser: str) -> SetupRun:
    """Take what the service sent back with the browser, a code or a refusal, once. Raises 404 for a state that is
    unknown, foreign, or another browser's; 409 `setup_not_asking`, `answered_already` for a replay."""
    _require_role(user)
    known = SetupRun.objects.filter(state_token=state).first()
    # An attacker could otherwise have another person's browser finish the attacker's sign-in (CSRF, RFC 6749 10.12).
    if known is None or not browser or not hmac.compare_digest(known.browser, _browser_hash(browser)):
        raise NotFound()
    setup = lock_setup(known.pk)
    if (setup.step or {}).get("type") != "browser_redirect":
        raise SilasError(ErrorCode.SETUP_NOT_ASKING, gettext("This set-up isn't waiting for a sign-in any more."))
    # Nothing else of the address reaches the script.
    names = ("code", "error", "error_description")
    kept = {name: parameters[name][:_LONGEST_PARAMETER] for name in names if parameters.get(name)}
    setup_state.store_answer(setup, {**kept, "state": str(state)}, actor=f"user:{user.pk}")
    return setup


def _require_role(user: User | None) -> None:
    if user is not None:
        require_role(user, roles_with(Capability.DECIDE))


def _browser_hash(browser: str) -> str:
    return hashlib.sha256(b"silas-browser-1:" + browser.encode()).hexdigest()
