"""Backends that store credential values: the database, the machine's keyring, or an outside vault.

The operator chooses one with `SILAS_CREDENTIAL_BACKEND`: `database`, `keyring`, or the dotted path of a class with the
three methods of `CredentialStore`. Every backend is given values that are sealed already, so that a keyring that leaks
leaks nothing (ADR 77), and no value is ever overwritten in place: a transaction that is rolled back finds what it had.
Only `credentials` calls this module.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from functools import lru_cache
from typing import Protocol, TypeVar

from django.conf import settings
from django.utils.module_loading import import_string

from apps.connections.enums import Backend
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.language import gettext

_SERVICE = "silas"
T = TypeVar("T")


class CredentialStore(Protocol):
    """A place for sealed values.

    `keep` stores a value in a new place, named by the fresh `ref` or however the store likes, and returns what the row
    remembers: a few hundred bytes at most, where that is not the value itself. `fetch` and `drop` are given that.
    """

    def keep(self, ref: str, sealed: bytes) -> bytes: ...

    def fetch(self, kept: bytes) -> bytes: ...

    def drop(self, kept: bytes) -> None: ...


class DatabaseStore:
    """Keeps the sealed value in the row."""

    def keep(self, ref: str, sealed: bytes) -> bytes:
        return sealed

    def fetch(self, kept: bytes) -> bytes:
        return kept

    def drop(self, kept: bytes) -> None:
        return None


class KeyringStore:
    """Keeps values in the machine's keyring, through the library `keyring` (requirements/keyring.txt). Raises
    `SilasError`: `keyring_missing` 409, `keyring_unavailable` 503, `credential_gone` 409."""

    def keep(self, ref: str, sealed: bytes) -> bytes:
        value = base64.b64encode(sealed).decode()
        _with_keyring(lambda keyring: keyring.set_password(_SERVICE, ref, value))
        return ref.encode()

    def fetch(self, kept: bytes) -> bytes:
        value = _with_keyring(lambda keyring: keyring.get_password(_SERVICE, kept.decode()))
        if value is None:
            raise SilasError(ErrorCode.CREDENTIAL_GONE)
        return base64.b64decode(value)

    def drop(self, kept: bytes) -> None:
        ref = kept.decode()
        if _with_keyring(lambda keyring: keyring.get_password(_SERVICE, ref)) is not None:
            _with_keyring(lambda keyring: keyring.delete_password(_SERVICE, ref))


def configured_backend() -> Backend:
    """Return the backend for new credentials."""
    name = settings.CREDENTIAL_BACKEND
    return Backend(name) if name in (Backend.DATABASE, Backend.KEYRING) else Backend.VAULT


def store_of(backend: Backend) -> CredentialStore:
    """Return the store of this backend. Raises `SilasError("vault_missing")` 409 for values of a vault that is no
    longer configured."""
    match backend:
        case Backend.DATABASE:
            return DatabaseStore()
        case Backend.KEYRING:
            return KeyringStore()
        case Backend.VAULT:
            if configured_backend() != Backend.VAULT:
                message = gettext("The vault that holds this credential is not configured here.")
                raise SilasError(ErrorCode.VAULT_MISSING, message)
            return _vault(settings.CREDENTIAL_BACKEND)


@lru_cache
def _vault(path: str) -> CredentialStore:
    vault: CredentialStore = import_string(path)()
    return vault


def _with_keyring(operation: Callable[[Keyring], T]) -> T:
    try:
        keyring: Keyring = import_string("keyring.get_keyring")()
    except ImportError:
        raise SilasError(ErrorCode.KEYRING_MISSING) from None
    try:
        return operation(keyring)
    # Keyring backends raise errors of their own, whose texts may hold what was stored: none of it leaves here.
    except Exception:  # noqa: BLE001 (a keyring fails in many ways)
        message = gettext("This machine's keyring is locked or missing. Nothing was changed.")
        raise SilasError(ErrorCode.KEYRING_UNAVAILABLE, message) from None


class Keyring(Protocol):
    """The part of the library `keyring` that is used here."""

    def set_password(self, service: str, username: str, password: str) -> None: ...

    def get_password(self, service: str, username: str) -> str | None: ...

    def delete_password(self, service: str, username: str) -> None: ...
