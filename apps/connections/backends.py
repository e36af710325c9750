"""Where is a credential's value kept? In the database, sealed; in the machine's keyring; or in a vault outside.

Whoever runs the installation chooses (`SILAS_CREDENTIAL_BACKEND`): `database`, `keyring`, or the dotted path of a class
with the three methods of `Keeper`. Whatever it is, it is given the value sealed already, so that a keyring that leaks
leaks nothing (ADR 77). Called by `credentials` alone.
"""

from __future__ import annotations

import base64
from functools import lru_cache
from typing import Protocol

from django.conf import settings
from django.utils.module_loading import import_string

from apps.connections.enums import Backend
from kernel.errors import SilasError

_SERVICE = "silas"


class Keeper(Protocol):
    """`keep` returns what the row remembers; `fetch` and `drop` are given that."""

    def keep(self, ref: str, sealed: bytes) -> bytes: ...

    def fetch(self, ref: str, kept: bytes) -> bytes: ...

    def drop(self, ref: str, kept: bytes) -> None: ...


class InDatabase:
    """The row is the place."""

    def keep(self, ref: str, sealed: bytes) -> bytes:
        return sealed

    def fetch(self, ref: str, kept: bytes) -> bytes:
        return kept

    def drop(self, ref: str, kept: bytes) -> None:
        return None


class InKeyring:
    """The machine's keyring, through the library `keyring` where the operator installed it."""

    def keep(self, ref: str, sealed: bytes) -> bytes:
        _keyring().set_password(_SERVICE, ref, base64.b64encode(sealed).decode())
        return b""

    def fetch(self, ref: str, kept: bytes) -> bytes:
        found = _keyring().get_password(_SERVICE, ref)
        if found is None:
            raise SilasError("credential_gone", "The keyring no longer has this credential.", status=409)
        return base64.b64decode(found)

    def drop(self, ref: str, kept: bytes) -> None:
        if _keyring().get_password(_SERVICE, ref) is not None:
            _keyring().delete_password(_SERVICE, ref)


def chosen() -> Backend:
    """What new credentials are kept in."""
    name = settings.CREDENTIAL_BACKEND
    return Backend(name) if name in (Backend.DATABASE, Backend.KEYRING) else Backend.VAULT


def keeper(backend: Backend) -> Keeper:
    match backend:
        case Backend.DATABASE:
            return InDatabase()
        case Backend.KEYRING:
            return InKeyring()
        case Backend.VAULT:
            return _outside(settings.CREDENTIAL_BACKEND)


@lru_cache
def _outside(path: str) -> Keeper:
    made: Keeper = import_string(path)()
    return made


def _keyring() -> Keyring:
    try:
        found: Keyring = import_string("keyring.get_keyring")()
    except ImportError:
        raise SilasError("keyring_missing", "The library for the keyring is not installed here.", status=409) from None
    return found


class Keyring(Protocol):
    """What we use of the library."""

    def set_password(self, service: str, username: str, password: str) -> None: ...

    def get_password(self, service: str, username: str) -> str | None: ...

    def delete_password(self, service: str, username: str) -> None: ...
