"""Verify a member's signature on a message and derive how far it is trusted (step 2).

A valid signature of an owner gives `owner`, of any other member `auth`. One that is repeated, late or invalid makes the
message an external one and is audited; the message itself is kept like any other. Called by
`sessions.services.accept_signed`.
"""

from __future__ import annotations

import base64
import binascii
from datetime import datetime, timedelta

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key
from django.db import IntegrityError, transaction

from apps.access.models import MessageNonce
from apps.access.schemas import Signed
from apps.tenants.enums import Role
from apps.tenants.queries import message_key
from kernel.canonical import canonical_bytes
from kernel.clock import now
from kernel.taint import Taint

FRESH = timedelta(minutes=5)
NONCES_KEPT = timedelta(minutes=40)
REPLAYED = frozenset({"stale", "nonce_used"})


# Format 1 named no deployment: a signature made for one company was valid at another.
VERSION = 2


def signed_bytes(text: str, *, deployment: str, timestamp: str, nonce: str) -> bytes:
    """What is signed: the format, the public key of the deployment where it is said, and the text as it is stored,
    without blanks around it. Channel and sender are not in it."""
    said = {"text": text, "timestamp": timestamp, "nonce": nonce}
    return canonical_bytes({"v": VERSION, "deployment": deployment, **said})


def judge_signature(text: str, signed: Signed, deployment: str) -> tuple[Taint, str]:
    """How far the message is trusted, and what is wrong with its signature."""
    if signed.v != VERSION:
        return Taint.EXTERNAL, "version"
    known = message_key(signed.key_id)
    if known is None:
        return Taint.EXTERNAL, "key_unknown"
    public_key, role = known
    if not holds(public_key, text, signed, deployment):
        return Taint.EXTERNAL, "signature"
    sent = _moment(signed.timestamp)
    if sent is None or abs(now() - sent) > FRESH:
        return Taint.EXTERNAL, "stale"
    if not _use(signed):
        return Taint.EXTERNAL, "nonce_used"
    return (Taint.OWNER if role == Role.OWNER else Taint.AUTH), ""


def holds(public_key: str, text: str, signed: Signed, deployment: str) -> bool:
    message = signed_bytes(text, deployment=deployment, timestamp=signed.timestamp, nonce=signed.nonce)
    key: object = load_pem_public_key(public_key.encode())
    try:
        value = base64.b64decode(signed.signature, altchars=b"-_", validate=True)
        assert isinstance(key, Ed25519PublicKey)
        key.verify(value, message)
    except (InvalidSignature, binascii.Error, ValueError):
        return False
    return True


def _moment(text: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else None


def _use(signed: Signed) -> bool:
    """Claim the nonce; False if it was used before."""
    moment = now()
    MessageNonce.objects.filter(seen_at__lt=moment - NONCES_KEPT).delete()
    try:
        with transaction.atomic():
            MessageNonce.objects.create(key_id=signed.key_id, nonce=signed.nonce, seen_at=moment)
    except IntegrityError:
        return False
    return True
