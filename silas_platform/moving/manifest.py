"""The manifest of an exported company, and the transport keys that its secrets are sealed under."""

from __future__ import annotations

import hmac
import json
import secrets
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from apps.simulations.models import SimulationCopy
from kernel.canonical import canonical_bytes
from silas_platform.backup import keys
from silas_platform.backup.manifest import NAME, BackupRefused, Stored, measured
from silas_platform.schema_version import newest_of

FORMAT = "silas-company-1"
TENANT, PEOPLE, AUDIT_KEYS, KEYS, TABLES, FILES = (
    "company.json",
    "people.json",
    "audit_keys.json",
    "keys.sealed",
    "tables",
    "files",
)
_SIGNING, _SECRETS = "signing", "secrets"


@dataclass(frozen=True)
class TransportKeys:
    """A signing key and a secrets key for one export."""

    signing: str = field(repr=False)
    secrets: str = field(repr=False)

    @classmethod
    def new(cls) -> TransportKeys:
        return cls(secrets.token_urlsafe(32), secrets.token_urlsafe(32))

    def sealed(self, passphrase: str) -> bytes:
        return keys.seal_values({_SIGNING: self.signing, _SECRETS: self.secrets}, passphrase)

    @classmethod
    def unsealed(cls, text: bytes, passphrase: str) -> TransportKeys:
        """Raises `BackupRefused`."""
        values = keys.unseal_values(text, passphrase)
        return cls(values[_SIGNING], values[_SECRETS])


@dataclass(frozen=True)
class CompanyManifest:
    """`migrations`: the newest migration of each app; `rows`: rows of each table; `seal`: HMAC of all other fields."""

    created: str
    slug: str
    tenant: str
    migrations: dict[str, str]
    rows: dict[str, int]
    files: list[Stored]
    missing: list[str] = field(default_factory=list)
    format: str = FORMAT
    seal: str = ""

    def sealed(self, transport: TransportKeys) -> CompanyManifest:
        return CompanyManifest(**{**vars(self), "seal": self._seal(transport)})

    def is_sealed(self, transport: TransportKeys) -> bool:
        return hmac.compare_digest(self.seal, self._seal(transport))

    def text(self) -> str:
        return json.dumps(asdict(self), indent=1, sort_keys=True)

    def _seal(self, transport: TransportKeys) -> str:
        fields = {name: value for name, value in asdict(self).items() if name != "seal"}
        return hmac.digest(transport.secrets.encode(), canonical_bytes(fields), "sha256").hex()


def read_export(folder: Path, passphrase: str) -> tuple[CompanyManifest, TransportKeys]:
    """The manifest and the keys of an export, with every file checked. Raises `BackupRefused`."""
    try:
        read: dict[str, Any] = json.loads((folder / NAME).read_text())
        manifest = CompanyManifest(**{**read, "files": [Stored(**each) for each in read["files"]]})
        sealed = (folder / KEYS).read_bytes()
    except (OSError, ValueError, TypeError, KeyError):
        raise BackupRefused("E_COMPANY_EXPORT", f"There is no complete export of a company at {folder}.") from None
    if manifest.format != FORMAT:
        raise BackupRefused("E_COMPANY_EXPORT", f"This release reads {FORMAT}, not {manifest.format!r}.")
    transport = TransportKeys.unsealed(sealed, passphrase)
    if not manifest.is_sealed(transport):
        raise BackupRefused("E_COMPANY_TAMPERED", f"{NAME} is not what was exported.")
    for each in manifest.files:
        path = folder / each.name
        if ".." in PurePosixPath(each.name).parts or not path.is_file() or measured(folder, each.name) != each:
            raise BackupRefused("E_COMPANY_TAMPERED", f"{each.name} is not what was exported.")
    return manifest, transport


def newest_migrations() -> dict[str, str]:
    """The newest migration of each app in this database."""
    return newest_of(MigrationRecorder(connection).applied_migrations())


def tables() -> dict[str, list[str]]:
    """Every table whose rows move with a company, with its columns as they are written. Copies for simulations are made
    again, and detached partitions stay where they are."""
    moved = set(connection.introspection.django_table_names()) - {SimulationCopy._meta.db_table}
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT c.relname, array_agg(a.attname::text ORDER BY a.attnum)
            FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid
            WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
              AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '' AND c.relname = ANY(%s)
            GROUP BY c.relname HAVING bool_or(a.attname = 'tenant_id') ORDER BY c.relname
            """,
            [sorted(moved)],
        )
        return dict(cursor.fetchall())


def people_columns() -> list[tuple[str, str]]:
    """Columns of those tables that name the account of a person."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT k.conrelid::regclass::text, a.attname
            FROM pg_constraint AS k JOIN pg_attribute AS a ON a.attrelid = k.conrelid AND a.attnum = k.conkey[1]
            WHERE k.contype = 'f' AND k.confrelid = 'tenants_user'::regclass AND k.conparentid = 0
              AND EXISTS (SELECT FROM pg_attribute AS t WHERE t.attrelid = k.conrelid AND t.attname = 'tenant_id')
            ORDER BY 1, 2
            """
        )
        theirs = tables()
        return [(table, column) for table, column in cursor.fetchall() if table in theirs]
