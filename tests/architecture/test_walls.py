"""Every table of a tenant stands behind row-level security, whoever wrote its migration."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import psycopg
import pytest
from django.apps import apps

from kernel.tenancy import TenantModel
from kernel.tenancy.migrations import POLICY

# The platform's own directory and Django's own tables: nothing in them belongs to one tenant.
DIRECTORY = {"tenants_tenant", "tenants_user", "tenants_user_groups", "tenants_user_user_permissions", "audit_auditkey"}
# Which versions of the platform migrated the database.
DIRECTORY |= {"silas_platform_installedversion"}
# What belongs to a person, who may be in several tenants.
DIRECTORY |= {"tenants_totp", "tenants_recoverycode", "tenants_loginpasskey", "tenants_login", "tenants_letter"}
# The platform has an audit chain of its own, whose rows belong to no tenant.
WITH_PLATFORM_ROWS = {"audit_auditentry", "audit_audithead", "audit_auditcheckpoint"}
DJANGOS_OWN = ("auth_", "django_")


@dataclass(frozen=True)
class Table:
    name: str
    owner: str
    has_tenant: bool
    enabled: bool
    forced: bool
    policies: tuple[str, ...]

    @property
    def walled(self) -> bool:
        return self.enabled and self.forced and POLICY in self.policies


def tables(connection: psycopg.Connection[tuple[object, ...]]) -> list[Table]:
    found = connection.execute(
        "SELECT c.relname, pg_get_userbyid(c.relowner),"
        " EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'tenant_id'),"
        " c.relrowsecurity, c.relforcerowsecurity,"
        " ARRAY(SELECT polname::text FROM pg_policy p WHERE p.polrelid = c.oid)"
        " FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
        " WHERE n.nspname = 'public' AND c.relkind IN ('r', 'p')"
    ).fetchall()
    return [Table(*row[:-1], tuple(row[-1])) for row in found]  # type: ignore[arg-type]


def open_tables(connection: psycopg.Connection[tuple[object, ...]]) -> list[str]:
    """Tables that hold a tenant's rows without a wall, or of which nobody has said that they hold none."""
    ours = [table for table in tables(connection) if not table.name.startswith(DJANGOS_OWN)]
    return sorted(
        table.name for table in ours if not table.walled and (table.has_tenant or table.name not in DIRECTORY)
    )


@pytest.fixture
def database_as_owner(database: None, superuser_dsn: str) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    with psycopg.connect(superuser_dsn) as connection:
        yield connection
        connection.rollback()


Connection = psycopg.Connection[tuple[object, ...]]


def test_no_table_is_open(database_as_owner: Connection) -> None:
    assert open_tables(database_as_owner) == []


def test_table_without_policy_is_found(database_as_owner: Connection) -> None:
    database_as_owner.execute("CREATE TABLE forgotten (id int, tenant_id uuid)")
    assert open_tables(database_as_owner) == ["forgotten"]


def test_table_whose_wall_does_not_bind_its_owner_is_found(database_as_owner: Connection) -> None:
    database_as_owner.execute("ALTER TABLE tenants_deployment NO FORCE ROW LEVEL SECURITY")
    assert open_tables(database_as_owner) == ["tenants_deployment"]


def test_table_without_tenant_that_nobody_named_is_found(database_as_owner: Connection) -> None:
    database_as_owner.execute("CREATE TABLE new_directory (id int)")
    assert open_tables(database_as_owner) == ["new_directory"]


def test_application_owns_no_table(database_as_owner: Connection) -> None:
    assert {table.owner for table in tables(database_as_owner)} == {"silas_owner"}


def test_every_table_of_ours_with_a_tenant_is_a_tenant_model(database: None) -> None:
    ours = [model for model in apps.get_models() if model.__module__.startswith("apps.")]
    with_tenant = [model for model in ours if any(field.name == "tenant" for field in model._meta.local_fields)]
    others = {model._meta.db_table for model in with_tenant if not issubclass(model, TenantModel)}
    assert others <= WITH_PLATFORM_ROWS
