"""Reseal the columns that `SILAS_SECRETS_KEY` seals directly with its next value. Rooms register their columns.

Runs in the caller's tenant scope, except `reseal_authenticators`, whose rows belong to users. A value that neither the
current nor the old key opens is left as it is and not counted. Called by the command `rotate_secrets`.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import Any

from django.db.models import Model

from apps.tenants.models import Deployment, IdentityKey, LoginProvider, Totp
from kernel.errors import SilasError
from kernel.secrets_key import is_sealed_with_current_key, seal_secret, unseal_secret
from llm.keys import seal_context

_columns: list[tuple[type[Model], str, str]] = [
    (IdentityKey, "sealed_secret", "identity_key"),
    (LoginProvider, "sealed_secret", "login_provider"),
]


def register_column(model: type[Model], column: str, prefix: str) -> None:
    """Register a column whose sealed values are bound to `prefix:<id of the row>`."""
    _columns.append((model, column, prefix))


def reseal_columns() -> int:
    """Reseal the scope's values with the current installation key; returns how many were sealed by an older one."""
    done = sum(_reseal_rows(model, column, prefix) for model, column, prefix in _columns)
    return done + sum(_reseal_keys(row) for row in Deployment.objects.select_for_update(of=("self",), no_key=True))


def reseal_authenticators() -> int:
    """Reseal the authenticator secrets of all users; returns how many were sealed by an older key."""
    return sum(_reseal(row, "sealed_secret", f"totp:{row.user_id}") for row in Totp.objects.all())


def _reseal_rows(model: type[Model], column: str, prefix: str) -> int:
    rows: Any = model._default_manager.exclude(**{column: None}).select_for_update(of=("self",), no_key=True)
    return sum(_reseal(row, column, f"{prefix}:{row.pk}") for row in rows)


def _reseal(row: Any, column: str, belongs_to: str) -> int:
    fresh = _fresh(bytes(getattr(row, column)), belongs_to)
    if fresh is None:
        return 0
    setattr(row, column, fresh)
    row.save(update_fields=[column])
    return 1


def _reseal_keys(row: Deployment) -> int:
    fresh = {
        provider: _fresh(b64decode(sealed), seal_context(str(row.pk), provider))
        for provider, sealed in row.sealed_keys.items()
    }
    resealed = {provider: b64encode(sealed).decode() for provider, sealed in fresh.items() if sealed is not None}
    if resealed:
        row.sealed_keys = {**row.sealed_keys, **resealed}
        row.save(update_fields=["sealed_keys"])
    return len(resealed)


def _fresh(sealed: bytes, belongs_to: str) -> bytes | None:
    """The value sealed with the current key; None if it already is, or if no key opens it."""
    if is_sealed_with_current_key(sealed, belongs_to=belongs_to):
        return None
    try:
        return seal_secret(unseal_secret(sealed, belongs_to=belongs_to), belongs_to=belongs_to)
    # A value that no key opens must not stop the rotation of all the others.
    except SilasError:
        return None
