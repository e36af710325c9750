"""Migration operations that put row-level security on tenant tables and create a room's first tables at once.

FORCE applies the policy to the table's owner too. `lookup` names a text column by whose exact value a row may be found
before its tenant is known (kernel.tenancy.lookup_scope). A table without the policy fails the tests
(tests/architecture).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db.migrations.operations import CreateModel, RunSQL
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState

POLICY = "tenant_wall"
_TENANT = "tenant_id = (SELECT nullif(current_setting('silas.tenant', true), ''))::uuid"
_PLATFORM = "(SELECT current_setting('silas.platform', true)) = 'on'"
_LOOKUP = "{column}::text = (SELECT nullif(current_setting('silas.lookup', true), ''))"


class Tables(Operation):
    """`Tables(CreateModel(…), CreateModel(…))`: a room's first models, in order of their references.

    One by one, Django would rebuild every model related to a new one, and by their tenant all of ours are (ADR 68).
    Here they are rebuilt once, after the last.
    """

    def __init__(self, *models: CreateModel) -> None:
        self.models = models

    def deconstruct(self) -> tuple[str, tuple[CreateModel, ...], dict[str, object]]:
        return (self.__class__.__name__, self.models, {})

    def state_forwards(self, app_label: str, state: ProjectState) -> None:
        state.__dict__.pop("apps", None)
        for model in self.models:
            model.state_forwards(app_label, state)

    def database_forwards(
        self, app_label: str, schema_editor: Any, from_state: ProjectState, to_state: ProjectState
    ) -> None:
        for model in self.models:
            model.database_forwards(app_label, schema_editor, from_state, to_state)

    def database_backwards(
        self, app_label: str, schema_editor: Any, from_state: ProjectState, to_state: ProjectState
    ) -> None:
        for model in reversed(self.models):
            model.database_backwards(app_label, schema_editor, from_state, to_state)

    def describe(self) -> str:
        return f"Create {len(self.models)} models"


class RowSecurity(RunSQL):
    """`RowSecurity("audit_auditentry")` after the table's CreateModel."""

    def __init__(self, table: str, lookup: str = "") -> None:
        self.table = table
        self.lookup = lookup
        mine = f"{_TENANT} OR {_PLATFORM}"
        find = f'CREATE POLICY tenant_lookup ON "{table}" FOR SELECT USING ({_LOOKUP.format(column=lookup)});'
        lose = f'DROP POLICY tenant_lookup ON "{table}";'
        super().__init__(
            sql=(
                f'ALTER TABLE "{table}" ENABLE ROW LEVEL SECURITY;'
                f'ALTER TABLE "{table}" FORCE ROW LEVEL SECURITY;'
                f'CREATE POLICY {POLICY} ON "{table}" USING ({mine}) WITH CHECK ({mine});'
                f"{find if lookup else ''}"
            ),
            reverse_sql=(
                f'{lose if lookup else ""}DROP POLICY {POLICY} ON "{table}";'
                f'ALTER TABLE "{table}" NO FORCE ROW LEVEL SECURITY;'
                f'ALTER TABLE "{table}" DISABLE ROW LEVEL SECURITY;'
            ),
        )

    def deconstruct(self) -> tuple[str, list[str], dict[str, str]]:
        return (self.__class__.__name__, [self.table], {"lookup": self.lookup} if self.lookup else {})


class PlatformOnly(RunSQL):
    """`PlatformOnly("guard_platformbudget")`: a table that belongs to no tenant and that no tenant may read."""

    def __init__(self, table: str) -> None:
        self.table = table
        super().__init__(
            sql=(
                f'ALTER TABLE "{table}" ENABLE ROW LEVEL SECURITY;'
                f'ALTER TABLE "{table}" FORCE ROW LEVEL SECURITY;'
                f'CREATE POLICY {POLICY} ON "{table}" USING ({_PLATFORM}) WITH CHECK ({_PLATFORM});'
            ),
            reverse_sql=(
                f'DROP POLICY {POLICY} ON "{table}";'
                f'ALTER TABLE "{table}" NO FORCE ROW LEVEL SECURITY;'
                f'ALTER TABLE "{table}" DISABLE ROW LEVEL SECURITY;'
            ),
        )

    def deconstruct(self) -> tuple[str, list[str], dict[str, str]]:
        return (self.__class__.__name__, [self.table], {})


# How a database function that says of every tenant one thing only begins to see them all, and ends; `v_before` is text.
SEE_ALL = """v_before := coalesce(current_setting('silas.platform', true), '');
    PERFORM set_config('silas.platform', 'on', true);"""
SEE_AS_BEFORE = "PERFORM set_config('silas.platform', v_before, true);"


def over_all_tenants(statement: str) -> str:
    """SQL for a migration: `statement`, which sees the rows of every tenant."""
    return f"""
        SELECT set_config('silas.platform', 'on', true);
        {statement};
        SELECT set_config('silas.platform', '', true);
    """


class AppendOnly(RunSQL):
    """`AppendOnly("persona", "the log is append-only", "persona_personaevent")`: rows of the table are written once.

    `room` names the trigger function, `message` is what a change is refused with. `named` says how the triggers of a
    table are called where they do not carry its name.
    """

    def __init__(self, room: str, message: str, *tables: str, named: Mapping[str, str] | None = None) -> None:
        self.room, self.message, self.tables, self.named = room, message, tables, dict(named or {})
        super().__init__(
            sql=(
                f"CREATE FUNCTION {room}_refuse() RETURNS trigger LANGUAGE plpgsql AS $$\nBEGIN\n"
                f"    RAISE EXCEPTION '{message}' USING ERRCODE = 'insufficient_privilege';\nEND $$;\n"
                + "".join(
                    f"CREATE TRIGGER {self.named.get(table, table)}_no_rewrite BEFORE UPDATE OR DELETE ON {table}\n"
                    f"    FOR EACH ROW EXECUTE FUNCTION {room}_refuse();\n"
                    f"CREATE TRIGGER {self.named.get(table, table)}_no_truncate BEFORE TRUNCATE ON {table}\n"
                    f"    FOR EACH STATEMENT EXECUTE FUNCTION {room}_refuse();\n"
                    for table in tables
                )
            ),
            reverse_sql="".join(
                f"DROP TRIGGER {self.named.get(table, table)}_no_rewrite ON {table};\n"
                f"DROP TRIGGER {self.named.get(table, table)}_no_truncate ON {table};\n"
                for table in tables
            )
            + f"DROP FUNCTION {room}_refuse();\n",
        )

    def deconstruct(self) -> tuple[str, list[str], dict[str, Mapping[str, str]]]:
        arguments = [self.room, self.message, *self.tables]
        return (self.__class__.__name__, arguments, {"named": self.named} if self.named else {})
