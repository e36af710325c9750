"""Encrypt secrets that are stored in rows, with AES-256-GCM under a key that only some processes hold.

The caller names what the secret belongs to; a sealed value that is moved to another row does not open.
"""

from __future__ import annotations

import hashlib
import os

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from kernel.error_codes import ErrorCode
from kernel.errors import SilasError

_NONCE_BYTES = 12


def _cipher(key: str) -> AESGCM:
    return AESGCM(hashlib.sha256(b"silas-seal-1:" + key.encode()).digest())


def seal(key: str, secret: bytes, *, belongs_to: str) -> bytes:
    """Encrypt `secret` under the text `key`, bound to `belongs_to`."""
    nonce = os.urandom(_NONCE_BYTES)
    return nonce + _cipher(key).encrypt(nonce, secret, belongs_to.encode())


def unseal(key: str, sealed: bytes, *, belongs_to: str) -> bytes:
    """Raises `SilasError("seal_broken")` for a wrong key, a moved or a changed value."""
    try:
        return _cipher(key).decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], belongs_to.encode())
    except (InvalidTag, ValueError):  # ValueError: too short to be one
        raise SilasError(ErrorCode.SEAL_BROKEN, "A sealed value could not be opened with this key.") from None
