"""Statements that are sent together, and their values."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import DEFAULT_DB_ALIAS, connections
from django.db.models import QuerySet
from psycopg import Connection
from psycopg.waiting import Ready

from apps.sessions.models import Turn
from apps.tenants.models import Deployment, Tenant
from kernel.clock import now
from kernel.tenancy import ModelRows, ScopeError, before_commit, built_once, read_together, tenant_scope
from kernel.tenancy.reads import Read, Rows
from tests.factories.tenants import make_deployment


def test_values_of_two_threads_do_not_wait_for_each_other() -> None:
    met = Barrier(2, timeout=5)

    def parse(rows: Rows) -> int:
        met.wait()
        return len(rows)

    def read() -> int:
        one = Read("", (), parse)
        one.rows = [(1,)]
        return one.value

    with ThreadPoolExecutor(2) as threads:
        assert [future.result() for future in [threads.submit(read), threads.submit(read)]] == [1, 1]


@built_once
def _named(slug: str, ids: list[UUID]) -> QuerySet[Deployment, Any]:
    return Deployment.objects.filter(slug=slug, pk__in=ids).order_by("pk").values_list("pk", "title")


@built_once
def _with_goal(deployment_id: UUID) -> QuerySet[Deployment]:
    return Deployment.objects.select_related("tenant").filter(pk=deployment_id)


@pytest.fixture
def deployments(tenant: Tenant) -> list[Deployment]:
    return sorted((make_deployment(tenant, slug=slug) for slug in ("one", "two")), key=lambda each: each.pk)


def test_a_statement_that_is_built_once_runs_with_the_values_of_each_call(
    tenant: Tenant, other_tenant: Tenant, deployments: list[Deployment]
) -> None:
    one, two = deployments
    with tenant_scope(tenant):
        assert _named.columns(one.slug, [one.pk, two.pk]).value == [(one.pk, one.title)]
        assert _named.columns(two.slug, [one.pk, two.pk]).value == [(two.pk, two.title)]
        assert _named.columns(two.slug, [one.pk]).value == []
        assert _named.columns(two.slug, []).value == []
    with tenant_scope(other_tenant):
        assert _named.columns(one.slug, [one.pk]).value == []


def test_rows_of_a_statement_that_is_built_once_are_those_of_the_queryset(
    tenant: Tenant, deployments: list[Deployment]
) -> None:
    one, two = deployments
    with tenant_scope(tenant):
        (row,) = _with_goal.rows(one.pk).value
        assert row.__dict__.keys() == Deployment.objects.get(pk=one.pk).__dict__.keys()
        assert {name: row.__dict__[name] for name in one.__dict__ if name != "_state"} == {
            name: value for name, value in Deployment.objects.get(pk=one.pk).__dict__.items() if name != "_state"
        }
        assert row.tenant.name == tenant.name
        row.title = "Renamed"
        row.save()
        assert Deployment.objects.get(pk=one.pk).title == "Renamed"
        assert _with_goal.rows(two.pk).parsed(len).value == 1
        assert _with_goal.rows(uuid4()).value == []


def test_rows_of_a_statement_that_is_built_once_are_saved_in_the_primary(
    tenant: Tenant, deployments: list[Deployment], monkeypatch: pytest.MonkeyPatch
) -> None:
    with tenant_scope(tenant), monkeypatch.context() as on_replica:
        on_replica.setattr(connections[DEFAULT_DB_ALIAS], "alias", "replica")  # as in `read_from_replica`
        (row,) = _with_goal.rows(deployments[0].pk).value
        assert row._state.db == DEFAULT_DB_ALIAS
        assert row.tenant._state.db == DEFAULT_DB_ALIAS


def test_a_statement_that_is_built_once_is_refused_outside_a_scope(tenant: Tenant) -> None:
    with pytest.raises(ScopeError):
        _named.columns("one", [])


def test_a_time_or_an_id_that_is_no_parameter_is_refused(tenant: Tenant) -> None:
    created, pk = now(), uuid4()
    since = built_once(lambda slug: Turn.objects.filter(status=slug, started_at__gte=created))
    of_one = built_once(lambda slug: Deployment.objects.filter(slug=slug, pk=pk))
    in_a_text = built_once(lambda slug: Deployment.objects.filter(slug=f"{slug}-1"))
    with tenant_scope(tenant):
        for wrong in (since, of_one, in_a_text):
            with pytest.raises(TypeError, match="built once"):
                wrong.rows("one")


@built_once
def _by_id(deployment_id: UUID) -> QuerySet[Deployment]:
    return Deployment.objects.filter(pk=deployment_id)


def test_rows_of_a_statement_of_our_own_are_those_of_the_model(tenant: Tenant, deployments: list[Deployment]) -> None:
    rows = ModelRows(Deployment, "it")
    with tenant_scope(tenant):
        found = Read(f"SELECT {rows.columns}, 7 FROM tenants_deployment it WHERE id = %s", [deployments[0].pk], list)
        (row,) = rows.models(found.value)
        assert found.value[0][-1] == 7
        own = Deployment.objects.get(pk=deployments[0].pk)
        assert {name: value for name, value in row.__dict__.items() if name != "_state"} == {
            name: value for name, value in own.__dict__.items() if name != "_state"
        }
        assert not row._state.adding


def test_reads_before_a_commit_wait_for_the_server_once(
    tenant: Tenant, deployments: list[Deployment], monkeypatch: pytest.MonkeyPatch
) -> None:
    waits = 0
    real = Connection.wait

    def watched(gen: Any) -> Any:
        nonlocal waits
        ready, is_answered = None, False
        while True:
            try:
                ready = yield gen.send(ready)
            except StopIteration as end:
                waits += is_answered
                return end.value
            is_answered |= bool(ready & Ready.R)

    def wait(self: Any, gen: Any, *args: Any, **kwargs: Any) -> Any:
        return real(self, watched(gen), *args, **kwargs)

    def flush(items: list[Any]) -> None:
        first, second = _by_id.rows(items[0]), _by_id.rows(items[1])
        with monkeypatch.context() as patched:
            patched.setattr(Connection, "wait", wait)
            Deployment.objects.filter(pk=items[0]).update(title="Before")
            read_together(first, second)
        assert first.value[0].title == "Before"
        assert second.value[0].pk == items[1]

    with tenant_scope(tenant):
        for deployment in deployments:
            before_commit(flush, deployment.pk)
    assert waits == 1
