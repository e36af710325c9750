"""What does a scope do when the database's end of its connection is gone?"""

from __future__ import annotations

import time
from typing import Any
from uuid import UUID

import psycopg
import pytest
from django.db import OperationalError, connection

from kernel.tenancy import current_tenant_id, in_scope, tenant_scope, with_retry


def _drop_idle_connections(superuser_dsn: str) -> None:
    """As a restart of the server does."""
    with psycopg.connect(superuser_dsn, autocommit=True) as insider:
        insider.execute("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE usename = 'silas_app'")


def _lose_connection() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")


class Step:
    """Loses its connection the first `times`."""

    def __init__(self, times: int) -> None:
        self.times, self.tried = times, 0

    def __call__(self) -> UUID:
        self.tried += 1
        if self.tried <= self.times:
            _lose_connection()
        return current_tenant_id()


def test_scope_after_the_server_dropped_idle_connections_begins_on_another(tenant: Any, superuser_dsn: str) -> None:
    with tenant_scope(tenant):
        pass
    connection.close()
    _drop_idle_connections(superuser_dsn)
    with tenant_scope(tenant):
        assert current_tenant_id() == tenant.pk


async def test_step_that_loses_its_connection_is_not_repeated_behind_the_callers_back(tenant: Any) -> None:
    step = Step(1)
    with pytest.raises(OperationalError):
        await in_scope(tenant, step)
    assert step.tried == 1


async def test_patient_step_is_tried_until_it_passes(tenant: Any) -> None:
    step = Step(2)
    assert await with_retry(tenant, 10, step) == tenant.pk
    assert step.tried == 3


async def test_patient_step_ends_with_its_patience(tenant: Any) -> None:
    started = time.monotonic()
    with pytest.raises(OperationalError):
        await with_retry(tenant, 0.6, Step(1000))
    assert time.monotonic() - started < 5


async def test_patient_step_that_fails_for_another_reason_is_not_repeated(tenant: Any) -> None:
    tried = []

    def refuse() -> None:
        tried.append(1)
        raise LookupError

    with pytest.raises(LookupError):
        await with_retry(tenant, 10, refuse)
    assert len(tried) == 1
