"""Import an exported company into this installation, in one transaction: all of it and proven, or nothing.

The transaction runs as the owner of the tables, whose triggers are off for it: rows are put back as they were, and not
begun again. Row-level security binds the owner too, so that no row of another company can be written.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

from django.conf import settings
from django.core.files import File
from django.core.files.storage import storages
from django.db import DEFAULT_DB_ALIAS, IntegrityError, OperationalError, connection, connections, transaction
from django.db.backends.utils import CursorWrapper
from psycopg import sql

from apps.approvals.keys.services import reseal_keys
from apps.approvals.tokens.services import unproven_tokens
from apps.audit.checkpoints import write_checkpoint
from apps.audit.enums import AuditEvent
from apps.audit.models import AuditKey
from apps.audit.queries import chain_of, entries_of, head_of
from apps.audit.rules import verify_entries
from apps.audit.services import record
from apps.tenants import policy_pins, policy_seals, secret_rotation, vault
from apps.tenants.enums import Closed, PolicyKind
from apps.tenants.models import PolicySeal, Tenant, User
from kernel.secrets_key import using_keys
from kernel.tenancy import tenant_scope
from silas_platform import partitions
from silas_platform.backup.manifest import BackupRefused
from silas_platform.moving.closing import ACTOR
from silas_platform.moving.manifest import (
    AUDIT_KEYS,
    FILES,
    PEOPLE,
    TABLES,
    TENANT,
    CompanyManifest,
    TransportKeys,
    newest_migrations,
    read_export,
    tables,
)

_log = logging.getLogger(__name__)
_QUEUE = "bus_queuemessage"
_TRIGGERS = """
    SELECT DISTINCT c.relname FROM pg_trigger AS t JOIN pg_class AS c ON c.oid = t.tgrelid
    WHERE NOT t.tgisinternal AND c.relname = ANY(%s) AND c.relnamespace = 'public'::regnamespace ORDER BY 1
"""

_RENUMBER = """
    UPDATE moved SET position = numbered.place
    FROM (
        SELECT id, nextval(pg_get_serial_sequence(%s, 'position')) AS place
        FROM (SELECT id FROM moved ORDER BY position) AS sorted
    ) AS numbered
    WHERE moved.id = numbered.id
"""


def import_company(place: str, *, passphrase: str) -> CompanyManifest:
    """Import the export at `place`; the company stays closed. Raises `BackupRefused`; then nothing was imported."""
    folder = Path(place)
    manifest, transport = read_export(folder, passphrase)
    if manifest.migrations != newest_migrations():
        raise BackupRefused("E_COMPANY_SCHEMA", "Both installations must have the same release; update the older one.")
    if "owner" not in settings.DATABASES:
        raise BackupRefused("E_BACKUP_OWNER", "Give DATABASE_OWNER_URL, the role that owns the tables.")
    fields = json.loads((folder / TENANT).read_text())
    if Tenant.objects.filter(pk=fields["id"]).exists() or Tenant.objects.filter(slug=fields["slug"]).exists():
        raise BackupRefused("E_COMPANY_EXISTS", f"This installation has a company {fields['slug']} already.")
    people = json.loads((folder / PEOPLE).read_text())
    _require_same_accounts(people)
    _put_files(folder, manifest)
    try:
        with _as_owner(), transaction.atomic():
            tenant = _add_company(fields)
            _add_people(people)
            _add_audit_keys(json.loads((folder / AUDIT_KEYS).read_text()))
            with tenant_scope(tenant):
                _load_rows(folder, manifest)
                _seal_again(transport)
                _require_whole(tenant, manifest)
                data = {"rows": sum(manifest.rows.values()), "exported_at": manifest.created}
                record(AuditEvent.COMPANY_IMPORTED, actor=ACTOR, subject=f"tenant:{tenant.pk}", data=data)
    except IntegrityError as error:
        raise BackupRefused("E_COMPANY_UNFIT", str(error).splitlines()[0]) from None
    write_checkpoint(chain_of(tenant.pk))
    _move_to_months()
    return manifest


def _move_to_months() -> None:
    """Give rows of months that this installation has detached a partition. While the table is in use they stay in the
    default partition, which `doctor` reports."""
    try:
        partitions.make()
    except OperationalError as error:
        _log.warning("imported_rows_in_default_partition reason=%s", str(error).splitlines()[0])


@contextmanager
def _as_owner() -> Iterator[None]:
    """For the block this thread's default connection is the owner's."""
    own = connections[DEFAULT_DB_ALIAS]
    connections[DEFAULT_DB_ALIAS] = connections["owner"]
    try:
        yield
    finally:
        connections[DEFAULT_DB_ALIAS] = own


def _add_company(fields: dict[str, Any]) -> Tenant:
    """The row alone, without the receivers that set up a new company: this one brings what they would add."""
    Tenant.objects.bulk_create([Tenant(**{**fields, "closed": Closed.CLOSED})])
    Tenant.objects.filter(pk=fields["id"]).update(created_at=fields["created_at"])
    return Tenant.objects.get(pk=fields["id"])


def _require_same_accounts(people: list[dict[str, Any]]) -> None:
    """Approvals are signed for the id of a person, so that an account with the same address must be the same one."""
    ids = dict(User.objects.filter(email__in=[each["email"] for each in people]).values_list("email", "pk"))
    if others := [each["email"] for each in people if str(ids.get(each["email"], each["id"])) != each["id"]]:
        message = f"Another account here has the address {', '.join(others)}. Give it another address first."
        raise BackupRefused("E_COMPANY_ACCOUNT", message)


def _add_people(people: list[dict[str, Any]]) -> None:
    """Accounts that are unknown here, without a password, second factors or rights of the installation."""
    known = set(User.objects.filter(pk__in=[each["id"] for each in people]).values_list("pk", flat=True))
    new = [User(**each) for each in people if UUID(each["id"]) not in known]
    for user in new:
        user.set_unusable_password()
    User.objects.bulk_create(new)


def _add_audit_keys(rows: list[dict[str, str]]) -> None:
    """Public keys of the former installation, by which its checkpoints are read."""
    AuditKey.objects.bulk_create([AuditKey(**each, sealed_private=b"") for each in rows], ignore_conflicts=True)


def _load_rows(folder: Path, manifest: CompanyManifest) -> None:
    """PostgreSQL copies into no table with row-level security, so each goes through a temporary one."""
    columns = tables()
    with connection.cursor() as cursor:
        cursor.execute(_TRIGGERS, [list(manifest.rows)])
        guarded = [sql.Identifier(name) for (name,) in cursor.fetchall()]
        for name in guarded:
            cursor.execute(sql.SQL("ALTER TABLE {} DISABLE TRIGGER USER").format(name))
        for table in manifest.rows:
            _load_table(cursor, folder / TABLES / table, table, columns[table])
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        for name in guarded:
            cursor.execute(sql.SQL("ALTER TABLE {} ENABLE TRIGGER USER").format(name))
        cursor.execute("SET CONSTRAINTS ALL DEFERRED")


def _load_table(cursor: CursorWrapper, path: Path, table: str, columns: list[str]) -> None:
    names = {"table": sql.Identifier(table), "columns": sql.SQL(", ").join(map(sql.Identifier, columns))}
    cursor.execute(
        sql.SQL("CREATE TEMP TABLE moved ON COMMIT DROP AS SELECT {columns} FROM {table} LIMIT 0").format(**names)
    )
    with path.open("rb") as file, cursor.copy("COPY moved FROM STDIN") as copy:
        while data := file.read(1 << 16):
            copy.write(data)
    statement = "INSERT INTO {table} ({columns}) SELECT {columns} FROM moved"
    if table == _QUEUE:
        # Places in the queues are numbered by each installation.
        cursor.execute(_RENUMBER, [table])
    cursor.execute(sql.SQL(statement).format(**names))
    cursor.execute("DROP TABLE moved")


def _seal_again(transport: TransportKeys) -> None:
    """Seal secrets, keys and policy with this installation's keys; only what the transport keys open and certify."""
    with using_keys(current=settings.SILAS_SECRETS_KEY, old=transport.secrets):
        vault.rewrap(actor=ACTOR)
        secret_rotation.reseal_columns()
    reseal_keys(old=transport.signing, new=settings.SILAS_SIGNING_KEY, actor=ACTOR)


def _require_whole(tenant: Tenant, manifest: CompanyManifest) -> None:
    """Compare the rows with the manifest, and verify audit log, policy and approvals."""
    with connection.cursor() as cursor:
        for table, expected in manifest.rows.items():
            cursor.execute(
                sql.SQL("SELECT count(*) FROM {} WHERE tenant_id = %s").format(sql.Identifier(table)), [tenant.pk]
            )
            (count,) = cursor.fetchone()
            if count != expected:
                raise BackupRefused("E_COMPANY_UNPROVEN", f"table {table}: {count} rows instead of {expected}")
    chain = str(tenant.pk)
    checked = verify_entries(entries_of(tenant.pk), chain=chain, head=head_of(tenant.pk), checkpoints=(), keys={})
    if checked.broken:
        raise BackupRefused("E_COMPANY_UNPROVEN", f"The audit log does not verify at {checked.broken.seq}.")
    # Before the COMMIT: a company without pins does not verify, and pins of one that is rolled back do no harm.
    sealed = {PolicyKind(row.kind): (row.version, row.items) for row in PolicySeal.objects.all()}
    policy_pins.pin(tenant.pk, sealed)
    if unproven := [kind.value for kind in PolicyKind if policy_seals.load_items(kind) is None]:
        raise BackupRefused("E_COMPANY_UNPROVEN", f"Not certified: {', '.join(unproven)}.")
    if tokens := unproven_tokens():
        raise BackupRefused("E_COMPANY_UNPROVEN", f"The signature of approval {tokens[0]} does not verify.")


def _put_files(folder: Path, manifest: CompanyManifest) -> None:
    """Before the rows: bytes without a row are harmless."""
    storage = storages["files"]
    for each in manifest.files:
        if each.name.startswith(f"{FILES}/"):
            name = each.name.removeprefix(f"{FILES}/")
            storage.delete(name)  # of an import that was killed
            with (folder / each.name).open("rb") as content:
                storage.save(name, File(content))
