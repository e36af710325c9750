"""Start-up checks of this process's configuration.

Numbered system checks; `manage.py up` runs them first.

silas.E001 an open HOST without its conditions · silas.E002 one key used for two jobs · silas.E003 a database role that
row-level security does not bind · silas.E004 demo logins behind an open HOST · silas.E005 a database that is further
behind than this release's migrations reach · silas.E006 a database role that could deceive triggers and functions ·
silas.E007 a kind of card or an intent that no room handles · silas.E008 a database that a newer version migrated ·
silas.W001 a PostgreSQL, Redis or Valkey older than its fixes · silas.W002 a database role without its setting of the
planner.
"""

from __future__ import annotations

import logging
import os
import resource
from collections.abc import Sequence

import psycopg
import redis
from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.checks import WARNING, CheckMessage, Error, Tags, register
from django.core.exceptions import ImproperlyConfigured
from django.db import connections
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from apps.approvals.registry import kinds_without_handlers
from apps.bus.workers import Worker
from apps.guard.registry import intents_without_handlers
from kernel import fault_points, trust
from sandbox import Choice, Kind, configure
from sandbox.egress import parse_places
from silas_platform import database_rights, worker_rights
from silas_platform.schema_version import fault_at, fault_of
from silas_platform.settings import env
from silas_platform.settings.broker import redis_servers
from silas_platform.up.environment import is_loopback, open_host_faults
from silas_platform.up.versions import server_faults

_log = logging.getLogger(__name__)

# The demo's staff live in a top-level domain that cannot be owned (RFC 2606).
DEMO_MAIL = ".example"


def refuse_wrong_keys(queues: Sequence[str]) -> None:
    """Raise `ImproperlyConfigured` when a worker of these queues has keys that it must not have, or lacks one.

    A process with the signing key must not read documents, visit websites or run programs from outside, so the queue
    `trusted` stands alone. Every worker verifies approvals with the pinned key.
    """
    if unknown := set(queues) - set(Worker):
        raise ImproperlyConfigured(f"E_CFG_WORKER_QUEUES: no queue is called {', '.join(sorted(unknown))}")
    is_trusted = Worker.TRUSTED in queues
    if is_trusted and len(queues) > 1:
        raise ImproperlyConfigured("E_CFG_WORKER_QUEUES: the queue trusted needs a worker of its own")
    if not trust.roots():
        raise ImproperlyConfigured(
            "E_CFG_ROOT_KEYS: no installation key is pinned; give this worker SILAS_ROOT_KEYS or SILAS_ROOT_KEYS_FILE "
            "(manage.py root_key in the web process prints it)"
        )
    if is_trusted and not settings.SILAS_SIGNING_KEY:
        raise ImproperlyConfigured("E_CFG_SIGNING_KEY: the worker of the queue trusted needs SILAS_SIGNING_KEY")
    if not is_trusted and any(
        os.environ.get(f"SILAS_SIGNING_KEY{form}") for form in ("", "_FILE", "_OLD", "_OLD_FILE")
    ):
        raise ImproperlyConfigured(
            "E_CFG_SIGNING_KEY: only web processes and the trusted worker may hold SILAS_SIGNING_KEY"
        )


def refuse_wide_role() -> None:
    """Raise `ImproperlyConfigured` when this worker's database role could create an approval, a login or a
    rule, or deceive the functions that prevent that. Rights that a newer version gives its workers are logged."""
    if env.text("DATABASE_REPLICA_URL"):
        raise ImproperlyConfigured(
            "E_CFG_WORK_ROLE: DATABASE_REPLICA_URL has web's role: for web processes and the trusted worker only"
        )
    address = env.text("DATABASE_URL")
    more = worker_rights.excess(address)
    with psycopg.connect(address) as connection:
        powers = database_rights.excess(connection.cursor())
    if more and not powers and worker_rights.are_of_newer_version(address):
        _log.warning("worker_rights_of_newer_version rights=%s", ", ".join(more))
        return
    if more := more + powers:
        rights = ", ".join(more[:3]) + (f" and {len(more) - 3} more rights" if len(more) > 3 else "")
        raise ImproperlyConfigured(
            f"E_CFG_WORK_ROLE: a worker speaks as the role {worker_rights.ROLE}; this one has {rights}"
        )


def refuse_newer_schema() -> None:
    """Raise `ImproperlyConfigured` when a newer version migrated the database so that this worker must not run on
    it."""
    if fault := fault_at(env.text("DATABASE_URL")):
        raise ImproperlyConfigured(fault)


def arm_fault_points() -> None:
    """Enable fault points in tests. Raises `ImproperlyConfigured` when the variable is set in other settings."""
    if env.text(fault_points.VARIABLE) != settings.FAULT_POINTS:
        raise ImproperlyConfigured(f"E_CFG_FAULT_POINTS: {fault_points.VARIABLE} is for tests only")
    fault_points.arm(settings.FAULT_POINTS)


def choose_sandbox() -> None:
    """Configure the chosen sandbox; its first run shows whether it works on this machine."""
    try:
        kind = Kind(settings.SANDBOX_BACKEND)
    except ValueError:
        raise ImproperlyConfigured("E_CFG_SANDBOX: SILAS_SANDBOX must be subprocess or docker") from None
    for name, places in (("EGRESS_PRIVATE", settings.EGRESS_PRIVATE), ("CHECK_PLACES", settings.CHECK_PLACES)):
        if len(parse_places(places)) != len(set(places)):
            raise ImproperlyConfigured(f"E_CFG_EGRESS: SILAS_{name} is a list of host:port")
    configure(Choice(kind=kind, image=settings.SANDBOX_IMAGE, egress_private=tuple(settings.EGRESS_PRIVATE)))


def disable_core_dumps() -> None:
    """Keep secrets in memory from being written to disk by a crash."""
    # A limit of 0 still pipes the core to a handler program on some machines; the kernel takes 1 as "none at all".
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    limit = 0 if hard == 0 else 1
    resource.setrlimit(resource.RLIMIT_CORE, (limit, limit))


@register(Tags.security)
def open_host_is_guarded(**_: object) -> list[CheckMessage]:
    """Beyond loopback every key and ALLOWED_HOSTS must be given (contract interfaces, Environment)."""
    return [Error(fault, id="silas.E001") for fault in open_host_faults(os.environ)]


@register(Tags.security)
def keys_are_distinct(**_: object) -> list[CheckMessage]:
    """The holder of one key must not know another (architecture: who can sign, who can unseal)."""
    given = [key for key in (settings.SECRET_KEY, settings.SILAS_SIGNING_KEY, settings.SILAS_SECRETS_KEY) if key]
    if len(set(given)) == len(given):
        return []
    fault = "SECRET_KEY, SILAS_SIGNING_KEY and SILAS_SECRETS_KEY must be three different keys"
    return [Error(fault, id="silas.E002")]


@register()
def registries_are_complete(**_: object) -> list[CheckMessage]:
    """Every kind of card and every intent needs a room that handles it."""
    unhandled = [*kinds_without_handlers(), *intents_without_handlers()]
    return [Error(f"no room handles {name}", id="silas.E007") for name in unhandled]


@register(Tags.database)
def database_role_is_bound(databases: Sequence[str] | None = None, **_: object) -> list[CheckMessage]:
    """The application's role must be no superuser, not bypass row-level security and own no table."""
    if "default" not in (databases or ()):
        return []
    with connections["default"].cursor() as cursor:
        cursor.execute(
            "SELECT current_user, rolsuper OR rolbypassrls, EXISTS (SELECT FROM pg_class WHERE relowner = pg_roles.oid)"
            " FROM pg_roles WHERE rolname = current_user"
        )
        role, unbound, owns = cursor.fetchone()
    if not unbound and not owns:
        return []
    why = "is a superuser or bypasses row-level security" if unbound else "owns tables and could open their walls"
    hint = "Serve as a role made by silas_platform/up/roles.sql; DATABASE_OWNER_URL is for migrations."
    return [Error(f"the database role {role} of DATABASE_URL {why}", hint=hint, id="silas.E003")]


@register(Tags.database)
def database_role_creates_no_objects(databases: Sequence[str] | None = None, **_: object) -> list[CheckMessage]:
    """The application's role must not create objects that could shadow ours (database_rights)."""
    if "default" not in (databases or ()):
        return []
    with connections["default"].cursor() as cursor:
        more = database_rights.excess(cursor)
    if not more:
        return []
    rights = ", ".join(more[:5]) + (f" and {len(more) - 5} more" if len(more) > 5 else "")
    hint = "Run silas_platform/up/roles.sql as superuser of the database, then `migrate --database owner`."
    return [
        Error(
            f"the database role of DATABASE_URL has too much, or a function lacks: {rights}", hint=hint, id="silas.E006"
        )
    ]


@register(Tags.database)
def database_role_plans_by_index(databases: Sequence[str] | None = None, **_: object) -> list[CheckMessage]:
    """Plans that a connection keeps must still be right when its tables have grown (settings/databases.py)."""
    if "default" not in (databases or ()):
        return []
    with connections["default"].cursor() as cursor:
        cursor.execute("SELECT current_setting('enable_seqscan')")
        if cursor.fetchone() == ("off",):
            return []
    hint = "Run silas_platform/up/roles.sql as superuser of the database once more."
    what = "the database role of DATABASE_URL lacks its setting enable_seqscan = off"
    return [CheckMessage(WARNING, what, hint=hint, id="silas.W002")]


@register(Tags.database)
def servers_have_their_fixes(databases: Sequence[str] | None = None, **_: object) -> list[CheckMessage]:
    """Warn about servers with known vulnerabilities. Unreachable servers are left to other checks."""
    if not databases or "default" not in databases:
        return []
    try:
        faults = server_faults(database=env.text("DATABASE_URL"), redis_urls=redis_servers())
    except (psycopg.Error, redis.RedisError):
        return []
    return [CheckMessage(WARNING, fault, id="silas.W001") for fault in faults]


@register(Tags.database)
def demo_logins_stay_home(databases: Sequence[str] | None = None, **_: object) -> list[CheckMessage]:
    """The demo's passwords are public (contract interfaces, Demo data: development only)."""
    if "default" not in (databases or ()) or is_loopback(env.text("HOST", "127.0.0.1")):
        return []
    if not get_user_model().objects.filter(email__endswith=DEMO_MAIL, is_active=True).exists():
        return []
    hint = "Start with another SILAS_VAR or DATABASE_URL, or deactivate these users."
    return [Error("HOST is not loopback and the database has the demo's logins", hint=hint, id="silas.E004")]


@register(Tags.database)
def schema_is_not_newer(databases: Sequence[str] | None = None, **_: object) -> list[CheckMessage]:
    """The database must not have been migrated by a version on whose schema this one must not run (schema_version)."""
    alias = next((name for name in ("owner", "default") if name in (databases or ())), "")
    fault = fault_of(MigrationRecorder(connections[alias]).applied_migrations()) if alias else ""
    return [Error(fault, id="silas.E008")] if fault else []


@register(Tags.database)
def migrations_are_complete(databases: Sequence[str] | None = None, **_: object) -> list[CheckMessage]:
    """An app must have all of the migrations that its first ones replace, or none. Django itself would skip the
    app without an error."""
    if "owner" not in (databases or ()):
        return []
    loader = MigrationLoader(connections["owner"])
    hint = "Migrate with revision 90da42c6 first. Nothing was changed."
    missing = {
        f"{label}.{gone[0][1]}"
        for (label, name), migration in loader.disk_migrations.items()
        if (label, name) not in loader.applied_migrations
        and (gone := [key for key in migration.replaces if key not in loader.applied_migrations])
        and gone != migration.replaces
    }
    return [
        Error(f"{each} has not run here, and this release no longer has it", hint=hint, id="silas.E005")
        for each in sorted(missing)
    ]
