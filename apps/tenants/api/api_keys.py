"""REST API of API keys, for owners and credentials with the scopes `api_keys:*`.

A secret is in the answer that creates or rotates its key and nowhere else. No credential creates, rotates or revokes a
key with more rights than its own.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from apps.tenants import queries, services
from apps.tenants.api_auth import (
    OWNERS_REFUSALS,
    Caller,
    OwnersView,
    PageRequest,
    RequestSerializer,
    uncached,
    validated,
)
from apps.tenants.enums import KeyScope
from apps.tenants.models import ApiKey
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.language import gettext
from kernel.tenancy import tenant_scope

_REFUSALS: dict[int, Any] = {**OWNERS_REFUSALS, 404: OpenApiResponse(description="`not_found`")}


class ApiKeyAnswer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    name = serializers.CharField()
    prefix = serializers.CharField(help_text="The first characters of its secret")
    scopes = serializers.ListField(
        child=serializers.ChoiceField(choices=KeyScope.choices), help_text="Empty: the rights of an owner"
    )
    created_at = serializers.DateTimeField()
    last_used_at = serializers.DateTimeField(allow_null=True, help_text="Within five minutes")
    expires_at = serializers.DateTimeField(allow_null=True)
    revoked_at = serializers.DateTimeField(allow_null=True)
    previous_until = serializers.DateTimeField(allow_null=True, help_text="Until then the secret before is valid too")
    is_active = serializers.BooleanField()


class NewApiKeyAnswer(serializers.Serializer[Any]):
    api_key = ApiKeyAnswer(source="row")
    secret = serializers.CharField(source="key", help_text="Shown only here")


class ApiKeysAnswer(serializers.Serializer[Any]):
    api_keys = ApiKeyAnswer(many=True)
    next = serializers.CharField(help_text="`before` of the next page; empty at the end")


class NewApiKeyRequest(RequestSerializer):
    name = serializers.CharField(max_length=80)
    scopes = serializers.ListField(
        child=serializers.ChoiceField(choices=KeyScope.choices),
        required=False,
        default=list,
        max_length=len(KeyScope),
        help_text="Empty: the rights of an owner, which only a caller without scopes can give",
    )
    expires_at = serializers.DateTimeField(required=False, allow_null=True, default=None)


class RotationRequest(RequestSerializer):
    overlap_hours = serializers.IntegerField(
        required=False, default=0, min_value=0, max_value=168, help_text="How long the secret before stays valid"
    )


class ApiKeys(OwnersView):
    answers_secret = True
    reading, writing = KeyScope.API_KEYS_READ, KeyScope.API_KEYS_WRITE

    @extend_schema(
        operation_id="api_keys_list",
        tags=["API keys"],
        parameters=[PageRequest],
        responses={200: ApiKeysAnswer, 400: OpenApiResponse(description="`invalid`"), **OWNERS_REFUSALS},
    )
    def get(self, request: Request) -> Response:
        """List API keys, newest first, with revoked and expired ones."""
        values = validated(PageRequest, request.query_params)
        with tenant_scope(self.caller.tenant_id):
            rows, following = queries.page_of_api_keys(**values)
            return uncached(ApiKeysAnswer({"api_keys": rows, "next": following}).data)

    @extend_schema(
        operation_id="api_keys_create",
        tags=["API keys"],
        request=NewApiKeyRequest,
        responses={
            201: NewApiKeyAnswer,
            400: OpenApiResponse(description="`invalid`"),
            422: OpenApiResponse(description="`invalid_expiry`: the time has passed"),
            **OWNERS_REFUSALS,
        },
    )
    def post(self, request: Request) -> Response:
        """Create an API key with at most the caller's rights."""
        values = validated(NewApiKeyRequest, request.data)
        require_rights(self.caller, values["scopes"], values["expires_at"])
        with tenant_scope(self.caller.tenant_id):
            created = services.create_api_key(
                values["name"],
                scopes={KeyScope(scope) for scope in values["scopes"]},
                expires_at=values["expires_at"],
                actor=self.caller.actor,
            )
            return uncached(NewApiKeyAnswer(created).data, status.HTTP_201_CREATED)


class OneApiKey(OwnersView):
    reading, writing = KeyScope.API_KEYS_READ, KeyScope.API_KEYS_WRITE

    @extend_schema(operation_id="api_keys_read", tags=["API keys"], responses={200: ApiKeyAnswer, **_REFUSALS})
    def get(self, request: Request, key_id: UUID) -> Response:
        with tenant_scope(self.caller.tenant_id):
            return uncached(ApiKeyAnswer(queries.get_api_key(key_id)).data)

    @extend_schema(operation_id="api_keys_revoke", tags=["API keys"], responses={204: None, **_REFUSALS})
    def delete(self, request: Request, key_id: UUID) -> Response:
        """Revoke an API key at once. It stays in the list."""
        with tenant_scope(self.caller.tenant_id):
            row = _key_within_rights(self.caller, key_id)
            services.revoke_api_key(row, actor=self.caller.actor)
        return Response(status=status.HTTP_204_NO_CONTENT)


class RotateApiKey(OwnersView):
    answers_secret = True
    reading, writing = KeyScope.API_KEYS_READ, KeyScope.API_KEYS_WRITE

    @extend_schema(
        operation_id="api_keys_rotate",
        tags=["API keys"],
        request=RotationRequest,
        responses={
            200: NewApiKeyAnswer,
            400: OpenApiResponse(description="`invalid`"),
            409: OpenApiResponse(description="`api_key_ended`: it is revoked or expired"),
            **_REFUSALS,
        },
    )
    def post(self, request: Request, key_id: UUID) -> Response:
        """Replace the secret. The one before stays valid for `overlap_hours`."""
        overlap = timedelta(hours=validated(RotationRequest, request.data)["overlap_hours"])
        with tenant_scope(self.caller.tenant_id):
            row = _key_within_rights(self.caller, key_id)
            return uncached(
                NewApiKeyAnswer(services.rotate_api_key(row, overlap=overlap, actor=self.caller.actor)).data
            )


def require_rights(caller: Caller, scopes: Collection[str], expires_at: datetime | None) -> None:
    """Raises 403 `forbidden_scope` if a key with these scopes and this end could do what the caller cannot."""
    excess = next((scope for scope in sorted(scopes) if not caller.has_scope(KeyScope(scope))), None)
    outlives = caller.expires_at is not None and (expires_at is None or expires_at > caller.expires_at)
    if excess is None and not outlives and (scopes or not caller.is_limited):
        return
    message = gettext("A key can't have more rights, or last longer, than the credential that creates or changes it.")
    raise SilasError(ErrorCode.FORBIDDEN_SCOPE, message, extra={"scope": excess or ""})


def _key_within_rights(caller: Caller, key_id: UUID) -> ApiKey:
    """The tenant's key with this id. Raises `NotFound` and as `require_rights`: a key may revoke and rotate itself."""
    row = queries.get_api_key(key_id)
    if caller.actor != f"api_key:{row.pk}":
        require_rights(caller, row.scopes, row.expires_at)
    return row
