"""Sign how long each chain is, so that a tail cut off later is missed (docs/audit-format.md).

The installation key signs them (kernel.trust), so only a process that holds SILAS_SIGNING_KEY can write one; others do
nothing. Each is kept in the database and outside of it (`outside`). Nothing is signed that does not follow from the
newest checkpoint of both: a log that was cut or rewritten gets no fresh signature. The trusted worker calls
`write_checkpoints` once a minute (`bus.receivers`).
"""

from __future__ import annotations

import base64
import logging
from dataclasses import replace

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from django.conf import settings
from django.db import OperationalError, connection

from apps.audit import outside, queries
from apps.audit.models import AuditCheckpoint, AuditKey
from apps.audit.queries import Chain
from apps.audit.rules import PLATFORM_CHAIN, Checkpoint, Finding, Head, inspect, is_signed, key_id_of, statement
from kernel import trust
from kernel.clock import now
from kernel.errors import error_location
from kernel.tenancy import lookup_scope

logger = logging.getLogger(__name__)


def write_checkpoints() -> int:
    """Sign every chain whose head moved since its newest checkpoint; returns how many. 0 without the signing key. One
    chain's trouble is logged and stops no other's."""
    if not settings.SILAS_SIGNING_KEY:
        return 0
    key, known, written = _key(), outside.newest(), 0
    for chain in queries.moved_chains(known):
        try:
            written += _write(chain, key, known.get(str(chain.id)))
        except OperationalError:
            raise
        except Exception as error:  # noqa: BLE001 (whatever is wrong with one chain, the others have their turn)
            logger.error("audit_checkpoint_failed chain=%s error=%s", chain.id, error_location(error))
    return written


def write_checkpoint(chain: Chain) -> bool:
    """The same for one chain."""
    return bool(settings.SILAS_SIGNING_KEY) and _write(chain, _key(), outside.newest().get(str(chain.id)))


def _write(chain: Chain, key: Ed25519PrivateKey, known: Checkpoint | None) -> bool:
    if chain.id == PLATFORM_CHAIN and not _platform_moved():
        return False
    with chain.scope("audit_checkpoint"):
        if not _is_only_writer(chain):
            return False
        head, newest = queries.head_of(chain.id), _newest(chain, known)
        if newest is not None and (head.seq, head.entry_hash) == (newest.seq, newest.entry_hash):
            if known is None or known.seq < newest.seq:
                outside.append(newest)  # the copy outside was lost, or is another machine's
            return False
        if not head.seq:
            return False
        finding = _since(chain, newest, head)
        if finding.broken:
            logger.error("audit chain is broken: %s at %s: %s", chain.name, finding.broken.seq, finding.broken.reason)
            return False
        _save(chain, head, key)
        return True


def _newest(chain: Chain, known: Checkpoint | None) -> Checkpoint | None:
    """The checkpoint furthest on that a pinned key signed, in the database or outside."""
    pinned = outside.pinned_keys()
    kept = next((each for each in queries.newest_checkpoints(chain.id) if is_signed(each, pinned)), None)
    return max((each for each in (kept, known) if each), key=lambda each: each.seq, default=None)


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
        key_id=key_id_of(key.public_key().public_bytes_raw()),
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
    outside.append(signed)


def _key() -> Ed25519PrivateKey:
    """The installation key; its public half is listed beside the older keys, for bundles."""
    key = trust.installation_key(settings.SILAS_SIGNING_KEY)
    root = trust.root_of(settings.SILAS_SIGNING_KEY)
    AuditKey.objects.get_or_create(
        key_id=key_id_of(bytes.fromhex(root)), defaults={"public_key": root, "sealed_private": b""}
    )
    return key
