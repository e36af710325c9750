"""Certify statements with the installation key, and check certificates against its pinned public half (ADR 99).

The installation key is an Ed25519 key derived from `SILAS_SIGNING_KEY`: the processes that may sign hold it, and there
is no second secret to keep or to lose. Its public half is pinned outside the database in `SILAS_ROOT_KEYS`; several are
allowed while the signing key is changed. A certificate covers its kind and every field, so it is worth nothing
elsewhere.
"""

from __future__ import annotations

import base64
import binascii
import functools
import re
from collections.abc import Mapping

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings

from kernel.canonical import canonical_bytes
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError

_PURPOSE = b"silas-installation-key-1"
_PUBLIC = re.compile(r"[0-9a-f]{64}\Z")


@functools.lru_cache(maxsize=8)
def installation_key(signing_key: str) -> Ed25519PrivateKey:
    """The installation key that belongs to a signing key. A signing key has 256 random bits, so no stretching."""
    seed = HKDF(algorithm=SHA256(), length=32, salt=None, info=_PURPOSE).derive(signing_key.encode())
    return Ed25519PrivateKey.from_private_bytes(seed)


@functools.lru_cache(maxsize=8)
def root_of(signing_key: str) -> str:
    """The public half of its installation key, as 64 hex digits: what is pinned."""
    return installation_key(signing_key).public_key().public_bytes_raw().hex()


def roots() -> tuple[str, ...]:
    """The public keys this process believes: the pinned ones, and its own where it holds the signing key."""
    # Its own key needs no pin: a process that may sign can verify what it has signed.
    own = (root_of(settings.SILAS_SIGNING_KEY),) if settings.SILAS_SIGNING_KEY else ()
    return tuple(dict.fromkeys((*own, *settings.SILAS_ROOT_KEYS)))


def is_root(text: str) -> bool:
    return _PUBLIC.match(text) is not None


def certify(kind: str, fields: Mapping[str, object], *, signing_key: str = "") -> str:
    """Sign a statement with the installation key; base64. Raises `SilasError("signing_key_missing")` in a process that
    may not sign."""
    key = signing_key or settings.SILAS_SIGNING_KEY
    if not key:
        raise SilasError(
            ErrorCode.SIGNING_KEY_MISSING,
            "This process does not hold SILAS_SIGNING_KEY, so it cannot certify this. Do it in the web process, or run "
            "the command with the key.",
        )
    return base64.b64encode(installation_key(key).sign(_statement(kind, fields))).decode("ascii")


def is_certified(
    kind: str, fields: Mapping[str, object], certificate: str, *, by: tuple[str, ...] | None = None
) -> bool:
    """Whether a pinned installation key signed exactly this. `by`: these public keys instead of the pinned ones.
    Verified statements are remembered, so asking again costs no signature check."""
    return bool(certificate) and _is_signed(_statement(kind, fields), certificate, roots() if by is None else by)


def _statement(kind: str, fields: Mapping[str, object]) -> bytes:
    return canonical_bytes({"silas": "certificate-1", "kind": kind, "fields": dict(fields)})


@functools.lru_cache(maxsize=16_384)
def _is_signed(statement: bytes, certificate: str, by: tuple[str, ...]) -> bool:
    try:
        # Without `validate` other characters are dropped, and one certificate would have many spellings.
        signature = base64.b64decode(certificate, validate=True)
    except (binascii.Error, ValueError):
        return False
    return any(_verifies(root, signature, statement) for root in by)


def _verifies(root: str, signature: bytes, statement: bytes) -> bool:
    try:
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(root)).verify(signature, statement)
    except (InvalidSignature, ValueError):
        return False
    return True
