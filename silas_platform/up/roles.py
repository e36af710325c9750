"""Database roles for an external PostgreSQL, never a superuser, who bypasses row-level security.

When DATABASE_URL names a superuser and DATABASE_OWNER_URL is not given, `manage.py up` creates the roles of roles.sql
there, with passwords kept under `var/keys`, mode 0600; later commands use those, and a later `up` creates new roles. A
role that is no superuser is used as it is, and the system checks judge it.
"""

import hashlib
import json
import secrets
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit, urlunsplit

import psycopg
from psycopg import sql

from silas_platform.up.embedded import ROLES_SQL
from silas_platform.up.environment import (
    StartRefused,
    embedded_database,
    var_directory,
    with_addresses_read,
    write_private,
)

_ROLES = {"DATABASE_URL": "silas_app", "DATABASE_OWNER_URL": "silas_owner", "DATABASE_WORK_URL": "silas_work"}


def with_bound_roles(env: Mapping[str, str], *, make: bool) -> dict[str, str]:
    """`env` with the roles' addresses instead of a superuser's; with `make`, missing roles are created.

    Raises `StartRefused` when the server does not answer or lacks pgvector.
    """
    result = with_addresses_read(env)
    url = result.get("DATABASE_URL", "")
    if embedded_database(result) or result.get("DATABASE_OWNER_URL"):
        return result
    kept = var_directory(env) / "keys" / f"database-{hashlib.sha256(url.encode()).hexdigest()[:16]}"
    known = json.loads(kept.read_text()) if kept.exists() else {}
    if make and known.keys() != _ROLES.keys():
        known = _create_roles(url, kept, known)
    return result | known


def _create_roles(url: str, kept: Path, known: Mapping[str, str]) -> dict[str, str]:
    """Create the roles and store their addresses. Existing passwords are kept; does nothing unless a superuser."""
    passwords = {
        name: unquote(urlsplit(known.get(name, "")).password or "") or secrets.token_urlsafe(32) for name in _ROLES
    }
    addresses = {name: _address_of(url, role, passwords[name]) for name, role in _ROLES.items()}
    before = kept.read_text() if kept.exists() else ""
    try:
        with psycopg.connect(url) as connection:
            if connection.info.parameter_status("is_superuser") != "on":
                return dict(known)
            connection.execute(ROLES_SQL.read_bytes())
            for name, role in _ROLES.items():
                statement = sql.SQL("ALTER ROLE {} PASSWORD {}").format(
                    sql.Identifier(role), sql.Literal(passwords[name])
                )
                connection.execute(statement)
            # Written before the COMMIT at the end of this block: passwords that are not stored would lock us out.
            write_private(kept, json.dumps(addresses))
    except psycopg.Error as error:
        if before:
            write_private(kept, before)
        else:
            kept.unlink(missing_ok=True)
        raise StartRefused(f"DATABASE_URL cannot be used: {error}") from None
    return addresses


def _address_of(url: str, role: str, password: str) -> str:
    parts = urlsplit(url)
    place = parts.netloc.rpartition("@")[2]
    return urlunsplit(parts._replace(netloc=f"{role}:{quote(password, safe='')}@{place}"))
