"""Close a company and open it again, by an operator.

Of a closed company nothing is served: web processes and workers refuse its scope (`kernel.tenancy`), and its queued
messages are put off so far that no worker finds them. What was running ends first. Everything is kept.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta

from django.db import connection, transaction
from django.db.models import F
from django.db.models.functions import Now

from apps.audit.checkpoints import write_checkpoint
from apps.audit.enums import AuditEvent
from apps.audit.queries import chain_of
from apps.audit.services import record
from apps.bus.enums import State
from apps.bus.models import QueueMessage
from apps.tenants import policy_seals
from apps.tenants.enums import Closed, PolicyKind
from apps.tenants.models import Tenant
from kernel.tenancy import tenant_scope
from silas_platform.backup.manifest import BackupRefused

ACTOR = "command:company"
_PUT_OFF = timedelta(days=365_000)
_WAIT_SECONDS, _PAUSE_SECONDS = 120.0, 0.5


def company_named(slug: str) -> Tenant:
    """Raises `BackupRefused`."""
    tenant = Tenant.objects.filter(slug=slug, is_simulated=False).first()
    if tenant is None:
        raise BackupRefused("E_COMPANY_UNKNOWN", f"There is no company {slug} here.")
    return tenant


def close(tenant: Tenant, *, moved: bool = False) -> None:
    """Close the company, after its running jobs have ended; `moved`: another installation has it now. Closed again, it
    stays closed. Raises `BackupRefused` if jobs still run after two minutes."""
    if not tenant.closed:
        _put_off(tenant)
        if not _waited(lambda: not _put_off(tenant)):
            _put_back(tenant)
            raise BackupRefused("E_COMPANY_BUSY", f"Jobs of {tenant.slug} are still running. Try again.")
    tenant.closed = Closed.MOVED if moved else Closed.CLOSED
    with tenant_scope(tenant):
        tenant.save(update_fields=["closed"])
        record(AuditEvent.COMPANY_CLOSED, actor=ACTOR, subject=f"tenant:{tenant.pk}", data={"moved": moved})
        number = _transaction_number()
    if not _waited(lambda: _oldest_transaction() > number):
        raise BackupRefused("E_COMPANY_BUSY", "Another transaction does not end. Close it again.")
    _put_off(tenant)
    write_checkpoint(chain_of(tenant.pk))


def open_again(tenant: Tenant) -> None:
    """Raises `BackupRefused` if its policy is not certified here."""
    if not tenant.closed:
        raise BackupRefused("E_COMPANY_OPEN", f"{tenant.slug} is open.")
    with tenant_scope(tenant):
        if unproven := [kind.value for kind in PolicyKind if policy_seals.load_items(kind) is None]:
            raise BackupRefused("E_COMPANY_UNPROVEN", f"Not certified by this installation: {', '.join(unproven)}.")
        tenant.closed = Closed.NO
        tenant.save(update_fields=["closed"])
        record(AuditEvent.COMPANY_OPENED, actor=ACTOR, subject=f"tenant:{tenant.pk}")
    _put_back(tenant)


def _put_off(tenant: Tenant) -> int:
    """Put off the queued messages; how many are being worked on."""
    with tenant_scope(tenant):
        due = QueueMessage.objects.filter(state=State.QUEUED, available_at__lt=Now() + _PUT_OFF / 2)
        due.update(available_at=F("available_at") + _PUT_OFF)
        return int(QueueMessage.objects.filter(state=State.LEASED, leased_until__gt=Now()).count())


def _put_back(tenant: Tenant) -> None:
    with tenant_scope(tenant):
        late = QueueMessage.objects.filter(state=State.QUEUED, available_at__gt=Now() + _PUT_OFF / 2)
        late.update(available_at=F("available_at") - _PUT_OFF)


def _waited(is_over: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + _WAIT_SECONDS
    while not is_over():
        if time.monotonic() > deadline:
            return False
        time.sleep(_PAUSE_SECONDS)
    return True


def _transaction_number() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_current_xact_id()::text::bigint")
        return int(cursor.fetchone()[0])


def _oldest_transaction() -> int:
    """The oldest transaction that still runs: those before it have ended."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint")
        return int(cursor.fetchone()[0])
