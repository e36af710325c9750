"""Does the database itself keep tenants apart when our code forgets to?"""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from django.db import ProgrammingError, connection

from apps.tenants.models import Deployment, Membership
from kernel.tenancy import ScopeError, lookup_scope, platform_scope, tenant_scope
from tests.factories.tenants import make_deployment


def _raw_keys() -> set[str]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT public_key FROM tenants_deployment")
        return {row[0] for row in cursor.fetchall()}


def test_raw_query_without_scope_sees_nothing(tenant: Any) -> None:
    make_deployment(tenant)
    assert _raw_keys() == set()


def test_raw_query_in_scope_sees_only_own_rows(tenant: Any, other_tenant: Any) -> None:
    mine, theirs = make_deployment(tenant), make_deployment(other_tenant)
    with tenant_scope(tenant):
        seen = _raw_keys()
    assert mine.public_key in seen and theirs.public_key not in seen


def test_unfiltered_manager_in_scope_sees_only_own_rows(tenant: Any, other_tenant: Any) -> None:
    theirs = make_deployment(other_tenant)
    with tenant_scope(tenant):
        rows = super(type(Deployment.objects), Deployment.objects).get_queryset()
        assert not rows.filter(pk=theirs.pk).exists()


def test_raw_insert_for_other_tenant_is_refused(tenant: Any, other_tenant: Any, stranger: Any) -> None:
    with (
        pytest.raises(ProgrammingError, match="row-level security"),
        tenant_scope(tenant),
        connection.cursor() as cursor,
    ):
        cursor.execute(
            "INSERT INTO tenants_membership (id, tenant_id, user_id, role, created_at)"
            " VALUES (%s, %s, %s, 'owner', now())",
            [uuid4(), other_tenant.pk, stranger.pk],
        )


def test_raw_update_cannot_move_row_to_other_tenant(tenant: Any, other_tenant: Any) -> None:
    mine = make_deployment(tenant)
    with (
        pytest.raises(ProgrammingError, match="row-level security"),
        tenant_scope(tenant),
        connection.cursor() as cursor,
    ):
        cursor.execute("UPDATE tenants_deployment SET tenant_id = %s WHERE id = %s", [other_tenant.pk, mine.pk])


def test_connection_after_scope_keeps_no_tenant(tenant: Any) -> None:
    with tenant_scope(tenant):
        pass
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('silas.tenant', true), current_setting('silas.platform', true)")
        assert [value or "" for value in cursor.fetchone()] == ["", ""]


def test_connection_after_failed_scope_keeps_no_tenant(tenant: Any) -> None:
    with pytest.raises(RuntimeError), tenant_scope(tenant):
        raise RuntimeError
    assert _raw_keys() == set()


def test_lookup_scope_sees_only_the_row_with_that_key(tenant: Any) -> None:
    mine, sibling = make_deployment(tenant), make_deployment(tenant)
    with lookup_scope(mine.public_key):
        assert _raw_keys() == {mine.public_key} and sibling.public_key


@pytest.mark.parametrize(
    "statement", ["UPDATE tenants_deployment SET enabled = false", "DELETE FROM tenants_deployment"]
)
def test_lookup_scope_cannot_write(tenant: Any, statement: str) -> None:
    mine = make_deployment(tenant)
    with lookup_scope(mine.public_key), connection.cursor() as cursor:
        cursor.execute(f"{statement} WHERE public_key = %s", [mine.public_key])
        assert cursor.rowcount == 0


def test_platform_scope_sees_every_tenant(tenant: Any, other_tenant: Any) -> None:
    keys = {make_deployment(tenant).public_key, make_deployment(other_tenant).public_key}
    with platform_scope("test"):
        assert keys <= _raw_keys()


def test_application_role_is_neither_superuser_nor_owner(database: None) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT rolsuper, rolbypassrls FROM pg_roles WHERE rolname = current_user")
        assert cursor.fetchone() == (False, False)
        cursor.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public' AND tableowner = current_user")
        assert cursor.fetchone() == (0,)


@pytest.mark.parametrize(
    "touch",
    [
        lambda: Deployment.objects.exists(),
        lambda: Deployment.objects.create(slug="x"),
        lambda: list(Deployment.objects.all()),
        lambda: Deployment(slug="x").save(),
        lambda: Deployment.objects.bulk_create([Deployment(slug="x")]),
    ],
    ids=["exists", "create", "all", "save", "bulk_create"],
)
def test_manager_without_scope_refuses(database: None, touch: Any) -> None:
    with pytest.raises(ScopeError):
        touch()


def test_scope_of_none_is_refused(database: None) -> None:
    with pytest.raises(ScopeError), tenant_scope(None):
        pass


def test_scope_of_other_tenant_inside_scope_is_refused(tenant: Any, other_tenant: Any) -> None:
    with tenant_scope(tenant), pytest.raises(ScopeError), tenant_scope(other_tenant):
        pass


def test_scope_inside_tenant_scope_cannot_widen_to_platform(tenant: Any) -> None:
    with tenant_scope(tenant), pytest.raises(ScopeError), platform_scope("test"):
        pass


def test_tenant_scope_inside_platform_scope_narrows_and_restores(tenant: Any, other_tenant: Any) -> None:
    mine, theirs = make_deployment(tenant), make_deployment(other_tenant)
    with platform_scope("test"):
        with tenant_scope(tenant):
            assert theirs.public_key not in _raw_keys()
        assert {mine.public_key, theirs.public_key} <= _raw_keys()


def test_row_of_other_tenant_saved_in_scope_is_refused(tenant: Any, other_tenant: Any, stranger: Any) -> None:
    with tenant_scope(tenant), pytest.raises(ScopeError):
        Membership(tenant_id=other_tenant.pk, user=stranger, role="owner").save()


def test_cursor_on_the_server_may_be_the_first_of_a_scope(tenant: Any, deployment: Any) -> None:
    with tenant_scope(tenant):
        assert [row.pk for row in Deployment.objects.iterator()] == [deployment.pk]
