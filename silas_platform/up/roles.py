"""As whom do we speak to a PostgreSQL that somebody gave us? Never as a superuser, whom row-level security ignores.

When DATABASE_URL names a superuser and no DATABASE_OWNER_URL stands beside it, `manage.py up` makes the roles of
roles.sql there, with passwords kept under `var/keys`, mode 0600; every later command uses those, and every later `up`
makes a role that is new. A role that is no superuser is taken as it is, and the system checks judge it.
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
    """`env` with the addresses of the roles instead of a superuser's; `make` those that are not there yet.

    Raises `StartRefused` when the server does not answer or lacks pgvector.
    """
    told = with_addresses_read(env)
    url = told.get("DATABASE_URL", "")
    if embedded_database(told) or told.get("DATABASE_OWNER_URL"):
        return told
    kept = var_directory(env) / "keys" / f"database-{hashlib.sha256(url.encode()).hexdigest()[:16]}"
    known = json.loads(kept.read_text()) if kept.exists() else {}
    if make and known.keys() != _ROLES.keys():
        known = _made(url, kept, known)
    return told | known


def _made(url: str, kept: Path, known: Mapping[str, str]) -> dict[str, str]:
    """The addresses, kept; a role that had a password keeps it. Nothing is made for a role that is no superuser."""
    words = {name: _word(known.get(name, "")) or secrets.token_urlsafe(32) for name in _ROLES}
    addresses = {name: _as(url, role, words[name]) for name, role in _ROLES.items()}
    before = kept.read_text() if kept.exists() else ""
    try:
        with psycopg.connect(url) as connection:
            if connection.info.parameter_status("is_superuser") != "on":
                return dict(known)
            connection.execute(ROLES_SQL.read_bytes())
            for name, role in _ROLES.items():
                statement = sql.SQL("ALTER ROLE {} PASSWORD {}").format(sql.Identifier(role), sql.Literal(words[name]))
                connection.execute(statement)
            # Written before the COMMIT that ends this block: passwords that nobody knows would lock everybody out.
            write_private(kept, json.dumps(addresses))
    except psycopg.Error as error:
        _put_back(kept, before)
        raise StartRefused(f"DATABASE_URL cannot be used: {error}") from None
    return addresses


def _put_back(kept: Path, before: str) -> None:
    if before:
        write_private(kept, before)
    else:
        kept.unlink(missing_ok=True)


def _word(address: str) -> str:
    return unquote(urlsplit(address).password or "")


def _as(url: str, role: str, word: str) -> str:
    parts = urlsplit(url)
    place = parts.netloc.rpartition("@")[2]
    return urlunsplit(parts._replace(netloc=f"{role}:{quote(word, safe='')}@{place}"))
