"""As whom do we speak to a PostgreSQL that somebody gave us? Never as a superuser, whom row-level security ignores.

When DATABASE_URL names a superuser and no DATABASE_OWNER_URL stands beside it, `manage.py up` makes the two roles of
roles.sql there, once, with passwords kept under `var/keys`, mode 0600; every later command uses those. A role that is
no superuser is taken as it is, and the system checks judge it.
"""

import hashlib
import json
import secrets
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote, urlsplit, urlunsplit

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


def with_bound_roles(env: Mapping[str, str], *, make: bool) -> dict[str, str]:
    """`env` with the addresses of the two roles instead of a superuser's; `make` them where that was not done yet.

    Raises `StartRefused` when the server does not answer or lacks pgvector.
    """
    told = with_addresses_read(env)
    url = told.get("DATABASE_URL", "")
    if embedded_database(told) or told.get("DATABASE_OWNER_URL"):
        return told
    kept = var_directory(env) / "keys" / f"database-{hashlib.sha256(url.encode()).hexdigest()[:16]}"
    if not kept.exists() and make:
        _make(url, kept)
    if kept.exists():
        told |= json.loads(kept.read_text())
    return told


def _make(url: str, kept: Path) -> None:
    words = {"silas_owner": secrets.token_urlsafe(32), "silas_app": secrets.token_urlsafe(32)}
    try:
        with psycopg.connect(url) as connection:
            if connection.info.parameter_status("is_superuser") != "on":
                return
            connection.execute(ROLES_SQL.read_bytes())
            for role, word in words.items():
                statement = sql.SQL("ALTER ROLE {} PASSWORD {}").format(sql.Identifier(role), sql.Literal(word))
                connection.execute(statement)
            # Written before the COMMIT that ends this block: passwords that nobody knows would lock everybody out.
            addresses = {"DATABASE_URL": "silas_app", "DATABASE_OWNER_URL": "silas_owner"}
            write_private(kept, json.dumps({name: _as(url, role, words[role]) for name, role in addresses.items()}))
    except psycopg.Error as error:
        kept.unlink(missing_ok=True)
        raise StartRefused(f"DATABASE_URL cannot be used: {error}") from None


def _as(url: str, role: str, word: str) -> str:
    parts = urlsplit(url)
    place = parts.netloc.rpartition("@")[2]
    return urlunsplit(parts._replace(netloc=f"{role}:{quote(word, safe='')}@{place}"))
