"""Until where is a chain's length signed? Statements that make a tail cut off later be missed (docs/audit-format.md).

Only a process that holds SILAS_SIGNING_KEY can write one; others do nothing. Nothing is signed that was not checked up
to the checkpoint before. The web process calls `write_checkpoints` now and then.
"""

from __future__ import annotations

import base64
import logging
from dataclasses import replace

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from django.conf import settings
from django.db import connection, transaction

from apps.audit import queries
from apps.audit.models import AuditCheckpoint, AuditKey
from apps.audit.queries import Chain
from apps.audit.rules import PLATFORM_CHAIN, Checkpoint, Finding, Head, inspect, key_id_of, statement
from kernel.clock import now
from kernel.errors import SilasError
from kernel.seal import seal, unseal
from kernel.tenancy import lookup_scope

logger = logging.getLogger(__name__)


def write_checkpoints() -> int:
    """Sign every chain whose head moved since its newest checkpoint; returns how many. 0 without the signing key."""
    if not settings.SILAS_SIGNING_KEY:
        return 0
    key = _signing_key()
    return sum(_write(chain, key) for chain in queries.chains())


def write_checkpoint(chain: Chain) -> bool:
    """The same for one chain."""
    return bool(settings.SILAS_SIGNING_KEY) and _write(chain, _signing_key())


def _write(chain: Chain, key: Ed25519PrivateKey) -> bool:
    if chain.id == PLATFORM_CHAIN and not _platform_moved():
        return False
    with chain.scope("audit_checkpoint"):
        if not _is_only_writer(chain):
            return False
        head, newest = queries.head_of(chain.id), queries.newest_checkpoint(chain.id)
        if head.seq <= (newest.seq if newest else 0):
            return False
        finding = _since(chain, newest, head)
        if finding.broken:
            logger.error("audit chain is broken: %s at %s: %s", chain.name, finding.broken.seq, finding.broken.reason)
            return False
        _save(chain, head, key)
        return True


def _platform_moved() -> bool:
    """Each checkpoint of the platform's chain adds one entry to it, because it is made in a platform scope."""
    with lookup_scope(str(PLATFORM_CHAIN)):
        newest = queries.newest_checkpoint(PLATFORM_CHAIN)
        return queries.head_of(PLATFORM_CHAIN).seq > (newest.seq + 1 if newest else 0)


def _is_only_writer(chain: Chain) -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(hashtextextended(%s, 0))", [f"audit_checkpoint:{chain.id}"])
        return bool(cursor.fetchone()[0])


def _since(chain: Chain, newest: Checkpoint | None, head: Head) -> Finding:
    entries = queries.entries_of(chain.id, after=newest.seq if newest else None, upto=head.seq)
    trusted = Head(newest.seq, newest.entry_hash) if newest else None
    return inspect(entries, chain=str(chain.id), head=head, checkpoints=(), keys={}, after=trusted)


def _save(chain: Chain, head: Head, key: Ed25519PrivateKey) -> None:
    made = now()
    unsigned = Checkpoint(
        chain=str(chain.id),
        seq=head.seq,
        entry_hash=head.entry_hash,
        count=head.seq,
        created_at=made.isoformat(),
        key_id=key_id_of(_public(key)),
        signature="",
    )
    signed = replace(unsigned, signature=base64.b64encode(key.sign(statement(unsigned))).decode())
    AuditCheckpoint.objects.create(
        tenant_id=None if chain.id == PLATFORM_CHAIN else chain.id,
        chain=chain.id,
        seq=signed.seq,
        entry_hash=signed.entry_hash,
        key_id=signed.key_id,
        signature=signed.signature,
        created_at=made,
    )


def _signing_key() -> Ed25519PrivateKey:
    """The newest key that our signing key opens, or a new one; an old one stays for what it signed."""
    with transaction.atomic(savepoint=False), connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended('audit_key', 0))")
        opened = (_open(row) for row in AuditKey.objects.order_by("-created_at"))
        return next((key for key in opened if key), None) or _new_key()


def _open(row: AuditKey) -> Ed25519PrivateKey | None:
    try:
        raw = unseal(settings.SILAS_SIGNING_KEY, bytes(row.sealed_private), belongs_to=f"audit:{row.key_id}")
    except SilasError:
        return None
    return Ed25519PrivateKey.from_private_bytes(raw)


def _new_key() -> Ed25519PrivateKey:
    key = Ed25519PrivateKey.generate()
    key_id = key_id_of(_public(key))
    sealed = seal(settings.SILAS_SIGNING_KEY, key.private_bytes_raw(), belongs_to=f"audit:{key_id}")
    AuditKey.objects.create(key_id=key_id, public_key=_public(key).hex(), sealed_private=sealed)
    return key


def _public(key: Ed25519PrivateKey) -> bytes:
    return key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
