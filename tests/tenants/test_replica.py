"""Figures and searches read a replica that streams from the primary; nothing else does."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import InternalError, connection, connections

from apps.inbox.insights import Period, figures_of, today_in
from apps.inbox.queries import Asked, conversations
from apps.sessions.models import ChatSession
from apps.tenants.models import Deployment
from kernel.clock import now
from kernel.tenancy import ScopeError, read_from_replica, tenant_scope
from silas_platform.checks import refuse_wide_role
from silas_platform.doctor import _replica
from silas_platform.settings.databases import databases
from silas_platform.up.environment import for_program
from tests.factories.replica import Replica, start_replica
from tests.factories.sessions import make_session, say

FOLLOW_SECONDS = 20.0


@pytest.fixture(scope="module")
def server(migrated: None, superuser_dsn: str) -> Iterator[Replica]:
    started = start_replica(superuser_dsn)
    yield started
    started.remove()


@pytest.fixture
def replica(server: Replica, database: None) -> Iterator[Replica]:
    made = databases("", owner_url="", replica_url=server.dsn("silas_app"))
    connections.settings["replica"] = connections.configure_settings(made)["replica"]
    yield server
    connections["replica"].close_pool()
    del connections["replica"]
    del connections.settings["replica"]


def is_replica() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_is_in_recovery()")
        return bool(cursor.fetchone()[0])


def follow(superuser_dsn: str, replica: Replica) -> None:
    """Wait until the replica has what the primary has now."""
    import psycopg

    with psycopg.connect(superuser_dsn) as primary, psycopg.connect(replica.dsn("postgres"), autocommit=True) as there:
        (written,) = primary.execute("SELECT pg_current_wal_insert_lsn()").fetchone() or ("",)
        give_up = time.monotonic() + FOLLOW_SECONDS
        while (there.execute("SELECT pg_last_wal_replay_lsn() < %s", [written]).fetchone() or (True,))[0]:
            assert time.monotonic() < give_up, "the replica does not follow"
            time.sleep(0.05)


def period() -> Period:
    moment = now()
    today = today_in("UTC", moment)
    return Period(today, today, "UTC", moment)


def test_reads_go_to_the_replica_and_what_follows_to_the_primary(
    replica: Replica, tenant: Any, superuser_dsn: str
) -> None:
    follow(superuser_dsn, replica)
    with tenant_scope(tenant):
        assert read_from_replica(is_replica)
        assert not is_replica()
        Deployment.objects.create(tenant=tenant, slug="written", title="Written after the read", public_key="written")
    with tenant_scope(tenant):
        assert Deployment.objects.filter(slug="written").exists()


def test_replica_shows_the_tenants_rows_alone(
    replica: Replica, tenant: Any, other_tenant: Any, deployment: Any, superuser_dsn: str
) -> None:
    follow(superuser_dsn, replica)
    with tenant_scope(tenant):
        assert read_from_replica(lambda: list(Deployment.objects.values_list("pk", flat=True))) == [deployment.pk]
    with tenant_scope(other_tenant):
        assert read_from_replica(lambda: Deployment.objects.filter(pk=deployment.pk).count()) == 0


def test_figures_and_searches_are_those_of_the_replica(
    replica: Replica, tenant: Any, deployment: Any, superuser_dsn: str
) -> None:
    session = make_session(deployment)
    say(session, "Is a burst pipe covered?")
    follow(superuser_dsn, replica)
    replica.run("SELECT pg_wal_replay_pause()")
    try:
        later = make_session(deployment)
        say(later, "And a burst pipe in the garden?")
        with tenant_scope(tenant):
            assert figures_of(period())[0].conversations == 1
            assert [row.session.pk for row in conversations(Asked(words="burst"), None).rows] == [session.pk]
            assert len(conversations(Asked(), None).rows) == 2
    finally:
        replica.run("SELECT pg_wal_replay_resume()")
    follow(superuser_dsn, replica)
    with tenant_scope(tenant):
        assert figures_of(period())[0].conversations == 2


def test_replica_takes_no_change(replica: Replica, tenant: Any, deployment: Any, superuser_dsn: str) -> None:
    follow(superuser_dsn, replica)
    with tenant_scope(tenant), pytest.raises(InternalError, match="read-only"):
        read_from_replica(lambda: Deployment.objects.update(title="changed"))
    with tenant_scope(tenant):
        assert not is_replica()
        assert Deployment.objects.get().title == deployment.title


def test_no_scope_no_read(replica: Replica) -> None:
    with pytest.raises(ScopeError):
        read_from_replica(is_replica)


def test_operator_learns_of_a_server_that_is_no_replica(replica: Replica, superuser_dsn: str) -> None:
    assert [text for _, text in _replica()] == ["The replica follows."]


def test_primary_answers_while_the_replica_is_away(replica: Replica, tenant: Any, caplog: Any) -> None:
    replica.stop()
    with tenant_scope(tenant):
        assert not read_from_replica(is_replica)
        assert ChatSession.objects.count() == 0
    assert "replica_unavailable" in caplog.text


def test_without_a_replica_the_primary_answers(tenant: Any) -> None:
    with tenant_scope(tenant):
        assert not read_from_replica(is_replica)


@pytest.mark.parametrize(("program", "reads"), [("web", True), ("trusted", True), ("worker", False)])
def test_address_goes_to_web_and_the_trusted_worker_alone(program: str, reads: bool) -> None:
    env = {
        "DATABASE_URL": "postgresql://silas_app@db/silas",
        "DATABASE_REPLICA_URL": "postgresql://silas_app@copy/silas",
    }
    assert ("DATABASE_REPLICA_URL" in for_program(env, program)) is reads


def test_worker_that_knows_the_address_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_REPLICA_URL", "postgresql://silas_app@copy/silas")
    with pytest.raises(ImproperlyConfigured, match="DATABASE_REPLICA_URL"):
        refuse_wide_role()
