"""Authenticate REST API requests: by a bearer credential of a program, or as a member who is logged in to the console.

`authenticate_bearer` turns a credential into a `Caller` and `authorize` checks its rights; other transports (MCP, A2A)
use the same two. An API key without scopes has the rights of an owner; every other credential may do what its scopes
name, and an app that acts for a member only what that member's role allows. A login session needs Django's CSRF token
for every change. All other requests are refused before anything is read; the tenant is never taken from the request's
body.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

from django.conf import settings
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse
from rest_framework import serializers, status
from rest_framework.authentication import BaseAuthentication, SessionAuthentication
from rest_framework.permissions import SAFE_METHODS
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.tenants import access, idempotency
from apps.tenants.enums import Capability, KeyScope, Role
from apps.tenants.oauth.services import token_holder
from apps.tenants.queries import api_key
from apps.tenants.rules import TENANT_IN_SESSION, forbidden_role, is_access_token, roles_with
from apps.tenants.services import note_api_key_use
from kernel.canonical import sha256_hex
from kernel.error_codes import ErrorCode
from kernel.errors import InvalidFields, SilasError
from kernel.language import gettext
from kernel.pagination import is_cursor
from kernel.ratelimit import fixed_window
from kernel.ratelimit.fixed_window import Limit
from kernel.tenancy import tenant_scope


@dataclass(frozen=True)
class Caller:
    """The tenant of a request and its actor in the audit log.

    `user` is the member who is logged in, or for whom an app acts with an OAuth token, with their `role`; None for an
    API key and for an app that acts for itself. `is_limited`: it may only do what `scopes` name. `expires_at`: when its
    credential ends by itself, if it does.
    """

    tenant_id: UUID
    actor: str
    user: Any = None
    role: Role | None = None
    scopes: tuple[str, ...] = ()
    is_limited: bool = False
    expires_at: datetime | None = None

    @property
    def api_key_id(self) -> UUID | None:
        """The API key of the request; None for a member and for other credentials."""
        kind, _, ref = self.actor.partition(":")
        return UUID(ref) if kind == "api_key" else None

    @property
    def person(self) -> Any:
        """The member who is logged in; None for every program, also for an app that acts for a member."""
        return None if self.is_limited else self.user

    def has_scope(self, scope: KeyScope | None) -> bool:
        return not self.is_limited or scope in self.scopes


# Base class of request bodies. Unknown fields are refused by name: a misspelt one that is ignored would leave the
# caller believing in a limit that was never set. (A docstring would be repeated in the schema of every subclass.)
class RequestSerializer(serializers.Serializer[Any]):
    def to_internal_value(self, data: Any) -> Any:
        unknown = sorted(set(data) - set(self.fields)) if isinstance(data, Mapping) else []
        if unknown:
            raise serializers.ValidationError({name[:80]: ["Unknown field."] for name in unknown}, "unknown")
        return super().to_internal_value(data)


class PersonAnswer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    name = serializers.CharField(source="display_name")


class PlaceAnswer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    title = serializers.CharField()


# Base class of the query of a list, newest first; `next` in its answer is `before` of the next page, "" at the end.
class PageRequest(RequestSerializer):
    before = serializers.CharField(required=False, allow_blank=True, default="", help_text="`next` of the page before")
    limit = serializers.IntegerField(default=50, min_value=1, max_value=200)

    def validate_before(self, value: str) -> str:
        if value and not is_cursor(value):
            raise serializers.ValidationError(gettext("Use the value of next from the page before."))
        return value


def validated(serializer: type[serializers.Serializer[Any]], data: Any) -> dict[str, Any]:
    """The validated fields of a request's body or query. Raises 400 `invalid`."""
    request = serializer(data=data)
    request.is_valid(raise_exception=True)
    return dict(request.validated_data)


def uncached(data: Any, code: int = status.HTTP_200_OK) -> Response:
    """A response that no browser or proxy stores."""
    return Response(data, status=code, headers={"Cache-Control": "no-store"})


def authenticate_bearer(token: str, *, audience: str = "") -> Caller:
    """The caller whose credential this is. Opens its own lookup scope, so call it outside of a tenant's scope.

    What the caller may do is for `authorize`. `audience` is the path of the resource for which an OAuth token must have
    been issued; empty for the REST API. Raises 401 `not_authenticated` for a credential that is unknown, expired or
    revoked.
    """
    if is_access_token(token):
        return _caller_of_token(token, audience)
    key = api_key(token)
    # One answer for unknown, expired and revoked keys: it does not tell which keys there are.
    if key is None:
        raise SilasError(ErrorCode.NOT_AUTHENTICATED, gettext("Invalid API key."))
    note_api_key_use(key)
    return Caller(
        key.tenant_id,
        f"api_key:{key.pk}",
        scopes=tuple(key.scopes),
        is_limited=bool(key.scopes),
        expires_at=key.expires_at,
    )


def _caller_of_token(token: str, audience: str) -> Caller:
    holder = token_holder(token, audience=audience)
    if holder is None:
        raise SilasError(ErrorCode.NOT_AUTHENTICATED, gettext("Invalid access token."))
    return Caller(
        holder.grant.tenant_id,
        f"oauth_grant:{holder.grant.pk}",
        user=holder.user,
        role=holder.role,
        scopes=holder.scopes,
        is_limited=True,
        expires_at=holder.expires_at,
    )


def authorize(caller: Caller, *, scope: KeyScope | None, roles: Collection[Role]) -> None:
    """Check that a caller with a bearer credential may do what needs this scope and, for a member, one of these roles.

    `scope` None: no scope gives the right, so that only a key without scopes has it. Raises 403 `forbidden_scope`,
    whose `extra.scope` names the scope, and `forbidden_role`.
    """
    require_scope(caller, scope)
    if caller.role is not None and caller.role not in roles:
        raise forbidden_role(roles)


def require_scope(caller: Caller, scope: KeyScope | None) -> None:
    """Raises 403 `forbidden_scope` for a limited caller without this scope."""
    if not caller.has_scope(scope):
        message = gettext("This API key does not have the required scope.")
        raise SilasError(ErrorCode.FORBIDDEN_SCOPE, message, extra={"scope": str(scope or "")})


def count_request(caller: Caller) -> fixed_window.Standing | None:
    """Count a request of a program; None where Redis is away."""
    limit = Limit(f"api:{caller.tenant_id}:{caller.actor}", settings.API_REQUESTS_A_MINUTE, 60)
    standing = fixed_window.try_count(limit, otherwise="api_request_not_counted")
    return None if isinstance(standing, fixed_window.Unavailable) else standing


def require_requests_left(standing: fixed_window.Standing | None) -> None:
    """Raises 429 `rate_limited` with `retry_after`."""
    if standing is not None and standing.left < 0:
        message = gettext("Too many requests with this credential. Please wait.")
        raise SilasError(ErrorCode.RATE_LIMITED, message, extra={"retry_after": math.ceil(standing.seconds)})


class BearerAuthentication(BaseAuthentication):
    """Authenticate `Authorization: Bearer …`. An invalid credential is refused, even in the session of a member."""

    def authenticate(self, request: Request) -> tuple[Any, Caller] | None:
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        return (None, authenticate_bearer(token.strip())) if scheme.lower() == "bearer" else None

    def authenticate_header(self, request: Request) -> str:
        return "Bearer"


class BearerScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]  # registers itself
    """Describes bearer credentials in the OpenAPI schema."""

    target_class = BearerAuthentication
    name = "apiKey"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer", "description": "An API key, sk_..., or an OAuth access token"}


# What a view for owners refuses, for its schema.
OWNERS_REFUSALS: dict[int, Any] = {
    401: OpenApiResponse(description="`not_authenticated`: no API key and no login"),
    403: OpenApiResponse(description="`forbidden_role`: not an owner; `forbidden_scope`: `extra.scope` is missing"),
}


# What a view of one resource, or of a list of them, refuses, for its schema.
RESOURCE_REFUSALS: dict[int, Any] = {
    400: OpenApiResponse(description="`invalid`: a field is wrong"),
    401: OpenApiResponse(description="`not_authenticated`: no API key and no login"),
    403: OpenApiResponse(description="`forbidden_role`; `forbidden_scope`: the key has other scopes"),
    404: OpenApiResponse(description="`not_found`: unknown or foreign"),
}
LONGEST_IDEMPOTENCY_KEY = 255
# What a repeated answer has beside its body.
_REPEATED_HEADERS = ("Cache-Control", "ETag", "Location")
# What a change with `If-Match` refuses besides, for its schema.
CHANGED_MEANWHILE: dict[int, Any] = {
    412: OpenApiResponse(description="`changed_meanwhile`: not at the version of `If-Match`"),
}
IF_MATCH = OpenApiParameter("If-Match", OpenApiTypes.STR, OpenApiParameter.HEADER, description="The ETag that was read")


def if_match_versions(request: Request) -> list[str]:
    """The versions that `If-Match` names; none without it and for `*`."""
    given = request.headers.get("If-Match", "").strip()
    return [] if given in ("", "*") else [tag.strip().strip('"') for tag in given.split(",")]


def with_etag(data: Any, code: int = status.HTTP_200_OK, *, of: Any = None) -> Response:
    """An uncached response whose ETag is of its data, or of the part `of` that can be edited."""
    response = uncached(data, code)
    response["ETag"] = f'"{_etag(data if of is None else of)}"'
    return response


def require_unchanged(request: Request, data: Any) -> None:
    """Raises 412 `changed_meanwhile` if `If-Match` names another version than that of `data`.

    `data` is what the ETag was made of, as it is now.
    """
    versions = if_match_versions(request)
    if versions and _etag(data) not in versions:
        raise SilasError(ErrorCode.CHANGED_MEANWHILE)


def _etag(data: Any) -> str:
    return sha256_hex(JSONRenderer().render(data))[:32]


class _Replayed(Exception):
    """Ends a request that has had its answer, which is this `response`."""

    def __init__(self, response: Response) -> None:
        self.response = response


class ApiView(APIView):
    """Base of the three views below. `reading` and `writing` are the scopes that a limited credential needs for safe
    and for other methods; without them it is refused. `caller` is set before any handler runs.

    Requests of programs are counted for each credential; the headers `RateLimit-*` say what is left. `fields` in the
    query of a GET, names separated by commas, leaves only these fields in the answer, or in each item of a list.

    A POST with an `Idempotency-Key` is carried out once (`idempotency`). `recognises_repeats`: the view's service knows
    by `once` or `request_digest` what it has carried out. `answers_secret`: the answer is not stored.
    """

    authentication_classes: tuple[type[BaseAuthentication], ...] = (BearerAuthentication, SessionAuthentication)
    capability = Capability.ADMINISTER
    reading: KeyScope | None = None
    writing: KeyScope | None = None
    recognises_repeats = False
    answers_secret = False
    caller: Caller
    request_digest = ""  # of the caller, the address and the idempotency key; empty without one
    _standing: fixed_window.Standing | None = None
    _fields: tuple[str, ...] = ()

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        self._count(request)
        self._take_fields(request)
        scope = self.reading if request.method in SAFE_METHODS else self.writing
        self.caller = _caller(request, roles=roles_with(self.capability), scope=scope)
        # Last: a request that is refused claims nothing.
        self._claim(request)

    @property
    def once(self) -> UUID:
        """The same for every request with the same idempotency key; a new one without a key."""
        return UUID(self.request_digest[:32]) if self.request_digest else uuid4()

    def handle_exception(self, exc: Exception) -> Response:
        return exc.response if isinstance(exc, _Replayed) else super().handle_exception(exc)

    def finalize_response(self, request: Request, response: Response, *args: Any, **kwargs: Any) -> Response:
        if (
            self._fields
            and response.status_code == status.HTTP_200_OK
            and isinstance(getattr(response, "data", None), dict)
        ):
            try:
                response.data = only_fields(response.data, self._fields)
            except SilasError as refusal:
                response = self.handle_exception(refusal)
        if self._standing is not None:
            response["RateLimit-Limit"] = str(self._standing.limit.most)
            response["RateLimit-Remaining"] = str(max(self._standing.left, 0))
            response["RateLimit-Reset"] = str(math.ceil(self._standing.seconds))
        if self.request_digest:
            self._settle(response)
        return super().finalize_response(request, response, *args, **kwargs)

    def _count(self, request: Request) -> None:
        """Raises 429 `rate_limited` with `retry_after`. Where Redis is away nothing is counted and nothing refused."""
        if isinstance(request.auth, Caller):
            self._standing = count_request(request.auth)
            require_requests_left(self._standing)

    def _take_fields(self, request: Request) -> None:
        """Remember `fields` of a GET and take it out of the query, which views check for unknown names."""
        django_request = request._request
        if request.method != "GET" or "fields" not in django_request.GET:
            return
        query = django_request.GET.copy()
        names = ",".join(query.pop("fields"))
        self._fields = tuple(name for each in names.split(",") if (name := each.strip()))
        django_request.GET = query  # type: ignore[assignment]  # a mutable copy of the same

    def _claim(self, request: Request) -> None:
        """Claim a POST with an idempotency key. Raises as `idempotency.claim`, and what ends a request that had its
        answer."""
        key = request.headers.get("Idempotency-Key", "")
        if request.method != "POST" or not key:
            return
        if len(key) > LONGEST_IDEMPOTENCY_KEY:
            raise SilasError(ErrorCode.INVALID, gettext("The idempotency key is too long."))
        digest = sha256_hex(f"{self.caller.actor} {request.get_full_path()} {key}")
        body_digest = _body_digest(request.data)
        with tenant_scope(self.caller.tenant_id):
            answer = idempotency.claim(digest, body_digest=body_digest, may_repeat=self.recognises_repeats)
        if answer is not None:
            headers = {**answer.headers, "Idempotent-Replayed": "true"}
            raise _Replayed(Response(answer.data, status=answer.status, headers=headers))
        self.request_digest = digest

    def _settle(self, response: Any) -> None:
        """Store the answer, or give the claim up; after a server error the outcome stays unknown."""
        if response.status_code >= status.HTTP_500_INTERNAL_SERVER_ERROR:
            return
        with tenant_scope(self.caller.tenant_id):
            # A refused request wrote nothing, so its key may be used again by a corrected one.
            if response.status_code >= status.HTTP_400_BAD_REQUEST:
                idempotency.give_up(self.request_digest)
                return
            keep = isinstance(response, Response) and not self.answers_secret
            body = JSONRenderer().render(response.data) if keep and response.data is not None else b"null"
            headers = {name: response[name] for name in _REPEATED_HEADERS if name in response}
            answer = idempotency.StoredAnswer(response.status_code, json.loads(body), headers)
            idempotency.store_answer(self.request_digest, answer, keep=keep)


def _body_digest(data: Any) -> str:
    """The digest of a parsed body: of the values, and of the content of files, in any order of their names."""

    def plain(value: Any) -> str:
        content = value if isinstance(value, bytes) else value.read()
        # The view reads the file after this.
        if not isinstance(value, bytes):
            value.seek(0)
        return sha256_hex(content)

    values = dict(data.lists()) if hasattr(data, "lists") else data
    return sha256_hex(json.dumps(values, sort_keys=True, default=plain))


def only_fields(data: dict[str, Any], names: Collection[str]) -> dict[str, Any]:
    """`data` with these fields alone: of each item where `data` is a page of a list, else of `data` itself. Raises 400
    `invalid` for a name that there is not."""
    lists = [name for name, value in data.items() if isinstance(value, list)]
    if "next" in data and len(lists) == 1:
        return {**data, lists[0]: [_picked(item, names) for item in data[lists[0]]]}
    return _picked(data, names)


def _picked(item: dict[str, Any], names: Collection[str]) -> dict[str, Any]:
    if unknown := sorted(set(names) - set(item)):
        raise InvalidFields({"fields": unknown})
    return {name: value for name, value in item.items() if name in names}


class OwnersView(ApiView):
    """Base view for owners and API keys."""


class MembersView(ApiView):
    """Base view for API keys and all members; the services check what a member may change."""

    capability = Capability.LOOK


class ScopedView(ApiView):
    """Base view for API keys and members with the view's `capability`."""


def member_caller(request: Request) -> Caller:
    """The logged-in member of any role; the services check what they may do. Raises as `_caller`."""
    return _caller(request, roles=roles_with(Capability.LOOK))


def api_key_caller(request: Request, scope: KeyScope) -> Caller:
    """The caller of an API key with this scope, or without any scopes. Raises as `_caller`."""
    if not isinstance(request.auth, Caller) or request.auth.api_key_id is None:
        raise SilasError(ErrorCode.NOT_AUTHENTICATED, gettext("An API key is required."))
    return _caller(request, scope=scope)


def _caller(
    request: Request,
    *,
    roles: tuple[Role, ...] = roles_with(Capability.ADMINISTER),
    scope: KeyScope | None = None,
) -> Caller:
    """Raises 401 `not_authenticated`, and 403 `forbidden_role` for strangers and members with other roles,
    `forbidden_scope` for a key with other scopes, and `second_factor_required`."""
    if isinstance(request.auth, Caller):
        authorize(request.auth, scope=scope, roles=roles)
        return request.auth
    if request.user is None or not request.user.is_authenticated:
        raise SilasError(ErrorCode.NOT_AUTHENTICATED, gettext("Authentication required: an API key or a login."))
    opened = request.session.get(TENANT_IN_SESSION, "")
    memberships = access.memberships_in(request.session, request.user)
    # The open company comes from the session and counts only while the person still is a member there.
    selected = next((row for row in memberships if str(row.tenant_id) == opened), None) or next(iter(memberships), None)
    if selected is None or selected.role not in roles:
        raise forbidden_role(roles)
    access.require_second_factor(request.session, request.user, selected.tenant)
    return Caller(selected.tenant_id, f"user:{request.user.pk}", request.user, Role(selected.role))
