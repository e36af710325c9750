"""Authenticate REST API requests: by a tenant's API key, or as a member who is logged in to the console.

An API key without scopes has the rights of an owner. A login session needs Django's CSRF token for every change. All
other requests are refused before anything is read; the tenant is never taken from the request's body.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework import serializers
from rest_framework.authentication import BaseAuthentication, SessionAuthentication
from rest_framework.request import Request
from rest_framework.views import APIView

from apps.tenants import access
from apps.tenants.enums import Capability, KeyScope, Role
from apps.tenants.models import ApiKey
from apps.tenants.queries import api_key
from apps.tenants.rules import TENANT_IN_SESSION, forbidden_role, roles_with
from apps.tenants.services import note_api_key_use
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.language import gettext


@dataclass(frozen=True)
class Caller:
    """The tenant of a request and its actor in the audit log; `user` is None for an API key."""

    tenant_id: UUID
    actor: str
    user: Any = None
    scopes: tuple[str, ...] = ()


# Base class of request bodies. Unknown fields are refused by name: a misspelt one that is ignored would leave the
# caller
# believing in a limit that was never set. (A docstring would be repeated in the schema of every subclass.)
class RequestSerializer(serializers.Serializer[Any]):
    def to_internal_value(self, data: Any) -> Any:
        unknown = sorted(set(data) - set(self.fields)) if isinstance(data, Mapping) else []
        if unknown:
            raise serializers.ValidationError({name[:80]: ["Unknown field."] for name in unknown}, "unknown")
        return super().to_internal_value(data)


class ApiKeyAuthentication(BaseAuthentication):
    """Authenticate `Authorization: Bearer sk_...`. An invalid key is refused, even in the session of a member."""

    def authenticate(self, request: Request) -> tuple[Any, ApiKey] | None:
        scheme, _, key = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            return None
        row = api_key(key.strip())
        if row is None:
            raise SilasError(ErrorCode.NOT_AUTHENTICATED, gettext("Invalid API key."))
        note_api_key_use(row)
        return None, row

    def authenticate_header(self, request: Request) -> str:
        return "Bearer"


class ApiKeyScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]  # registers itself
    """Describes API keys in the OpenAPI schema."""

    target_class = ApiKeyAuthentication
    name = "apiKey"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer", "description": "A tenant's API key, sk_..."}


class OwnersView(APIView):
    """Base view for owners and API keys. `caller` is set before any handler runs."""

    authentication_classes = (ApiKeyAuthentication, SessionAuthentication)
    caller: Caller

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        self.caller = _caller(request)


class MembersView(APIView):
    """Base view for API keys and all members; the services check what a member may change."""

    authentication_classes = (ApiKeyAuthentication, SessionAuthentication)
    caller: Caller

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        self.caller = _caller(request, roles=roles_with(Capability.LOOK))


def member_caller(request: Request) -> Caller:
    """The logged-in member of any role; the services check what they may do. Raises as `_caller`."""
    return _caller(request, roles=roles_with(Capability.LOOK))


def api_key_caller(request: Request, scope: KeyScope) -> Caller:
    """The caller of an API key with this scope, or without any scopes. Raises as `_caller`."""
    if not isinstance(request.auth, ApiKey):
        raise SilasError(ErrorCode.NOT_AUTHENTICATED, gettext("An API key is required."))
    if request.auth.scopes and scope not in request.auth.scopes:
        raise _not_in_scope()
    return Caller(request.auth.tenant_id, f"api_key:{request.auth.pk}", scopes=tuple(request.auth.scopes))


def _not_in_scope() -> SilasError:
    return SilasError(ErrorCode.FORBIDDEN_SCOPE, gettext("This API key does not have the required scope."))


def _caller(request: Request, *, roles: tuple[Role, ...] = roles_with(Capability.ADMINISTER)) -> Caller:
    """Raises 401 `not_authenticated`, and 403 `forbidden_role` for strangers and members with other roles,
    `forbidden_scope` for a key with scopes, and `second_factor_required`."""
    if isinstance(request.auth, ApiKey):
        if request.auth.scopes:
            raise _not_in_scope()
        return Caller(request.auth.tenant_id, f"api_key:{request.auth.pk}")
    if request.user is None or not request.user.is_authenticated:
        raise SilasError(ErrorCode.NOT_AUTHENTICATED, gettext("Authentication required: an API key or a login."))
    opened = request.session.get(TENANT_IN_SESSION, "")
    memberships = access.memberships_in(request.session, request.user)
    selected = next((row for row in memberships if str(row.tenant_id) == opened), None) or next(iter(memberships), None)
    if selected is None or selected.role not in roles:
        raise forbidden_role(roles)
    access.require_second_factor(request.session, request.user, selected.tenant)
    return Caller(selected.tenant_id, f"user:{request.user.pk}", request.user)
