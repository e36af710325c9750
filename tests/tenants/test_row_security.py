"""Does the database itself keep tenants apart when our code forgets to?"""

from __future__ import annotations

from typing import Any

import pytest
from django.db import ProgrammingError, connection

from apps.tenants.models import Deployment, Membership
from kernel.tenancy import ScopeError, lookup_scope, platform_scope, tenant_scope
from tests.factories.tenants import make_deployment


def _raw_keys() -> set[str]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT public_key FROM tenants_deployment")
        return {row[0] for row in cursor.fetchall()}


def test_raw_query_and_unfiltered_manager_see_only_rows_of_the_scope(tenant: Any, other_tenant: Any) -> None:
    mine, theirs = make_deployment(tenant), make_deployment(other_tenant)
    assert _raw_keys() == set()
    with tenant_scope(tenant):
        assert _raw_keys() == {mine.public_key}
        rows = super(type(Deployment.objects), Deployment.objects).get_queryset()
        assert not rows.filter(pk=theirs.pk).exists()


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO tenants_membership (id, tenant_id, user_id, role, created_at)"
        " SELECT gen_random_uuid(), %(theirs)s, id, 'owner', now() FROM tenants_user LIMIT 1",
        "UPDATE tenants_deployment SET tenant_id = %(theirs)s WHERE tenant_id = %(mine)s",
    ],
)
def test_raw_write_for_other_tenant_is_refused(
    tenant: Any, other_tenant: Any, stranger: Any, deployment: Any, statement: str
) -> None:
    values = {"mine": tenant.pk, "theirs": other_tenant.pk}
    refused = pytest.raises(ProgrammingError, match="row-level security")
    with refused, tenant_scope(tenant), connection.cursor() as cursor:
        cursor.execute(statement, values)


def test_connection_after_a_scope_also_a_failed_one_keeps_no_tenant(tenant: Any, deployment: Any) -> None:
    with tenant_scope(tenant):
        pass
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('silas.tenant', true), current_setting('silas.platform', true)")
        assert [value or "" for value in cursor.fetchone()] == ["", ""]
    with pytest.raises(RuntimeError), tenant_scope(tenant):
        raise RuntimeError
    assert _raw_keys() == set()


def test_lookup_scope_sees_only_the_row_with_that_key_and_cannot_write(tenant: Any) -> None:
    mine, _ = make_deployment(tenant), make_deployment(tenant)
    with lookup_scope(mine.public_key), connection.cursor() as cursor:
        assert _raw_keys() == {mine.public_key}
        for statement in ("UPDATE tenants_deployment SET enabled = false", "DELETE FROM tenants_deployment"):
            cursor.execute(f"{statement} WHERE public_key = %s", [mine.public_key])
            assert cursor.rowcount == 0


def test_platform_scope_sees_every_tenant_and_one_inside_it_narrows(tenant: Any, other_tenant: Any) -> None:
    keys = {make_deployment(tenant).public_key, make_deployment(other_tenant).public_key}
    with platform_scope("test"):
        assert keys <= _raw_keys()
        with tenant_scope(tenant):
            assert not keys <= _raw_keys()
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


def test_scope_of_none_is_refused_and_inside_a_scope_any_other(tenant: Any, other_tenant: Any) -> None:
    with pytest.raises(ScopeError), tenant_scope(None):
        pass
    for other in (tenant_scope(other_tenant), platform_scope("test")):
        with tenant_scope(tenant), pytest.raises(ScopeError), other:
            pass


def test_row_of_other_tenant_saved_in_scope_is_refused(tenant: Any, other_tenant: Any, stranger: Any) -> None:
    with tenant_scope(tenant), pytest.raises(ScopeError):
        Membership(tenant_id=other_tenant.pk, user=stranger, role="owner").save()


def test_cursor_on_the_server_may_be_the_first_of_a_scope(tenant: Any, deployment: Any) -> None:
    with tenant_scope(tenant):
        assert [row.pk for row in Deployment.objects.iterator()] == [deployment.pk]
