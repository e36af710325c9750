"""Who asks the REST API, and for which tenant? A tenant's API key, or an owner who is logged in at the console.

An API key is made by owners and may what owners may. A login session needs Django's CSRF token for every change. All
else is refused before anything is read; the tenant is never taken from the request's body.
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
from kernel.errors import SilasError


@dataclass(frozen=True)
class Caller:
    """For which tenant somebody asks, and who that is in the audit log; `user` is None for an API key."""

    tenant_id: UUID
    actor: str
    user: Any = None
    scopes: tuple[str, ...] = ()


# What a caller sends. A field that is not known here is refused with its name: a misspelt one that is passed over would
# leave the caller believing in a limit that nobody set. (The schema would repeat a docstring for every shape.)
class RequestSerializer(serializers.Serializer[Any]):
    def to_internal_value(self, data: Any) -> Any:
        unknown = sorted(set(data) - set(self.fields)) if isinstance(data, Mapping) else []
        if unknown:
            raise serializers.ValidationError({name[:80]: ["This field is not known."] for name in unknown}, "unknown")
        return super().to_internal_value(data)


class ApiKeyAuthentication(BaseAuthentication):
    """`Authorization: Bearer sk_...`. A key that is given and no good is refused, whoever else is logged in."""

    def authenticate(self, request: Request) -> tuple[Any, ApiKey] | None:
        scheme, _, key = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            return None
        found = api_key(key.strip())
        if found is None:
            raise SilasError("not_authenticated", "This API key is not known here.", status=401)
        note_api_key_use(found)
        return None, found

    def authenticate_header(self, request: Request) -> str:
        return "Bearer"


class ApiKeyScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]  # registers itself
    """How the schema tells of API keys."""

    target_class = ApiKeyAuthentication
    name = "apiKey"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer", "description": "A tenant's API key, sk_..."}


class OwnersView(APIView):
    """A view of the REST API for owners and their API keys. `caller` is there before any handler runs."""

    authentication_classes = (ApiKeyAuthentication, SessionAuthentication)
    caller: Caller

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        self.caller = _caller(request)


class MembersView(APIView):
    """A view of the REST API for API keys and for every member; what a member may change, the services say."""

    authentication_classes = (ApiKeyAuthentication, SessionAuthentication)
    caller: Caller

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        self.caller = _caller(request, roles=roles_with(Capability.LOOK))


def member_caller(request: Request) -> Caller:
    """The member who is logged in, whatever their role; what they may, the services say. Raises as `_caller`."""
    return _caller(request, roles=roles_with(Capability.LOOK))


def api_key_caller(request: Request, scope: KeyScope) -> Caller:
    """Who asks with an API key that has this scope, or none at all. Raises as `_caller`."""
    if not isinstance(request.auth, ApiKey):
        raise SilasError("not_authenticated", "An API key is needed.", status=401)
    if request.auth.scopes and scope not in request.auth.scopes:
        raise _not_in_scope()
    return Caller(request.auth.tenant_id, f"api_key:{request.auth.pk}", scopes=tuple(request.auth.scopes))


def _not_in_scope() -> SilasError:
    return SilasError("forbidden_scope", "This API key may not do this.", status=403)


def _caller(request: Request, *, roles: tuple[Role, ...] = roles_with(Capability.ADMINISTER)) -> Caller:
    """Raises 401 `not_authenticated`, and 403 `forbidden_role` for strangers and members of other roles,
    `forbidden_scope` for a key that was narrowed to something else, and `second_factor_required`."""
    if isinstance(request.auth, ApiKey):
        if request.auth.scopes:
            raise _not_in_scope()
        return Caller(request.auth.tenant_id, f"api_key:{request.auth.pk}")
    if request.user is None or not request.user.is_authenticated:
        raise SilasError("not_authenticated", "An API key or an owner's login is needed.", status=401)
    opened = request.session.get(TENANT_IN_SESSION, "")
    mine = access.memberships_in(request.session, request.user)
    chosen = next((one for one in mine if str(one.tenant_id) == opened), None) or next(iter(mine), None)
    if chosen is None or chosen.role not in roles:
        raise forbidden_role(roles)
    access.require_second_factor(request.session, request.user, chosen.tenant)
    return Caller(chosen.tenant_id, f"user:{request.user.pk}", request.user)
