"""Does the database itself refuse to rewrite what happened?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import ProgrammingError, connection, connections

from apps.audit.checkpoints import write_checkpoint
from apps.audit.queries import Chain
from kernel.tenancy import tenant_scope
from tests.factories.audit import make_entries

REWRITES = [
    "UPDATE audit_auditentry SET actor = 'nobody'",
    "DELETE FROM audit_auditentry",
    "UPDATE audit_auditcheckpoint SET seq = 0",
    "DELETE FROM audit_auditcheckpoint",
    "UPDATE audit_audithead SET seq = 0",
    "UPDATE audit_audithead SET entry_hash = 'x'",
    "DELETE FROM audit_audithead",
    "UPDATE audit_auditkey SET public_key = 'x'",
    "DELETE FROM audit_auditkey",
]
TABLES = ["audit_auditentry", "audit_auditcheckpoint", "audit_audithead", "audit_auditkey"]


@pytest.fixture
def chain(tenant: Any) -> Any:
    make_entries(tenant, 2)
    write_checkpoint(Chain(tenant.slug, tenant.pk))
    return tenant


@pytest.fixture
def as_owner(chain: Any) -> Iterator[Any]:
    """The tables' owner, who passes row-level security as this tenant."""
    with connections["owner"].cursor() as cursor:
        cursor.execute("SELECT set_config('silas.tenant', %s, false)", [str(chain.pk)])
        yield cursor


@pytest.mark.parametrize("statement", REWRITES)
def test_rewrite_as_application_is_refused(chain: Any, statement: str) -> None:
    with pytest.raises(ProgrammingError), tenant_scope(chain), connection.cursor() as cursor:
        cursor.execute(statement)


@pytest.mark.parametrize("statement", REWRITES)
def test_rewrite_as_owner_is_refused(as_owner: Any, statement: str) -> None:
    with pytest.raises(ProgrammingError):
        as_owner.execute(statement)


@pytest.mark.parametrize("table", TABLES)
def test_truncate_as_application_is_refused(chain: Any, table: str) -> None:
    with pytest.raises(ProgrammingError), tenant_scope(chain), connection.cursor() as cursor:
        cursor.execute(f"TRUNCATE {table}")


@pytest.mark.parametrize("table", TABLES)
def test_truncate_as_owner_is_refused(as_owner: Any, table: str) -> None:
    with pytest.raises(ProgrammingError):
        as_owner.execute(f"TRUNCATE {table}")
