"""Check that an installation holds what a backup says: rows, audit chains, certified policy, approvals and files."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

from django.conf import settings
from django.core.files.storage import storages

from apps.approvals.tokens.services import unproven_tokens
from apps.audit import checkpoint_file
from apps.audit.queries import chains, verify_chain
from apps.tenants import policy_seals
from apps.tenants.enums import PolicyKind
from apps.tenants.queries import all_tenants
from kernel.tenancy import tenant_scope
from silas_platform.backup import database
from silas_platform.backup.manifest import FILES, Manifest

# Tables that a migration writes: their rows may differ.
_MAY_DIFFER = {"django_migrations", "django_content_type", "auth_permission", "silas_platform_installedversion"}
# Tables that a verification itself adds to; what they hold is proven by the chains.
_GROW = {"audit_auditentry", "audit_audithead"}


def problems(manifest: Manifest, *, exact: bool) -> Iterator[str]:
    """Each difference or failed proof as a sentence. `exact`: the numbers of rows are compared; they hold until the
    restored installation is started."""
    if exact:
        yield from _different_rows(manifest)
    yield from _missing_files(manifest)
    for chain in chains():
        result = verify_chain(chain)
        if result.broken:
            yield f"audit log of {chain.name}: entry {result.broken.seq} does not verify ({result.broken.reason})"
    for missing in sorted(checkpoint_file.read_newest().keys() - {str(chain.id) for chain in chains()}):
        yield f"audit log {missing} is known from its checkpoints and is not in the database"
    for tenant in all_tenants():
        with tenant_scope(tenant):
            for kind in PolicyKind:
                if policy_seals.load_items(kind) is None:
                    yield f"{tenant.slug}: the list {kind} is not certified by a pinned installation key"
            for approval in unproven_tokens():
                yield f"{tenant.slug}: the signature of approval {approval} does not verify"


def verify_in_child(place: str) -> bool:
    """Verify in a process of its own, which reads the keys that were just restored; it prints what it finds."""
    argv = [sys.executable, "manage.py", "restore", place, "--verify"]
    return subprocess.run(argv, cwd=settings.BASE_DIR).returncode == 0


def _different_rows(manifest: Manifest) -> Iterator[str]:
    with database.connected() as connection:
        here = database.count_rows(connection)
    for table, rows in manifest.rows.items():
        has_grown = table in _GROW and here.get(table, 0) > rows
        if table not in _MAY_DIFFER and here.get(table) != rows and not has_grown:
            yield f"table {table}: {here.get(table, 'no')} rows instead of {rows}"


def _missing_files(manifest: Manifest) -> Iterator[str]:
    storage = storages["files"]
    for each in manifest.files:
        name = each.name.removeprefix(f"{FILES}/")
        if name != each.name and not storage.exists(name):
            yield f"file {name} is missing"
