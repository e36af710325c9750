"""Sign the length of each chain, so that cutting off its tail is noticed (docs/audit-format.md).

The installation key signs them (kernel.trust), so only a process that holds SILAS_SIGNING_KEY can write one; others do
nothing. Each is kept in the database and outside of it (`checkpoint_file`). Only what follows from the newest
checkpoint of both is signed: a log that was cut or rewritten gets no new signature. The trusted worker calls
`write_checkpoints` once a minute (`bus.receivers`)."""

from __future__ import annotations

import base64
import logging
from dataclasses import replace

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from django.conf import settings
from django.db import OperationalError, connection

from apps.audit import checkpoint_file, queries
from apps.audit.models import AuditCheckpoint, AuditKey
from apps.audit.queries import Chain
from apps.audit.rules import (
    PLATFORM_CHAIN,
    Checkpoint,
    Head,
    Verification,
    is_signed,
    key_id_of,
    signed_statement,
    verify_entries,
)
from kernel import trust
from kernel.clock import now
from kernel.errors import error_location
from kernel.tenancy import lookup_scope

logger = logging.getLogger(__name__)


def write_checkpoints() -> int:
    """Sign every chain whose head moved since its newest checkpoint; returns how many, 0 without the signing key. An
    error with one chain is logged and does not stop the others."""
    if not settings.SILAS_SIGNING_KEY:
        return 0
    key, known, written = _key(), checkpoint_file.read_newest(), 0
    for chain in queries.moved_chains(known):
        try:
            written += _write(chain, key, known.get(str(chain.id)))
        # The database is away, so that every other chain would fail too.
        except OperationalError:
            raise
        except Exception as error:  # noqa: BLE001 (an error with one chain must not stop the others)
            logger.error("audit_checkpoint_failed chain=%s error=%s", chain.id, error_location(error))
    return written


def write_checkpoint(chain: Chain) -> bool:
    """Sign one chain if its head moved; True if a checkpoint was written."""
    return bool(settings.SILAS_SIGNING_KEY) and _write(chain, _key(), checkpoint_file.read_newest().get(str(chain.id)))


def _write(chain: Chain, key: Ed25519PrivateKey, known: Checkpoint | None) -> bool:
    if chain.id == PLATFORM_CHAIN and not _platform_moved():
        return False
    with chain.scope("audit_checkpoint"):
        if not _is_only_writer(chain):
            return False
        head, newest = queries.head_of(chain.id), _newest(chain, known)
        if newest is not None and (head.seq, head.entry_hash) == (newest.seq, newest.entry_hash):
            if known is None or known.seq < newest.seq:
                checkpoint_file.append_checkpoint(newest)  # the copy outside was lost, or is another machine's
            return False
        if not head.seq:
            return False
        # A signature must never vouch for entries that were changed before it.
        if broken := _verify_since(chain, newest, head).broken:
            logger.error("audit chain is broken: %s at %s: %s", chain.name, broken.seq, broken.reason)
            return False
        _save(chain, head, key)
        return True


def _newest(chain: Chain, known: Checkpoint | None) -> Checkpoint | None:
    """Return the checkpoint with the highest number that a pinned key signed, in the database or outside."""
    pinned = checkpoint_file.pinned_keys()
    signed = (checkpoint for checkpoint in queries.newest_checkpoints(chain.id) if is_signed(checkpoint, pinned))
    candidates = [checkpoint for checkpoint in (next(signed, None), known) if checkpoint]
    return max(candidates, key=lambda checkpoint: checkpoint.seq, default=None)


def _platform_moved() -> bool:
    # Each checkpoint of the platform's chain adds one entry to it, because it is written in a platform scope.
    with lookup_scope(str(PLATFORM_CHAIN)):
        newest = queries.newest_checkpoint(PLATFORM_CHAIN)
        return queries.head_of(PLATFORM_CHAIN).seq > (newest.seq + 1 if newest else 0)


def _is_only_writer(chain: Chain) -> bool:
    with connection.cursor() as cursor:
        # No waiting: the process that holds the lock is signing this same head.
        cursor.execute("SELECT pg_try_advisory_xact_lock(hashtextextended(%s, 0))", [f"audit_checkpoint:{chain.id}"])
        return bool(cursor.fetchone()[0])


def _verify_since(chain: Chain, newest: Checkpoint | None, head: Head) -> Verification:
    entries = queries.entries_of(chain.id, after=newest.seq if newest else None, upto=head.seq)
    trusted = Head(newest.seq, newest.entry_hash) if newest else None
    return verify_entries(entries, chain=str(chain.id), head=head, checkpoints=(), keys={}, after=trusted)


def _save(chain: Chain, head: Head, key: Ed25519PrivateKey) -> None:
    made = now()
    unsigned = Checkpoint(
        chain=str(chain.id),
        seq=head.seq,
        entry_hash=head.entry_hash,
        count=head.seq,
        created_at=made.isoformat(),
        key_id=key_id_of(key.public_key().public_bytes_raw()),
        signature="",
    )
    signed = replace(unsigned, signature=base64.b64encode(key.sign(signed_statement(unsigned))).decode())
    AuditCheckpoint.objects.create(
        tenant_id=None if chain.id == PLATFORM_CHAIN else chain.id,
        chain=chain.id,
        seq=signed.seq,
        entry_hash=signed.entry_hash,
        key_id=signed.key_id,
        signature=signed.signature,
        created_at=made,
    )
    checkpoint_file.append_checkpoint(signed)


def _key() -> Ed25519PrivateKey:
    """Return the installation key; its public half is stored beside the older keys, for bundles."""
    key = trust.installation_key(settings.SILAS_SIGNING_KEY)
    root = trust.root_of(settings.SILAS_SIGNING_KEY)
    AuditKey.objects.get_or_create(
        key_id=key_id_of(bytes.fromhex(root)), defaults={"public_key": root, "sealed_private": b""}
    )
    return key
