"""Export one closed company to a folder.

Everything is read in one transaction that sees this company alone. In it the company's secrets, keys and policy are
resealed with the transport keys. It is rolled back, so the installation keeps its own seals.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.files.storage import storages
from django.core.serializers.json import DjangoJSONEncoder
from django.db import connection, transaction
from psycopg import sql

from apps.approvals.keys.services import reseal_keys
from apps.approvals.tokens.services import unproven_tokens
from apps.audit.models import AuditCheckpoint, AuditKey
from apps.audit.queries import chain_of, verify_chain
from apps.tenants import policy_seals, secret_rotation, vault
from apps.tenants.enums import PolicyKind
from apps.tenants.models import Tenant, User
from apps.visitors.models import VisitorFile
from kernel.clock import now
from kernel.secrets_key import using_keys
from kernel.tenancy import tenant_scope
from silas_platform.backup.manifest import BUCKET, NAME, BackupRefused, Stored, measured, target
from silas_platform.moving.closing import ACTOR
from silas_platform.moving.manifest import (
    AUDIT_KEYS,
    FILES,
    KEYS,
    PEOPLE,
    TABLES,
    TENANT,
    CompanyManifest,
    TransportKeys,
    newest_migrations,
    people_columns,
    tables,
)

PERSON = ("id", "email", "username", "first_name", "last_name", "language", "is_active")


class _RollBack(Exception):
    """Rolls back the transaction in which secrets were resealed."""


def export_company(tenant: Tenant, place: str, *, passphrase: str) -> CompanyManifest:
    """Write the closed company to `place`, a new folder. Raises `BackupRefused`; then nothing is left there."""
    if place.startswith(BUCKET):
        raise BackupRefused("E_COMPANY_EXPORT", "Name a folder: a company is not exported to a bucket.")
    if not tenant.closed:
        raise BackupRefused("E_COMPANY_OPEN", f"Close it first: manage.py company close {tenant.slug}")
    if verify_chain(chain_of(tenant.pk)).broken:
        raise BackupRefused("E_COMPANY_UNPROVEN", "The audit log does not verify; see manage.py audit_verify.")
    transport = TransportKeys.new()
    with target(place) as folder:
        (folder / TABLES).mkdir()
        try:
            with transaction.atomic():
                with connection.cursor() as cursor:
                    cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
                with tenant_scope(tenant):
                    _require_proven()
                    _seal_for_transport(transport)
                    rows = {name: _copy_table(folder, name, columns) for name, columns in tables().items()}
                    _write_rows_beside(folder, tenant)
                    names = list(VisitorFile.objects.values_list("stored_name", flat=True))
                    raise _RollBack
        except _RollBack:
            pass
        copied, missing = _copy_files(folder, names)
        (folder / KEYS).write_bytes(transport.sealed(passphrase))
        stored = [measured(folder, f"{TABLES}/{name}") for name in rows]
        stored += [measured(folder, name) for name in (TENANT, PEOPLE, AUDIT_KEYS)]
        manifest = CompanyManifest(
            created=now().isoformat(),
            slug=tenant.slug,
            tenant=str(tenant.pk),
            migrations=newest_migrations(),
            rows=rows,
            files=[*stored, *copied],
            missing=missing,
        ).sealed(transport)
        (folder / NAME).write_text(manifest.text())
    return manifest


def _require_proven() -> None:
    """What is not proven here is not handed on as proven."""
    unproven = [kind.value for kind in PolicyKind if policy_seals.load_items(kind) is None]
    if unproven:
        raise BackupRefused("E_COMPANY_UNPROVEN", f"Not certified by this installation: {', '.join(unproven)}.")
    if tokens := unproven_tokens():
        raise BackupRefused("E_COMPANY_UNPROVEN", f"The signature of approval {tokens[0]} does not verify.")


def _seal_for_transport(transport: TransportKeys) -> None:
    with using_keys(current=transport.secrets, old=settings.SILAS_SECRETS_KEY):
        vault.rewrap(actor=ACTOR)
        secret_rotation.reseal_columns()
    reseal_keys(old=settings.SILAS_SIGNING_KEY, new=transport.signing, actor=ACTOR)


def _copy_table(folder: Path, table: str, columns: list[str]) -> int:
    statement = sql.SQL("COPY (SELECT {} FROM {} WHERE tenant_id = current_setting('silas.tenant')::uuid) TO STDOUT")
    listed = sql.SQL(", ").join(map(sql.Identifier, columns))
    cursor: object
    with connection.cursor() as cursor, (folder / TABLES / table).open("wb") as file:
        with cursor.copy(statement.format(listed, sql.Identifier(table))) as copy:
            for data in copy:
                file.write(data)
        return int(cursor.rowcount)


def _write_rows_beside(folder: Path, tenant: Tenant) -> None:
    """The company itself, the accounts of its people, and the public keys of its checkpoints."""
    fields = {field.attname: getattr(tenant, field.attname) for field in Tenant._meta.concrete_fields}
    ids: set[Any] = set()
    with connection.cursor() as cursor:
        for table, column in people_columns():
            statement = sql.SQL("SELECT DISTINCT {0} FROM {1} WHERE {0} IS NOT NULL AND tenant_id = %s")
            cursor.execute(statement.format(sql.Identifier(column), sql.Identifier(table)), [tenant.pk])
            ids |= {user_id for (user_id,) in cursor.fetchall()}
    people = list(User.objects.filter(pk__in=ids).order_by("pk").values(*PERSON))
    signers = AuditCheckpoint.objects.filter(chain=tenant.pk).values("key_id")
    known = list(AuditKey.objects.filter(key_id__in=signers).values("key_id", "public_key"))
    for name, value in ((TENANT, fields), (PEOPLE, people), (AUDIT_KEYS, known)):
        (folder / name).write_text(json.dumps(value, cls=DjangoJSONEncoder, indent=1))


def _copy_files(folder: Path, names: list[str]) -> tuple[list[Stored], list[str]]:
    storage, copied, missing = storages["files"], [], []
    for name in names:
        path = folder / FILES / name
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with storage.open(name) as content, path.open("wb") as copy:
                shutil.copyfileobj(content, copy)
        except FileNotFoundError:
            path.unlink(missing_ok=True)
            missing.append(name)
        else:
            copied.append(measured(folder, f"{FILES}/{name}"))
    return copied, missing
