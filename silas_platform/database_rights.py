"""Database rights that no role of the platform may have, and the search path of our functions.

Triggers and functions enforce the services' guarantees even against arbitrary SQL of a role. Objects that it creates
beside ours could deceive them, so no role may create any, and every function of ours searches `pg_catalog` first, then
`public`, temporary objects last (ADR 97). `secure` runs as the tables' owner at the end of each `migrate`, also
for functions of earlier releases; a process whose role has more rights does not start.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from django.db import connections, transaction
from psycopg import sql

from silas_platform.worker_rights import ROLE as WORKERS
from silas_platform.worker_rights import WORKERS_CALL

WEB = "silas_app"
SEARCH_PATH = "pg_catalog, public, pg_temp"

# Rights that are revoked from the web role after every `migrate`, on tables that only functions or the owner write.
WEB_MAY_NOT: dict[str, str] = {
    "audit_auditcheckpoint": "UPDATE, DELETE",
    "audit_auditentry": "INSERT, UPDATE, DELETE",
    "audit_audithead": "INSERT, UPDATE, DELETE",
    "audit_auditkey": "UPDATE, DELETE",
    "django_migrations": "INSERT, UPDATE, DELETE",
    "silas_platform_installedversion": "INSERT, UPDATE, DELETE",
}

# Our functions, without those of extensions.
_OURS = """
    SELECT p.oid::regprocedure::text, p.proname, p.prorettype = 'trigger'::regtype, coalesce(p.proconfig, '{}')
    FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_language l ON l.oid = p.prolang
    WHERE p.pronamespace = 'public'::regnamespace AND l.lanname IN ('sql', 'plpgsql')
      AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend d
                      WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e')
    ORDER BY 1
"""
# Privileges of the current role that bypass tables, triggers and row-level security.
_POWERS = """
    SELECT 'TEMPORARY ON DATABASE' WHERE has_database_privilege(current_database(), 'TEMPORARY')
    UNION ALL
    SELECT 'CREATE ON DATABASE' WHERE has_database_privilege(current_database(), 'CREATE')
    UNION ALL
    SELECT 'CREATE ON SCHEMA ' || nspname FROM pg_catalog.pg_namespace
    WHERE nspname NOT LIKE 'pg\\_temp%' AND nspname NOT LIKE 'pg\\_toast%' AND has_schema_privilege(oid, 'CREATE')
    UNION ALL
    SELECT 'TRIGGER ON ' || relname FROM pg_catalog.pg_class
    WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')
      AND has_table_privilege(oid, 'TRIGGER, TRUNCATE')
    UNION ALL
    SELECT 'SET ON PARAMETER session_replication_role' WHERE has_parameter_privilege('session_replication_role', 'SET')
    UNION ALL
    SELECT 'MEMBER OF ' || rolname FROM pg_catalog.pg_roles
    WHERE pg_has_role(oid, 'MEMBER') AND (rolsuper OR rolbypassrls OR rolcreaterole OR rolname IN (
        'pg_execute_server_program', 'pg_read_server_files', 'pg_write_server_files', 'pg_read_all_data',
        'pg_write_all_data', 'pg_maintain', 'pg_create_subscription') OR EXISTS (
            SELECT FROM pg_catalog.pg_class WHERE relnamespace = 'public'::regnamespace AND relowner = pg_roles.oid))
    UNION ALL
    SELECT 'EXECUTE ON ' || f FROM unnest(ARRAY[
        'pg_read_file(text)', 'pg_read_binary_file(text)', 'pg_ls_dir(text)', 'lo_import(text)', 'lo_export(oid, text)'
    ]) AS f WHERE has_function_privilege(f, 'EXECUTE')
"""


def secure(using: str) -> None:
    """Revoke from both roles what only the owner needs, pin every function's search path, and grant its execution.

    What the owner cannot revoke (in a database that belongs to another role) stays; `excess` reports it.
    """
    with transaction.atomic(using=using), connections[using].cursor() as cursor:
        cursor.execute(_OURS)
        functions = cursor.fetchall()
        tables = connections[using].introspection.table_names(cursor)
        for statement in _statements(connections[using].settings_dict["NAME"], tables, functions):
            cursor.execute(statement)


def _statements(
    database: str, tables: Collection[str], functions: Iterable[tuple[str, str, bool, list[str]]]
) -> list[str]:
    here = sql.Identifier(database).as_string()
    statements = [
        f"REVOKE TEMPORARY ON DATABASE {here} FROM PUBLIC, {WEB}, {WORKERS}",
        f"REVOKE CREATE ON SCHEMA public FROM PUBLIC, {WEB}, {WORKERS}",
        "ALTER DEFAULT PRIVILEGES REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC",
    ]
    for table, rights in WEB_MAY_NOT.items():
        if table in tables:
            statements.append(f"REVOKE {rights} ON {table} FROM {WEB}")
    for signature, name, is_trigger, _ in functions:
        callers = [] if is_trigger else [WEB, *([WORKERS] if name in WORKERS_CALL else [])]
        statements.append(f"ALTER FUNCTION {signature} SET search_path = {SEARCH_PATH}")
        # PostgreSQL grants it to everyone when a function is made.
        statements.append(f"REVOKE EXECUTE ON FUNCTION {signature} FROM PUBLIC, {WEB}, {WORKERS}")
        if callers:
            statements.append(f"GRANT EXECUTE ON FUNCTION {signature} TO {', '.join(callers)}")
    return statements


def excess(cursor: Any) -> list[str]:
    """Rights of the connection's role beyond the platform's, and functions without a pinned search path.

    Empty for a role that `secure` and roles.sql set up.
    """
    cursor.execute(_POWERS)
    powers = [power for (power,) in cursor.fetchall()]
    cursor.execute(_OURS)
    pinned = f"search_path={SEARCH_PATH}"
    return powers + [f"a search_path for {name}" for name, _, _, config in cursor.fetchall() if pinned not in config]
