"""A scope is one transaction: what was gathered for its commit, refusals at its end, what runs after it."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from django.db import IntegrityError, connection, transaction
from django.db.transaction import TransactionManagementError

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.tenants.models import Deployment, Membership
from kernel.tenancy import before_commit, current_tenant_id, tenant_scope
from tests.factories.tenants import make_deployment


def test_last_statement_that_is_refused_undoes_its_scope(tenant: Any) -> None:
    """What was gathered is written before the commit; a refusal is raised, as what it is, and nothing stays."""

    def twice(rows: list[Any]) -> None:
        with connection.cursor() as cursor:
            cursor.execute(
                "INSERT INTO bus_processed (id, tenant_id, consumer, message_id) SELECT gen_random_uuid(),"
                " %s::uuid, 'c', 'm' FROM generate_series(1, 2)",
                [str(tenant.pk)],
            )

    def write() -> None:
        with tenant_scope(tenant):
            record(AuditEvent.MESSAGE_ACCEPTED)
            before_commit(twice, None)

    with pytest.raises(IntegrityError):
        write()
    with tenant_scope(tenant), connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM audit_auditentry WHERE tenant_id = %s", [tenant.pk])
        assert cursor.fetchone() == (0,)


def test_rows_that_are_read_piece_by_piece_belong_to_the_scope(tenant: Any, other_tenant: Any) -> None:
    make_deployment(tenant)
    make_deployment(other_tenant)
    with tenant_scope(tenant):
        assert [each.tenant_id for each in Deployment.objects.all().iterator(1)] == [tenant.pk]
    with tenant_scope(tenant):
        assert Deployment.objects.count() == 1
        assert [each.tenant_id for each in Deployment.objects.all().iterator(1)] == [tenant.pk]


def _audited() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM audit_auditentry WHERE tenant_id = %s", [current_tenant_id()])
        return int(cursor.fetchone()[0])


def test_what_runs_after_commit_finds_it_done_and_a_line_of_its_own(tenant: Any) -> None:
    """What waited for the commit may begin a transaction at once."""
    found: list[int] = []

    def look() -> None:
        with tenant_scope(tenant):
            found.append(_audited())

    with tenant_scope(tenant):
        record(AuditEvent.MESSAGE_ACCEPTED)
        transaction.on_commit(look)
    assert found == [1]


def test_scope_that_may_not_commit_any_more_leaves_nothing(tenant: Any) -> None:
    def write() -> None:
        with tenant_scope(tenant):
            record(AuditEvent.MESSAGE_ACCEPTED)
            transaction.set_rollback(True)

    with pytest.raises(TransactionManagementError):
        write()
    with tenant_scope(tenant):
        assert _audited() == 0


def test_commit_that_the_database_refuses_is_raised_and_leaves_the_line_fit(tenant: Any) -> None:
    """A foreign key is looked at when the transaction ends: the refusal comes with COMMIT itself."""

    def write() -> None:
        with tenant_scope(tenant):
            record(AuditEvent.MESSAGE_ACCEPTED)
            Membership.objects.create(user_id=uuid4(), role="owner")

    with pytest.raises(IntegrityError):
        write()
    with tenant_scope(tenant):
        assert _audited() == 0
        assert Membership.objects.count() == 0
