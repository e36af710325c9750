"""Check connections by schedule, renew sign-ins in time, recover once, and fail after that.

The lease of its message decides who checks a connection, so any number of workers check a thousand of them and none
twice. One refresh runs at a time, and at most one automatic recovery until the connection is healthy again (spec
5.10.3, 5.10.4).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID

from pydantic import ValidationError

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.bus.queries import lease_held
from apps.bus.schemas import LeaseRef
from apps.connections import credentials, rules, scripts
from apps.connections.enums import ConnectionStatus, FailureType, Script
from apps.connections.locks import lock_connection
from apps.connections.models import Connection
from apps.connections.schemas import ConnectionFailure, HealthResult, RecoverResult, RefreshResult
from apps.connections.scripts import Job, call_failed
from apps.connections.services.outbox import ENDS_SOON, FAILED, enqueue, was_enqueued
from apps.connections.services.status import change_status
from apps.guard.schemas import CallContext, CallFailed, HandlerResult
from kernel.clock import now
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.language import gettext
from kernel.schedules import next_due
from kernel.tenancy import tenant_scope

RETRY_AFTER = timedelta(minutes=5)
_random = random.Random()  # noqa: S311 (spreads load, keeps no secret)


def is_due(connection_id: UUID) -> bool:
    due = Connection.objects.filter(pk=connection_id, status=ConnectionStatus.ACTIVE, next_check_at__lte=now())
    return bool(due.exists())


def next_check_at(connection_id: UUID) -> datetime | None:
    """Return when the connection is checked next; None for one that is not active."""
    row = lock_connection(connection_id)
    return row.next_check_at if row.status == ConnectionStatus.ACTIVE else None


class HealthCheck:
    """The work of one guarded call: check the connection, and renew its sign-in or recover it where that is needed."""

    def __init__(self, tenant_id: UUID, connection_id: UUID, lease: LeaseRef) -> None:
        self.tenant_id, self.connection_id, self.lease = tenant_id, connection_id, lease
        self.request = {"connection_id": str(connection_id)}

    def __call__(self, ctx: CallContext) -> HandlerResult:
        job = scripts.load_job(self.tenant_id, self.connection_id)
        if rules.needs_refresh(job.connection.token_expires_at, now()):
            return self._refresh(job) or self._repair(job, HealthResult(healthy=False, error="token_expired"))
        result = self._check(job)
        if not result.healthy:
            return self._repair(job, result)
        if self._should_renew_dormant(job, result) and (refreshed := self._refresh(job, dormant=True)):
            return refreshed
        return self._settle(partial(record_healthy, result=result))

    def _should_renew_dormant(self, job: Job, result: HealthResult) -> bool:
        """True for an unused connection whose refresh token ends soon: it is renewed without a card."""
        moment, row = now(), job.connection
        ends = result.refresh_token_expires_at or row.refresh_token_expires_at
        return rules.refresh_token_ends(ends, moment) and rules.is_dormant(row.last_used, moment)

    def _check(self, job: Job) -> HealthResult:
        try:
            answer, values = scripts.run_script(job, Script.HEALTH_CHECK, self.request)
            result = HealthResult.model_validate(answer)
        except (CallFailed, ValidationError) as error:
            code = error.code if isinstance(error, CallFailed) else "garbage_output"
            return HealthResult(healthy=False, error=code)
        self._store(values)
        return result

    def _refresh(self, job: Job, *, dormant: bool = False) -> HandlerResult | None:
        """Renew the sign-in; None when that is not possible. The reason does not matter: recovery is tried next."""
        if Script.REFRESH.value not in job.scripts:
            return None
        try:
            answer, values = scripts.run_script(job, Script.REFRESH, self.request)
            result = RefreshResult.model_validate(answer)
        except (CallFailed, ValidationError):
            return None
        if not result.success:
            return None
        self._store(values)
        return self._settle(partial(record_refreshed, result=result, dormant=dormant))

    def _repair(self, job: Job, result: HealthResult) -> HandlerResult:
        """Renew a sign-in that ran out; otherwise recover, once; otherwise fail, which opens a card (spec 5.10.4)."""
        if "expired" in result.error and (refreshed := self._refresh(job)):
            return refreshed
        # Once until it is healthy again: repairs that never last would otherwise go on without a card.
        if job.connection.recovered:
            return self._settle(partial(record_broken, failure=result.failure or ConnectionFailure()))
        recovery = self._recover(job, result.error)
        if recovery.success:
            return self._settle(record_recovered)
        failure = recovery.failure or result.failure or ConnectionFailure()
        return self._settle(partial(record_broken, failure=failure))

    def _recover(self, job: Job, error: str) -> RecoverResult:
        try:
            answer, values = scripts.run_script(job, Script.RECOVER, {**self.request, "error": error})
            result = RecoverResult.model_validate(answer)
        except (CallFailed, ValidationError):
            return RecoverResult()
        self._store(values)
        return result

    def _store(self, values: Mapping[str, str]) -> None:
        """Store new credentials at once, even if the call fails later: the service may have ended the old ones."""
        if not values:
            return
        try:
            with tenant_scope(self.tenant_id):
                lock_leased(self.connection_id, self.lease)
                credentials.store(self.connection_id, values)
        except SilasError as error:
            raise call_failed(error.code, error.message) from error

    def _settle(self, step: Callable[[Connection], Any]) -> HandlerResult:
        return HandlerResult({}, on_settle=lambda: step(lock_leased(self.connection_id, self.lease)))


def lock_leased(connection_id: UUID, lease: LeaseRef) -> Connection:
    """Lock and return the row. Raises `SilasError("lease_lost")` when the lease is no longer held."""
    row = lock_connection(connection_id)
    if not lease_held(lease).value:
        raise SilasError(ErrorCode.LEASE_LOST, gettext("Another process is checking this connection now."))
    return row


_CHECK_FIELDS = ("token_expires_at", "refresh_token_expires_at", "last_health_check", "last_refresh", "next_check_at")


def record_healthy(row: Connection, *, result: HealthResult) -> None:
    row.last_health_check = now()
    row.token_expires_at = result.token_expires_at or row.token_expires_at
    row.refresh_token_expires_at = result.refresh_token_expires_at or row.refresh_token_expires_at
    row.recovered = False
    _warn(row)
    _save_check(row)


def record_refreshed(row: Connection, *, result: RefreshResult, dormant: bool) -> None:
    row.last_refresh = now()
    row.token_expires_at = result.new_expires_at
    row.refresh_token_expires_at = result.refresh_token_expires_at or row.refresh_token_expires_at
    event = AuditEvent.PROACTIVE_REFRESH_DORMANT if dormant else AuditEvent.CONNECTION_REFRESHED
    record(event, subject=f"connection:{row.pk}")
    _save_check(row)


def record_recovered(row: Connection) -> None:
    row.recovered, row.last_health_check = True, now()
    record(AuditEvent.CONNECTION_RECOVERED, subject=f"connection:{row.pk}")
    _save_check(row)


def record_broken(row: Connection, *, failure: ConnectionFailure) -> None:
    """Mark the connection as failed, which opens a card; it is not checked again by itself."""
    row.failure, row.recovered = failure.model_dump(mode="json"), False
    kind = FailureType(failure.failure_type).value
    change_status(row, ConnectionStatus.FAILED, "failure", "recovered", reason=kind)
    enqueue(FAILED, row.pk, message_id=f"failed:{row.pk}:{now():%Y%m%d%H%M%S%f}")


def _warn(row: Connection) -> None:
    """Enqueue a warning about a refresh token that ends soon: once, and again a day later for a person who asked to be
    reminded (`warned_at` is empty again then)."""
    moment, ends = now(), row.refresh_token_expires_at
    if ends is None or not rules.refresh_token_ends(ends, moment) or row.warned_at is not None:
        return
    days = max((ends - moment).days, 0)
    message_id = f"ends_soon:{row.pk}:{ends:%Y%m%d}:{days}"
    if was_enqueued(message_id):
        return
    row.warned_at = moment
    record(AuditEvent.CONNECTION_WARNED, subject=f"connection:{row.pk}", data={"days": days})
    enqueue(ENDS_SOON, row.pk, message_id=message_id)


def _save_check(row: Connection) -> None:
    moment = now()
    due = next_due(row.health_check, after=moment, zone="UTC")
    row.next_check_at = rules.next_check(due, row.token_expires_at, now=moment, dice=_random)
    row.save(update_fields=[*_CHECK_FIELDS, "warned_at", "recovered"])


def postpone(connection_id: UUID) -> None:
    """Try a check that did not happen, because the guard refused it, again later."""
    Connection.objects.filter(pk=connection_id).update(next_check_at=now() + RETRY_AFTER)
