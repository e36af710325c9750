"""Find out who calls by MCP from the API key, anew in every request: a revoked key counts at once."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from apps.safety.schemas import Principal
from apps.tenants.enums import KeyScope
from apps.tenants.queries import api_key
from kernel.errors import SilasError


@dataclass(frozen=True)
class Caller:
    """The tenant and the principal that an API key stands for."""

    tenant_id: UUID
    principal: Principal


def caller_of(key: str) -> Caller:
    """Look the key up. Raises 401 `not_authenticated` if it is unknown or revoked, 403 `forbidden_scope` if it may not
    report."""
    row = api_key(key)
    if row is None:
        raise SilasError("not_authenticated", "This API key is not known here.", status=401)
    if row.scopes and KeyScope.SAFETY_AGENT not in row.scopes:
        raise SilasError("forbidden_scope", "This API key may not do this.", status=403)
    principal = Principal(f"api_key:{row.pk}", may_confirm=KeyScope.SAFETY_CONFIRM in row.scopes)
    return Caller(row.tenant_id, principal)
