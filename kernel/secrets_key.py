"""Seal and unseal secrets with the installation's key.

`SILAS_SECRETS_KEY` seals. During a key change `SILAS_SECRETS_KEY_OLD` still unseals older values, so that nothing
stops meanwhile (ADR 77).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager

from django.conf import settings

from kernel.errors import SilasError
from kernel.seal import seal, unseal


def seal_secret(secret: bytes, *, belongs_to: str) -> bytes:
    """Seal with the current key, bound to `belongs_to`."""
    return seal(settings.SILAS_SECRETS_KEY, secret, belongs_to=belongs_to)


def unseal_secret(sealed: bytes, *, belongs_to: str) -> bytes:
    """Raises `SilasError("seal_broken")` if neither the current nor the old key opens it."""
    try:
        return unseal(settings.SILAS_SECRETS_KEY, sealed, belongs_to=belongs_to)
    except SilasError:
        if not settings.SILAS_SECRETS_KEY_OLD:
            raise
        # The seal is authenticated: a value that neither key has sealed opens with neither.
        return unseal(settings.SILAS_SECRETS_KEY_OLD, sealed, belongs_to=belongs_to)


def is_sealed_with_current_key(sealed: bytes, *, belongs_to: str) -> bool:
    """Whether the current key opens it."""
    try:
        unseal(settings.SILAS_SECRETS_KEY, sealed, belongs_to=belongs_to)
    except SilasError:
        return False
    return True


@contextmanager
def using_keys(*, current: str, old: str) -> Iterator[None]:
    """Seal with `current` and unseal with both for the block. For a command that is alone in its process."""
    before = settings.SILAS_SECRETS_KEY, settings.SILAS_SECRETS_KEY_OLD
    settings.SILAS_SECRETS_KEY, settings.SILAS_SECRETS_KEY_OLD = current, old
    try:
        yield
    finally:
        settings.SILAS_SECRETS_KEY, settings.SILAS_SECRETS_KEY_OLD = before


def key_fingerprint() -> str:
    """An identifier of the current key, which reveals nothing of it."""
    # A prefix of its own, so that this hash is no other use's key (domain separation).
    return hashlib.sha256(b"silas-key-name-1:" + settings.SILAS_SECRETS_KEY.encode()).hexdigest()[:16]
