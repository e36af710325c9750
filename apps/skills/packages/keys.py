"""The Ed25519 key with which a company signs its packages, sealed with `SILAS_SIGNING_KEY`.

It is made on first use by a web process. When the signing key no longer opens it, a new one follows, and what the old
one signed stays the company's own.
"""

from __future__ import annotations

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from django.conf import settings
from django.db import connection

from apps.skills.models import PackageKey
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.language import gettext
from kernel.seal import seal, unseal
from kernel.tenancy import current_tenant_id


def signing_key() -> Ed25519PrivateKey:
    """Return the key, inside a scope. Raises `SilasError("signing_key_missing")` in a process that may not sign."""
    if not settings.SILAS_SIGNING_KEY:
        raise SilasError(ErrorCode.SIGNING_KEY_MISSING, gettext("This process can't sign packages."))
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"package_key:{current_tenant_id()}"])
    opened = (_unseal(row) for row in PackageKey.objects.all())
    return next((key for key in opened if key), None) or _new()


def is_ours(public_key: str) -> bool:
    return bool(PackageKey.objects.filter(public_key=public_key).exists())


def _unseal(row: PackageKey) -> Ed25519PrivateKey | None:
    try:
        raw = unseal(settings.SILAS_SIGNING_KEY, bytes(row.sealed_private), belongs_to=_seal_context(row.public_key))
    except SilasError:
        return None
    return Ed25519PrivateKey.from_private_bytes(raw)


def _new() -> Ed25519PrivateKey:
    key = Ed25519PrivateKey.generate()
    public = key.public_key().public_bytes_raw().hex()
    sealed = seal(settings.SILAS_SIGNING_KEY, key.private_bytes_raw(), belongs_to=_seal_context(public))
    PackageKey.objects.create(public_key=public, sealed_private=sealed)
    return key


def _seal_context(public_key: str) -> str:
    return f"skill_package:{current_tenant_id()}:{public_key}"
