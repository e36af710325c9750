"""Authenticate MCP callers by API key, on every request, so that a revoked key stops working at once."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from apps.safety.schemas import Principal
from apps.tenants.enums import KeyScope
from apps.tenants.queries import api_key
from kernel.errors import SilasError
from kernel.language import gettext


@dataclass(frozen=True)
class Caller:
    """Tenant and principal of an API key."""

    tenant_id: UUID
    principal: Principal


def authenticate_key(key: str) -> Caller:
    """Look the key up. Raises 401 `not_authenticated` if it is unknown or revoked, 403 `forbidden_scope` if it may not
    report."""
    row = api_key(key)
    if row is None:
        raise SilasError("not_authenticated", gettext("This API key is not known here."), status=401)
    if row.scopes and KeyScope.SAFETY_AGENT not in row.scopes:
        raise SilasError("forbidden_scope", gettext("This API key may not do this."), status=403)
    principal = Principal(f"api_key:{row.pk}", may_confirm=KeyScope.SAFETY_CONFIRM in row.scopes)
    return Caller(row.tenant_id, principal)
