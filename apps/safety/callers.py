"""Who asks by MCP? The API key says; a key that was good a moment ago is presumed to be, and made sure of.

Presuming it spares a round trip of its own: whoever acts for a presumed caller makes sure of the key in the same
transaction, and nothing is told outside before somebody has (ADR 67). A key that was
never seen here is looked up first.
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from apps.safety.schemas import Principal
from apps.tenants.enums import KeyScope
from apps.tenants.queries import api_key
from kernel.canonical import sha256_hex
from kernel.errors import SilasError

_MOST_KNOWN = 1024
_known: dict[str, Caller] = {}


@dataclass(frozen=True)
class Caller:
    """Who asks, as the API key of this id says."""

    tenant_id: UUID
    principal: Principal
    key_id: UUID


class Asking:
    """One request with its key. `is_sure`: in its course the key was found to be good."""

    def __init__(self, key: str) -> None:
        self._key = key
        self._hashed = sha256_hex(key)
        self._found: Caller | None = None
        self.is_sure = False

    def presumed(self) -> Caller | None:
        """Whose key it was when it was looked up last."""
        return self._found or _known.get(self._hashed)

    def certain(self) -> Caller:
        """Whose key it is. Raises 401 `not_authenticated`, 403 `forbidden_scope`."""
        if self._found is None:
            _known.pop(self._hashed, None)
            self._found = _caller(self._key)
            if len(_known) >= _MOST_KNOWN:
                _known.clear()
            _known[self._hashed] = self._found
            self.is_sure = True
        return self._found


def _caller(key: str) -> Caller:
    row = api_key(key)
    if row is None:
        raise SilasError("not_authenticated", "This API key is not known here.", status=401)
    if row.scopes and KeyScope.SAFETY_AGENT not in row.scopes:
        raise SilasError("forbidden_scope", "This API key may not do this.", status=403)
    principal = Principal(f"api_key:{row.pk}", may_confirm=KeyScope.SAFETY_CONFIRM in row.scopes)
    return Caller(row.tenant_id, principal, row.pk)
