"""Connect to the database as the application's role, which is neither superuser nor owner; migrations use `owner`."""

from __future__ import annotations

from urllib.parse import parse_qsl, unquote, urlsplit


def database(url: str, **extra: object) -> dict[str, object]:
    """Django's settings for `postgresql://user:password@host:port/name?host=/socket/folder`."""
    parts = urlsplit(url)
    query = dict(parse_qsl(parts.query))
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": unquote(parts.path.lstrip("/")),
        "USER": unquote(parts.username or query.get("user", "")),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": query.get("host") or unquote(parts.hostname or ""),
        "PORT": str(parts.port or query.get("port", "")),
        **extra,
    }


def databases(
    url: str, *, owner_url: str, replica_url: str = "", prepared: bool = True
) -> dict[str, dict[str, object]]:
    """`default` for the application, through a pool; where their addresses are given, `owner` for migrations only, and
    `replica` for reads that may be some seconds behind."""
    found = {"default": _pooled(url, most=24, prepared=prepared)}
    if owner_url:
        found["owner"] = database(owner_url, CONN_MAX_AGE=0)
    if replica_url:
        found["replica"] = _pooled(replica_url, most=8, prepared=prepared)
    return found


def _pooled(url: str, *, most: int, prepared: bool) -> dict[str, object]:
    # A request that needs a database that is away retries it: the pool's own retries wait longer and longer.
    # Of connections that were not needed for half a minute one is closed: each costs PostgreSQL 5 MB.
    pool = {"min_size": 1, "max_size": most, "max_idle": 30, "timeout": 5, "reconnect_timeout": 2}
    options = {"pool": pool, **(_PREPARED if prepared else {})}
    # Without prepared statements there is a pooler between, which keeps a server-side cursor within a transaction only.
    return database(url, OPTIONS=options, CONN_MAX_AGE=0, DISABLE_SERVER_SIDE_CURSORS=not prepared)


# What a connection has asked five times it asks by name from then on, and PostgreSQL keeps the plan: planning takes
# twice as long as answering. A kept plan must still be right when the table has grown, so the roles of roles.sql read
# by index also where the table is so small today that reading all of it would be cheaper. The setting is the roles',
# not the connection's: PgBouncer refuses connections that bring it along.
_PREPARED = {"server_side_binding": True, "prepare_threshold": 5}
