"""What may a scope do that is one statement alone, and what leaves together?"""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import psycopg
import pytest
from django.db import IntegrityError, connection, transaction
from django.db.transaction import TransactionManagementError

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.tenants.models import Deployment, Membership
from bench.trips import heard
from kernel.tenancy import ScopeError, current_tenant_id, gather_for_commit, tenant_scope
from kernel.tenancy.rows import Question, ask, ask_last, first
from kernel.tenancy.scope import let_commit_trail, statement_scope
from tests.factories.tenants import make_deployment

# Takes so long that no answer is there before it is waited for.
SLOWLY = "pg_sleep(0.02)"


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


@pytest.fixture
def waited(monkeypatch: pytest.MonkeyPatch) -> list[None]:
    """One entry for each time the process waits for what the server has to say; none for what is there already, as a
    commit's answer may be."""
    found: list[None] = []
    real = psycopg.Connection.wait

    def wait(self: Any, gen: Any, *args: Any, **kwargs: Any) -> Any:
        waits: list[Any] = []
        answer = real(self, heard(gen, waits), *args, **kwargs)
        found.extend([None] if waits else [])
        return answer

    monkeypatch.setattr(psycopg.Connection, "wait", wait)
    return found


def test_scope_that_reads_waits_for_its_statement_and_its_end(tenant: Any, waited: list[None]) -> None:
    waited.clear()
    with tenant_scope(tenant):
        _ask_slowly()
        assert len(waited) == 1
    assert len(waited) <= 2


def test_questions_of_a_scope_come_back_with_its_beginning(tenant: Any, waited: list[None]) -> None:
    one = Question(f"SELECT 1 FROM {SLOWLY}", [], len)
    waited.clear()
    with tenant_scope(tenant):
        ask(one, one)
        assert len(waited) == 1


def test_last_questions_of_a_scope_are_its_only_wait(tenant: Any, other_tenant: Any, waited: list[None]) -> None:
    make_deployment(tenant)
    make_deployment(other_tenant)
    counted = Question(f"SELECT count(*) FROM tenants_deployment, {SLOWLY}", [], first)
    waited.clear()
    with tenant_scope(tenant):
        assert ask_last(counted, counted) == (1, 1)
    assert len(waited) == 1


def test_nothing_of_a_tenant_is_seen_or_kept_behind_the_last_question(tenant: Any) -> None:
    made = make_deployment(tenant)
    one = Question("SELECT 1", [], first)
    with tenant_scope(tenant):
        ask_last(one)
        assert Deployment.objects.count() == 0
        assert Deployment.objects.filter(pk=made.pk).update(title="Other") == 0


def test_scope_that_has_something_to_write_has_no_last_question(tenant: Any) -> None:
    def write() -> None:
        with tenant_scope(tenant):
            record(AuditEvent.MESSAGE_ACCEPTED)
            ask_last(Question("SELECT 1", [], first))

    with pytest.raises(ScopeError):
        write()
    with tenant_scope(tenant):
        assert _audited() == 0


def test_scope_inside_a_transaction_leaves_its_commit_to_that(tenant: Any) -> None:
    with transaction.atomic():
        with tenant_scope(tenant):
            make_deployment(tenant)
            ask_last(Question("SELECT 1", [], first))
        transaction.set_rollback(True)
    with tenant_scope(tenant):
        assert Deployment.objects.count() == 0


def test_what_was_gathered_and_the_commit_are_one_wait(tenant: Any, waited: list[None]) -> None:
    waited.clear()
    with tenant_scope(tenant):
        _ask_slowly()
        record(AuditEvent.MESSAGE_ACCEPTED)
        assert len(waited) == 1
    assert len(waited) <= 2
    with tenant_scope(tenant):
        assert _audited() == 1


def test_scope_that_touches_nothing_never_speaks_to_the_database(tenant: Any, waited: list[None]) -> None:
    with tenant_scope(tenant):
        Deployment.objects.count()
    waited.clear()
    with tenant_scope(tenant):
        pass
    assert not waited


def test_rows_that_are_read_piece_by_piece_belong_to_the_scope(tenant: Any, other_tenant: Any) -> None:
    """A cursor on the server takes no part in a pipeline."""
    make_deployment(tenant)
    make_deployment(other_tenant)
    with tenant_scope(tenant):
        assert [each.tenant_id for each in Deployment.objects.all().iterator(1)] == [tenant.pk]
    with tenant_scope(tenant):
        assert Deployment.objects.count() == 1
        assert [each.tenant_id for each in Deployment.objects.all().iterator(1)] == [tenant.pk]


@pytest.mark.parametrize("trails", [False, True])
def test_only_a_commit_that_may_trail_waits_for_no_disk(tenant: Any, trails: bool) -> None:
    found: list[Any] = []

    def look(rows: list[Any]) -> None:
        found.append(connection.cursor())
        found[-1].execute("SHOW synchronous_commit")

    with connection.cursor() as cursor:
        cursor.execute("SET synchronous_commit TO on")
    with tenant_scope(tenant):
        gather_for_commit(look, None)
        if trails:
            let_commit_trail()
    with tenant_scope(tenant):
        gather_for_commit(look, None)
    with connection.cursor() as cursor:
        cursor.execute("RESET synchronous_commit")
    assert [each.fetchone()[0] for each in found] == ["off" if trails else "on", "on"]


def test_answers_larger_than_a_sockets_buffer_come_whole(tenant: Any) -> None:
    large = "x" * 3_000_000
    echo = Question("SELECT %s::text", [large], lambda rows: len(rows[0][0]))
    with tenant_scope(tenant):
        assert ask(echo, echo, echo) == (len(large),) * 3


def _ask_slowly() -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT count(*) FROM tenants_deployment, {SLOWLY}")


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
