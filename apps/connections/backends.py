"""Where is a credential's value kept? In the database, sealed; in the machine's keyring; or in a vault outside.

Whoever runs the installation chooses (`SILAS_CREDENTIAL_BACKEND`): `database`, `keyring`, or the dotted path of a class
with the three methods of `Keeper`. Whatever it is, it is given the value sealed already, so that a keyring that leaks
leaks nothing (ADR 77), and nothing there is written over: a transaction that comes to nothing finds what it had (ADR
91). Called by `credentials` alone.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from functools import lru_cache
from typing import Protocol, TypeVar

from django.conf import settings
from django.utils.module_loading import import_string

from apps.connections.enums import Backend
from kernel.errors import SilasError

_SERVICE = "silas"
T = TypeVar("T")


class CredentialStore(Protocol):
    """`keep` puts the value where nothing was before, under the fresh `ref` or however it likes, and returns what the
    row remembers, at most a few hundred bytes where that is not the value; `fetch` and `drop` are given that."""

    def keep(self, ref: str, sealed: bytes) -> bytes: ...

    def fetch(self, kept: bytes) -> bytes: ...

    def drop(self, kept: bytes) -> None: ...


class DatabaseStore:
    """The row is the place."""

    def keep(self, ref: str, sealed: bytes) -> bytes:
        return sealed

    def fetch(self, kept: bytes) -> bytes:
        return kept

    def drop(self, kept: bytes) -> None:
        return None


class KeyringStore:
    """The machine's keyring, through the library `keyring` (requirements/keyring.txt). Raises `SilasError`:
    `keyring_missing` 409, `keyring_unavailable` 503, `credential_gone` 409."""

    def keep(self, ref: str, sealed: bytes) -> bytes:
        value = base64.b64encode(sealed).decode()
        _with_keyring(lambda keyring: keyring.set_password(_SERVICE, ref, value))
        return ref.encode()

    def fetch(self, kept: bytes) -> bytes:
        found = _with_keyring(lambda keyring: keyring.get_password(_SERVICE, kept.decode()))
        if found is None:
            raise SilasError("credential_gone", "The keyring no longer has this credential.", status=409)
        return base64.b64decode(found)

    def drop(self, kept: bytes) -> None:
        ref = kept.decode()
        if _with_keyring(lambda keyring: keyring.get_password(_SERVICE, ref)) is not None:
            _with_keyring(lambda keyring: keyring.delete_password(_SERVICE, ref))


def configured_backend() -> Backend:
    """What new credentials are kept in."""
    name = settings.CREDENTIAL_BACKEND
    return Backend(name) if name in (Backend.DATABASE, Backend.KEYRING) else Backend.VAULT


def store_of(backend: Backend) -> CredentialStore:
    """Raises `SilasError("vault_missing")` 409 for values of a vault that is not configured any more."""
    match backend:
        case Backend.DATABASE:
            return DatabaseStore()
        case Backend.KEYRING:
            return KeyringStore()
        case Backend.VAULT:
            if configured_backend() != Backend.VAULT:
                raise SilasError("vault_missing", "The vault that has this credential is not set up here.", status=409)
            return _vault(settings.CREDENTIAL_BACKEND)


@lru_cache
def _vault(path: str) -> CredentialStore:
    made: CredentialStore = import_string(path)()
    return made


def _with_keyring(question: Callable[[Keyring], T]) -> T:
    """What a keyring answers. Backends fail in ways of their own; what they say about it stays here."""
    try:
        found: Keyring = import_string("keyring.get_keyring")()
    except ImportError:
        raise SilasError("keyring_missing", "The library for the keyring is not installed here.", status=409) from None
    try:
        return question(found)
    except Exception:  # noqa: BLE001 (locked, not there, or broken: to us it is away)
        message = "This machine's keyring is locked, or there is none. Nothing was changed."
        raise SilasError("keyring_unavailable", message, status=503) from None


class Keyring(Protocol):
    """What we use of the library."""

    def set_password(self, service: str, username: str, password: str) -> None: ...

    def get_password(self, service: str, username: str) -> str | None: ...

    def delete_password(self, service: str, username: str) -> None: ...
