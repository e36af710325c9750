"""State of a set-up: begin, show a step, answer it, complete, fail, cancel. Inside the caller's tenant scope.

One process holds a set-up conversation, by the lease of its message; a process that lost the lease can complete
nothing. What a conversation brings counts only when it was completed and probed, and is deleted in every other end.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urlsplit
from uuid import UUID

from pydantic import ValidationError

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.bus.queries import lease_held
from apps.bus.schemas import LeaseRef
from apps.connections import credentials, pending_secrets, rules
from apps.connections.enums import ConnectionStatus, FailureType, Purpose, SetupState
from apps.connections.locks import lock_connection, lock_setup
from apps.connections.models import Connection, PendingSecret, SetupAnswer, SetupRun
from apps.connections.schemas import Completed, ConnectionFailure, RedirectStep, SecureInputStep, Step
from apps.connections.services.outbox import FAILED, enqueue
from apps.connections.services.status import change_status, schedule_check
from apps.tenants import vault
from kernel.clock import now
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.language import gettext

_ASKING_STEPS = ("device_code", "browser_redirect", "secure_input")
_HELD = [SetupState.RUNNING, SetupState.ASKING]


@dataclass(frozen=True)
class SetupUpdate:
    """What has happened to a set-up since its process looked last."""

    cancelled: bool = False
    answer: Mapping[str, Any] | None = None
    secret: dict[str, str] | None = None


def begin_session(setup_id: UUID) -> SetupRun | None:
    """Mark a waiting set-up as running. Returns None for one that is over; one that another process held and did not
    end, or whose deadline has passed, fails, so that a person can start again."""
    setup = lock_setup(setup_id)
    if setup.state != SetupState.WAITING or setup.deadline <= now():
        fail(setup_id, code="worker_lost" if setup.state in _HELD else "out_of_time")
        return None
    setup.state = SetupState.RUNNING
    setup.save(update_fields=["state"])
    record(AuditEvent.SETUP_BEGUN, subject=f"connection:{setup.connection_id}")
    return setup


def get_setup(setup_id: UUID) -> SetupRun:
    row: SetupRun = SetupRun.objects.select_related("connection").get(pk=setup_id)
    return row


def start_message(setup: SetupRun) -> dict[str, object]:
    """Return the first line that the script reads (spec 5.10.1), and with it the address and the state with which a
    browser comes back."""
    row = setup.connection
    widens = setup.purpose == Purpose.WIDEN
    return {
        "type": "start",
        "auth_strategy": row.auth_strategy,
        "initial_permissions": row.permissions_granted if widens else setup.wanted,
        "incremental_scopes": rules.missing(setup.wanted, row.permissions_granted) if widens else [],
        "identity_hint": setup.identity_hint,
        "settings": row.settings,
        "redirect_uri": row.callback,
        "state": str(setup.state_token),
    }


def show_step(setup_id: UUID, lease: LeaseRef, step_id: str, step: Step) -> None:
    """Store the step where pages find it. Raises `SilasError`: `lease_lost`, `state_missing`."""
    setup = _lock_leased(setup_id, lease)
    asks = step.type in _ASKING_STEPS
    setup.step_id, setup.step = step_id, _step_payload(setup, step)
    setup.state = SetupState.ASKING if asks else SetupState.RUNNING
    setup.save(update_fields=["step_id", "step", "state"])
    if asks:
        record(AuditEvent.SETUP_ASKED, subject=f"connection:{setup.connection_id}", data={"step": step.type})


def _step_payload(setup: SetupRun, step: Step) -> dict[str, object]:
    payload = step.model_dump(mode="json")
    if isinstance(step, SecureInputStep):
        pending = pending_secrets.request_secret(setup, step.request.name)
        payload["request"] |= {"ref_id": str(pending.pk)}
    if isinstance(step, RedirectStep):
        # Without our state in the address, a code that belongs to another person's sign-in could be sent back here.
        state = parse_qs(urlsplit(step.auth_url).query).get("state", [])
        if state != [str(setup.state_token)]:
            raise SilasError(ErrorCode.STATE_MISSING)
    return {**payload, "shown_at": now().isoformat()}


def poll(setup_id: UUID, lease: LeaseRef, step_id: str) -> SetupUpdate:
    """Return what has happened; an answer is returned once. Raises `SilasError`: `lease_lost`, `out_of_time`."""
    setup = lock_setup(setup_id)
    if setup.state == SetupState.CANCELLED:
        return SetupUpdate(cancelled=True)
    _require_lease(setup, lease)
    if setup.deadline <= now():
        raise SilasError(ErrorCode.OUT_OF_TIME)
    return _stored_secret(setup, step_id) or _stored_answer(setup, step_id) or SetupUpdate()


def _stored_secret(setup: SetupRun, step_id: str) -> SetupUpdate | None:
    """Return a secret that was typed. It goes to the script over its descriptor; the answer says only that it is
    there."""
    step = setup.step or {}
    if step.get("type") != "secure_input" or setup.step_id != step_id or setup.state != SetupState.ASKING:
        return None
    ref = step["request"]["ref_id"]
    row = PendingSecret.objects.filter(pk=ref, stored_at__isnull=False).first()
    if row is None:
        return None
    _resume(setup)
    value = credentials.unseal_all(setup.connection_id, setup=setup)[row.name]
    return SetupUpdate(answer={"ref_id": ref, "success": True}, secret={row.name: value})


def _stored_answer(setup: SetupRun, step_id: str) -> SetupUpdate | None:
    row = SetupAnswer.objects.filter(setup=setup, step_id=step_id).first()
    if row is None or setup.state != SetupState.ASKING:
        return None
    answer = json.loads(vault.unseal(bytes(row.sealed), belongs_to=_seal_context(setup.pk, step_id)))
    row.delete()
    # The script of a device code polls the service itself, so its step stays answerable ("it does not work").
    if (setup.step or {}).get("type") != "device_code":
        _resume(setup)
    return SetupUpdate(answer=answer)


def _resume(setup: SetupRun) -> None:
    setup.state = SetupState.RUNNING
    setup.save(update_fields=["state"])


def store_answer(setup: SetupRun, payload: Mapping[str, object], *, actor: str) -> None:
    """Store a person's or the service's answer to the step that is shown, sealed until the script has it. Raises 409
    `setup_not_asking`, `answered_already`."""
    if setup.state != SetupState.ASKING or setup.deadline <= now():
        raise SilasError(ErrorCode.SETUP_NOT_ASKING, gettext("This set-up isn't waiting for an answer."))
    sealed = vault.seal(json.dumps(dict(payload)).encode(), belongs_to=_seal_context(setup.pk, setup.step_id))
    _, created = SetupAnswer.objects.get_or_create(setup=setup, step_id=setup.step_id, defaults={"sealed": sealed})
    if not created:
        raise SilasError(ErrorCode.ANSWERED_ALREADY, gettext("This has already been answered."))
    data = {"step": (setup.step or {}).get("type", "")}
    record(AuditEvent.SETUP_ANSWERED, actor=actor, subject=f"connection:{setup.connection_id}", data=data)


def _seal_context(setup_id: UUID, step_id: str) -> str:
    return f"setup_answer:{setup_id}:{step_id}"


def record_ignored(setup_id: UUID, ignored: int) -> None:
    SetupRun.objects.filter(pk=setup_id).update(ignored=ignored)


def store_partial(setup: SetupRun, values: Mapping[str, str]) -> None:
    """Store credentials that count only once the set-up is complete."""
    if values:
        credentials.store(setup.connection_id, values, setup=setup)


def complete(setup_id: UUID, lease: LeaseRef, done: Completed, facts: Mapping[str, object]) -> None:
    """Activate the connection with what the set-up brought, in the transaction that settles the guarded call."""
    setup = _lock_leased(setup_id, lease)
    row = lock_connection(setup.connection_id)
    credentials.promote(setup)
    before = len(row.permissions_granted)
    row.permissions_granted = _granted_permissions(setup, row, done)
    row.permissions = rules.tiers_of(row.permissions_granted)
    row.identity, row.provider = done.identity or row.identity, done.provider or row.provider
    row.token_expires_at, row.refresh_token_expires_at = done.token_expires_at, done.refresh_token_expires_at
    row.failure, row.recovered, row.warned_at, row.next_check_at = None, False, None, now()
    # A paused connection stays paused when a person reconnects it.
    status = ConnectionStatus.PAUSED if row.status == ConnectionStatus.PAUSED else ConnectionStatus.ACTIVE
    change_status(row, status, *_COMPLETED_FIELDS)
    schedule_check(row)
    setup.summary = {"said": done.summary, "probe": dict(facts)}
    _end(setup, SetupState.DONE, "summary")
    if setup.purpose == Purpose.WIDEN:
        data = {"count": len(row.permissions_granted) - before}
        record(AuditEvent.CONNECTION_WIDENED, subject=f"connection:{row.pk}", data=data)


_COMPLETED_FIELDS = (
    "permissions_granted",
    "permissions",
    "identity",
    "provider",
    "token_expires_at",
    "refresh_token_expires_at",
    "failure",
    "recovered",
    "warned_at",
    "next_check_at",
)


def _granted_permissions(setup: SetupRun, row: Connection, done: Completed) -> list[str]:
    """Return the permissions that were granted, never more than a person approved, even if the service or the script
    reports more."""
    kept = row.permissions_granted if setup.purpose == Purpose.WIDEN else []
    reported = done.permissions_granted or setup.wanted
    return list(dict.fromkeys([*kept, *(name for name in reported if name in {*setup.wanted, *kept})]))


def fail(setup_id: UUID, *, code: str, failure: ConnectionFailure | None = None) -> None:
    """End the set-up as failed, which opens a card. One that is over already stays as it is."""
    setup = lock_setup(setup_id)
    if SetupState(setup.state) in rules.OVER:
        return
    setup.failure = {"code": code, **(failure.model_dump(mode="json") if failure else {})}
    credentials.drop_partial(setup)
    _end(setup, SetupState.FAILED, "failure", reason=code)
    row = lock_connection(setup.connection_id)
    if row.status == ConnectionStatus.CONNECTING:
        row.failure = setup.failure
        change_status(row, ConnectionStatus.FAILED, "failure", reason=code)
    enqueue(FAILED, row.pk, message_id=f"setup_failed:{setup.pk}")


def cancel(setup_id: UUID, *, actor: str) -> SetupRun:
    """Cancel the set-up and delete what it brought; the connection is as before. Raises 409 `setup_over`."""
    setup = lock_setup(setup_id)
    if SetupState(setup.state) in rules.OVER:
        raise SilasError(ErrorCode.SETUP_OVER, gettext("This set-up has already ended."))
    credentials.drop_partial(setup)
    SetupAnswer.objects.filter(setup=setup).delete()
    _end(setup, SetupState.CANCELLED, actor=actor, reason="cancelled")
    row = lock_connection(setup.connection_id)
    if row.status == ConnectionStatus.CONNECTING:
        is_first = setup.purpose == Purpose.SETUP
        status = ConnectionStatus.PROPOSED if is_first else ConnectionStatus.FAILED
        change_status(row, status, actor=actor, reason="cancelled")
    return setup


def parse_failure(value: object) -> ConnectionFailure:
    """Read a failure as a script reports it; one that cannot be read is `unknown`."""
    try:
        return ConnectionFailure.model_validate(value)
    except ValidationError:
        return ConnectionFailure(failure_type=FailureType.UNKNOWN)


def _lock_leased(setup_id: UUID, lease: LeaseRef) -> SetupRun:
    setup = lock_setup(setup_id)
    _require_lease(setup, lease)
    return setup


def _require_lease(setup: SetupRun, lease: LeaseRef) -> None:
    if setup.state not in _HELD or not lease_held(lease).value:
        raise SilasError(ErrorCode.LEASE_LOST, gettext("This process no longer holds the set-up."))


def _end(setup: SetupRun, state: SetupState, *fields: str, actor: str = "system", reason: str = "") -> None:
    setup.state, setup.ended_at, setup.step = state, now(), None
    setup.save(update_fields=["state", "ended_at", "step", *fields])
    data = {"state": state.value, **({"reason": reason} if reason else {})}
    record(AuditEvent.SETUP_ENDED, actor=actor, subject=f"connection:{setup.connection_id}", data=data)
