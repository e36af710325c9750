"""What may a scope do that is one statement alone, and what leaves together?"""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from django.db import IntegrityError, connection, transaction
from django.db.transaction import TransactionManagementError

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.tenants.models import Deployment, Membership
from kernel.tenancy import ScopeError, current_tenant_id, gather_for_commit, tenant_scope
from kernel.tenancy.rows import Question, ask
from kernel.tenancy.scope import statement_scope
from tests.factories.tenants import make_deployment


def test_other_statements_in_a_statement_scope_see_nothing(tenant: Any) -> None:
    make_deployment(tenant)
    with statement_scope(tenant.pk):
        assert (current_tenant_id(), Deployment.objects.count()) == (tenant.pk, 0)


def test_statement_scope_cannot_be_opened_in_another(tenant: Any) -> None:
    with tenant_scope(tenant), pytest.raises(ScopeError), statement_scope(tenant.pk):
        pass


def test_statement_scope_cannot_be_opened_in_a_transaction(tenant: Any) -> None:
    with transaction.atomic(), pytest.raises(ScopeError), statement_scope(tenant.pk):
        pass


def test_statement_scope_has_nothing_to_do_at_its_end(tenant: Any) -> None:
    with statement_scope(tenant.pk), pytest.raises(ScopeError):
        record(AuditEvent.MESSAGE_ACCEPTED)


def test_last_statement_that_is_refused_undoes_its_scope(tenant: Any) -> None:
    """What was gathered leaves together; the first refusal is raised, as what it is, and nothing stays."""

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
            gather_for_commit(twice, None)

    with pytest.raises(IntegrityError):
        write()
    with tenant_scope(tenant), connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM audit_auditentry WHERE tenant_id = %s", [tenant.pk])
        assert cursor.fetchone() == (0,)


def test_answers_larger_than_a_sockets_buffer_come_whole(tenant: Any) -> None:
    large = "x" * 3_000_000
    echo = Question("SELECT %s::text", [large], lambda rows: len(rows[0][0]))
    with tenant_scope(tenant):
        assert ask(echo, echo, echo) == (len(large),) * 3


def _audited() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM audit_auditentry WHERE tenant_id = %s", [current_tenant_id()])
        return int(cursor.fetchone()[0])


def test_what_runs_after_commit_finds_it_done_and_a_line_of_its_own(tenant: Any) -> None:
    """COMMIT leaves with the audit entries; what waited for it may begin a transaction at once."""
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
        assert (_audited(), Membership.objects.count()) == (0, 0)
