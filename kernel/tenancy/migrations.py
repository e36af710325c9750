"""Migration operations that put row-level security on tenant tables and create a room's first tables at once.

FORCE applies the policy to the table's owner too. `lookup` names a text column by whose exact value a row may be found
before its tenant is known (kernel.tenancy.lookup_scope). A table without the policy fails the tests
(tests/architecture).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from django.db import OperationalError, transaction
from django.db.backends.utils import CursorWrapper
from django.db.migrations.operations import CreateModel, RunSQL
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState

POLICY = "tenant_wall"
_TENANT = "tenant_id = (SELECT nullif(current_setting('silas.tenant', true), ''))::uuid"
_PLATFORM = "(SELECT current_setting('silas.platform', true)) = 'on'"
_LOOKUP = "{column}::text = (SELECT nullif(current_setting('silas.lookup', true), ''))"


class Tables(Operation):
    """`Tables(CreateModel(…), CreateModel(…))`: a room's first models, in order of their references.

    One by one, Django would rebuild every model related to a new one, and by their tenant all of ours are.
    Here they are rebuilt once, after the last.
    """

    def __init__(self, *models: CreateModel) -> None:
        self.models = models

    def deconstruct(self) -> tuple[str, tuple[CreateModel, ...], dict[str, object]]:
        return (self.__class__.__name__, self.models, {})

    def state_forwards(self, app_label: str, state: ProjectState) -> None:
        # Without rendered models there is nothing that Django would rebuild after each of these.
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

# How the owner begins a transaction that changes tables in use: it sees every tenant's rows, and waits a second at
# most for a lock, since other sessions queue behind it.
AS_OWNER = "SELECT set_config('silas.platform', 'on', true), set_config('lock_timeout', '1s', true)"


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


# What the table says of itself before it becomes a partition; its definitions are replayed on the partitioned one.
_INDEXES = """
    SELECT c.relname, pg_get_indexdef(i.indexrelid) FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
    WHERE i.indrelid = %s::regclass AND NOT i.indisprimary AND c.relname <> %s ORDER BY 1
"""
_REFERENCES = """
    SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint
    WHERE conrelid = %s::regclass AND contype = 'f' ORDER BY 1
"""
_TRIGGERS = """
    SELECT tgname, pg_get_triggerdef(oid), tgtype::int & 1 = 1 FROM pg_trigger
    WHERE tgrelid = %s::regclass AND NOT tgisinternal ORDER BY 1
"""
_GRANTS = """
    SELECT grantee::regrole::text, privilege_type FROM pg_class c CROSS JOIN LATERAL aclexplode(c.relacl)
    WHERE c.oid = %s::regclass AND grantee <> 0 AND grantee <> c.relowner
"""
_LOCK_TRIES = 60


class PartitionByMonth(Operation):
    """`PartitionByMonth("guard_spendentry", "day")`: keep the table in a partition for each month of a date column.

    The rows stay where they are: the old table becomes the first partition, up to the end of next month, and
    `partitions_extend` (kernel.tenancy.partitions) makes the months after it and the default partition. Needs
    `atomic = False`: what reads the table (a check, an index) runs before the exchange without blocking, and what
    changes the table waits a second at most for its lock and tries again. A migration that was interrupted is simply
    repeated.

    pg_partman would do the upkeep and needs a superuser to install it, which managed servers do not always allow.

    The primary key then contains the column, so the table must have no other unique constraint, and no foreign key may
    point at it. The model does not change. Reversing leaves the table as it is: the version before works with it.
    """

    reversible = True

    def __init__(self, table: str, column: str) -> None:
        self.table, self.column = table, column

    def deconstruct(self) -> tuple[str, list[str], dict[str, str]]:
        return (self.__class__.__name__, [self.table, self.column], {})

    def describe(self) -> str:
        return f"Partition {self.table} by month"

    def state_forwards(self, app_label: str, state: ProjectState) -> None:
        return None

    def database_backwards(
        self, app_label: str, schema_editor: object, from_state: ProjectState, to_state: ProjectState
    ) -> None:
        return None

    def database_forwards(
        self, app_label: str, schema_editor: Any, from_state: ProjectState, to_state: ProjectState
    ) -> None:
        connection, first = schema_editor.connection, f"{self.table}_first"
        with connection.cursor() as cursor:
            cursor.execute("SELECT relkind = 'p' FROM pg_class WHERE oid = %s::regclass", [self.table])
            if cursor.fetchone() == (True,):
                return
            cursor.execute("SELECT (date_trunc('month', current_date) + interval '2 months')::date::text")
            (until,) = cursor.fetchone()
            # NOT VALID takes the lock for a moment only; the validation that follows reads the table without blocking
            # writers. A valid check spares ATTACH PARTITION the same scan under its exclusive lock.
            check = f"ADD CONSTRAINT {first} CHECK ({self.column} < '{until}') NOT VALID"
            alter = f"ALTER TABLE {self.table} DROP CONSTRAINT IF EXISTS {first}, {check}"
            self._with_lock(connection, cursor, lambda: cursor.execute(alter))
            cursor.execute(f"ALTER TABLE {self.table} VALIDATE CONSTRAINT {first}")
            # An interrupted attempt may have left an invalid one.
            cursor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {first}_pkey")
            cursor.execute(f"CREATE UNIQUE INDEX CONCURRENTLY {first}_pkey ON {self.table} (id, {self.column})")
            self._with_lock(connection, cursor, lambda: self._exchange(cursor, first, until))

    def _with_lock(self, connection: Any, cursor: CursorWrapper, change: Callable[[], object]) -> None:
        """Carry out what needs the table for itself. A change that waits keeps everyone who comes later waiting."""
        for attempt in range(1, _LOCK_TRIES + 1):
            try:
                with transaction.atomic(using=connection.alias):
                    # A request for an exclusive lock that waits makes every later query of the table wait behind it.
                    cursor.execute("SET LOCAL lock_timeout = '1s'")
                    change()
                return
            except OperationalError:
                if attempt == _LOCK_TRIES:
                    raise
                time.sleep(1)

    def _exchange(self, cursor: CursorWrapper, first: str, until: str) -> None:
        table, column = self.table, self.column
        cursor.execute(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")
        cursor.execute(_INDEXES, [table, f"{first}_pkey"])
        indexes = cursor.fetchall()
        cursor.execute(_REFERENCES, [table])
        references = cursor.fetchall()
        cursor.execute(_TRIGGERS, [table])
        triggers = cursor.fetchall()
        cursor.execute(_GRANTS, [table])
        grants = cursor.fetchall()
        statements = [
            f"ALTER TABLE {table} DROP CONSTRAINT {table}_pkey",
            f"ALTER TABLE {table} ADD CONSTRAINT {first}_pkey PRIMARY KEY USING INDEX {first}_pkey",
            *(f'DROP TRIGGER "{name}" ON {table}' for name, _, is_row in triggers if is_row),
            # An index's name has 63 characters at most, and several of a table begin alike.
            *(f'ALTER INDEX "{name}" RENAME TO "{name[:56]}_first"' for name, _ in indexes),
            f"ALTER TABLE {table} RENAME TO {first}",
            f"CREATE TABLE {table} (LIKE {first} INCLUDING DEFAULTS INCLUDING CONSTRAINTS)"
            f" PARTITION BY RANGE ({column})",
            f"ALTER TABLE {table} DROP CONSTRAINT {first}",
            f"ALTER TABLE {table} ADD PRIMARY KEY (id, {column})",
            *(definition for _, definition in indexes),
            *(f'ALTER TABLE {table} ADD CONSTRAINT "{name}" {definition}' for name, definition in references),
            *(f"GRANT {privilege} ON {table} TO {role}" for role, privilege in grants),
            str(RowSecurity(table).sql),
            f"ALTER TABLE {table} ATTACH PARTITION {first} FOR VALUES FROM (MINVALUE) TO ('{until}')",
            f"ALTER TABLE {first} DROP CONSTRAINT {first}",
            *(definition for _, definition, _ in triggers),
            # Partitions are read and written through the table only.
            *(f"REVOKE ALL ON {first} FROM {role}" for role in {role for role, _ in grants}),
        ]
        for statement in statements:
            cursor.execute(statement)
