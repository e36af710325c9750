"""What follows from the state of a connection: checked by schedule, renewed in time, recovered once, then failed.

Always holds: who checks one holds the lease of its message, so that any number of workers check a thousand and none
twice; one refresh at a time; at most one automatic recovery until it is healthy again (spec 5.10.3, 5.10.4).
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID

from pydantic import ValidationError

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.bus.queries import is_lease_held
from apps.bus.schemas import LeaseRef
from apps.connections import credentials, rules, scripts, signals
from apps.connections.enums import ConnectionStatus, FailureType, Script
from apps.connections.locks import lock_connection
from apps.connections.models import Connection
from apps.connections.schemas import ConnectionFailure, HealthResult, RecoverResult, RefreshResult
from apps.connections.scripts import Job, call_failed
from apps.connections.services.outbox import ENDS_SOON, FAILED, enqueue, was_enqueued
from apps.connections.services.status import change_status
from apps.guard.schemas import CallContext, CallFailed, HandlerResult
from kernel.clock import now
from kernel.errors import SilasError
from kernel.schedules import next_due
from kernel.tenancy import tenant_scope

AGAIN = timedelta(minutes=5)
_dice = random.Random()  # noqa: S311 (spreads load, keeps no secret)


def is_due(connection_id: UUID) -> bool:
    due = Connection.objects.filter(pk=connection_id, status=ConnectionStatus.ACTIVE, next_check_at__lte=now())
    return bool(due.exists())


def next_check_at(connection_id: UUID) -> datetime | None:
    """When it is checked next; None for one that is not active."""
    row = lock_connection(connection_id)
    return row.next_check_at if row.status == ConnectionStatus.ACTIVE else None


class HealthCheck:
    """The work of one guarded call: is it healthy, does its sign-in have to be renewed, can it be recovered?"""

    def __init__(self, tenant_id: UUID, connection_id: UUID, lease: LeaseRef) -> None:
        self.tenant_id, self.connection_id, self.lease = tenant_id, connection_id, lease

    def __call__(self, ctx: CallContext) -> HandlerResult:
        job = scripts.load_job(self.tenant_id, self.connection_id)
        if rules.needs_refresh(job.connection.token_expires_at, now()):
            return self._renewed(job) or self._unwell(job, HealthResult(healthy=False, error="token_expired"))
        result = self._health(job)
        if not result.healthy:
            return self._unwell(job, result)
        if self._ends(job, result):
            return self._renewed(job, dormant=True) or self._settled(partial(record_healthy, result=result))
        return self._settled(partial(record_healthy, result=result))

    def _ends(self, job: Job, result: HealthResult) -> bool:
        """A refresh token that is about to end on a connection that nobody uses: it is renewed in silence."""
        moment, row = now(), job.connection
        ends = result.refresh_token_expires_at or row.refresh_token_expires_at
        return rules.refresh_token_ends(ends, moment) and rules.is_dormant(row.last_used, moment)

    def _health(self, job: Job) -> HealthResult:
        try:
            answer, handed = scripts.run_script(job, Script.HEALTH_CHECK, self._asked())
            result = HealthResult.model_validate(answer)
        except (CallFailed, ValidationError) as error:
            code = error.code if isinstance(error, CallFailed) else "garbage_output"
            return HealthResult(healthy=False, error=code)
        self._keep(handed)
        return result

    def _renewed(self, job: Job, *, dormant: bool = False) -> HandlerResult | None:
        """None when it could not be renewed; why is in nobody's interest before the recovery was tried."""
        result = self._refresh(job)
        if result is None or not result.success:
            return None
        return self._settled(partial(record_refreshed, result=result, dormant=dormant))

    def _refresh(self, job: Job) -> RefreshResult | None:
        if Script.REFRESH.value not in job.scripts:
            return None
        try:
            answer, handed = scripts.run_script(job, Script.REFRESH, self._asked())
            result = RefreshResult.model_validate(answer)
        except (CallFailed, ValidationError):
            return None
        if result.success:
            self._keep(handed)
        return result

    def _unwell(self, job: Job, result: HealthResult) -> HandlerResult:
        """Renewed, if a sign-in ran out; else recovered, once; else failed, and a person is told (spec 5.10.4)."""
        if "expired" in result.error and (renewed := self._renewed(job)):
            return renewed
        if job.connection.recovered:
            return self._settled(partial(record_broken, failure=result.failure or ConnectionFailure()))
        return self._recovered(job, result)

    def _recovered(self, job: Job, result: HealthResult) -> HandlerResult:
        said = self._recover(job, result.error)
        if said.success:
            return self._settled(record_recovered)
        return self._settled(partial(record_broken, failure=said.failure or result.failure or ConnectionFailure()))

    def _recover(self, job: Job, error: str) -> RecoverResult:
        try:
            answer, handed = scripts.run_script(job, Script.RECOVER, {**self._asked(), "error": error})
            result = RecoverResult.model_validate(answer)
        except (CallFailed, ValidationError):
            return RecoverResult()
        self._keep(handed)
        return result

    def _asked(self) -> dict[str, Any]:
        return {"connection_id": str(self.connection_id)}

    def _keep(self, handed: Mapping[str, str]) -> None:
        """New credentials count at once, whatever becomes of the rest: the service may have ended the old ones."""
        if not handed:
            return
        try:
            with tenant_scope(self.tenant_id):
                lock_leased(self.connection_id, self.lease)
                credentials.store(self.connection_id, handed)
        except SilasError as refusal:
            raise call_failed(refusal.code, refusal.message) from refusal

    def _settled(self, step: Any) -> HandlerResult:
        return HandlerResult({}, on_settle=lambda: step(lock_leased(self.connection_id, self.lease)))


def lock_leased(connection_id: UUID, lease: LeaseRef) -> Connection:
    """Its row, locked. Raises `SilasError("lease_lost")` for whoever lost it."""
    row = lock_connection(connection_id)
    if not is_lease_held(lease):
        raise SilasError("lease_lost", "Somebody else sees to this connection now.", status=409)
    return row


_TIMES = ("token_expires_at", "refresh_token_expires_at", "last_health_check", "last_refresh", "next_check_at")


def record_healthy(row: Connection, *, result: HealthResult) -> None:
    row.last_health_check = now()
    row.token_expires_at = result.token_expires_at or row.token_expires_at
    row.refresh_token_expires_at = result.refresh_token_expires_at or row.refresh_token_expires_at
    row.recovered = False
    _warn(row)
    _done(row)


def record_refreshed(row: Connection, *, result: RefreshResult, dormant: bool) -> None:
    row.last_refresh = now()
    row.token_expires_at = result.new_expires_at
    row.refresh_token_expires_at = result.refresh_token_expires_at or row.refresh_token_expires_at
    event = AuditEvent.PROACTIVE_REFRESH_DORMANT if dormant else AuditEvent.CONNECTION_REFRESHED
    record(event, subject=f"connection:{row.pk}")
    _done(row)


def record_recovered(row: Connection) -> None:
    row.recovered, row.last_health_check = True, now()
    record(AuditEvent.CONNECTION_RECOVERED, subject=f"connection:{row.pk}")
    _done(row)


def record_broken(row: Connection, *, failure: ConnectionFailure) -> None:
    """It does not work, and nobody tries again by themselves: a person is told."""
    row.failure, row.recovered = failure.model_dump(mode="json"), False
    kind = FailureType(failure.failure_type).value
    change_status(row, ConnectionStatus.FAILED, "failure", "recovered", reason=kind)
    enqueue(FAILED, row.pk, message_id=f"failed:{row.pk}:{now():%Y%m%d%H%M%S%f}")


def _warn(row: Connection) -> None:
    """Its refresh token is about to end, and somebody uses it: they are told once, and again when it is a day nearer if
    they wished to be reminded."""
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


def _done(row: Connection) -> None:
    moment = now()
    due = next_due(row.health_check, after=moment, zone="UTC")
    row.next_check_at = rules.next_check(due, row.token_expires_at, now=moment, dice=_dice)
    row.save(update_fields=[*_TIMES, "warned_at", "recovered"])
    signals.connection_changed(row)


def postpone(connection_id: UUID) -> None:
    """A check that did not happen (the guard refused it) is tried later."""
    Connection.objects.filter(pk=connection_id).update(next_check_at=now() + AGAIN)
