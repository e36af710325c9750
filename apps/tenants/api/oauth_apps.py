"""REST API of apps of third parties, for owners and credentials with the scopes `api_keys:*`.

A secret is in the answer that registers an app or replaces its secret, and nowhere else. No credential gives an app
more rights than its own.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from apps.tenants.api.api_keys import require_rights
from apps.tenants.api_auth import (
    IF_MATCH,
    OWNERS_REFUSALS,
    OwnersView,
    PageRequest,
    RequestSerializer,
    require_unchanged,
    uncached,
    validated,
    with_etag,
)
from apps.tenants.enums import KeyScope
from apps.tenants.models import OAuthApp
from apps.tenants.oauth import services
from apps.tenants.rules import APP_SCOPES, LONGEST_REDIRECT, MOST_REDIRECTS
from kernel.tenancy import tenant_scope

SCOPES = [(scope.value, scope.label) for scope in APP_SCOPES]
_REFUSALS: dict[int, Any] = {**OWNERS_REFUSALS, 404: OpenApiResponse(description="`not_found`")}


class OAuthAppAnswer(serializers.Serializer[Any]):
    id = serializers.UUIDField(help_text="Its `client_id`")
    name = serializers.CharField()
    redirect_uris = serializers.ListField(child=serializers.CharField())
    scopes = serializers.ListField(child=serializers.CharField(), help_text="The most it can ask for")
    is_confidential = serializers.BooleanField(help_text="Whether it has a secret")
    is_self_registered = serializers.BooleanField(help_text="Whether it registered itself, as an MCP client")
    created_at = serializers.DateTimeField()
    revoked_at = serializers.DateTimeField(allow_null=True)


class NewOAuthAppAnswer(serializers.Serializer[Any]):
    app = OAuthAppAnswer()
    secret = serializers.CharField(help_text="Its `client_secret`, shown only here; empty for a public app")


class OAuthAppsAnswer(serializers.Serializer[Any]):
    apps = OAuthAppAnswer(many=True)
    next = serializers.CharField(help_text="`before` of the next page; empty at the end")


class NewOAuthAppRequest(RequestSerializer):
    name = serializers.CharField(max_length=80)
    redirect_uris = serializers.ListField(
        child=serializers.CharField(max_length=LONGEST_REDIRECT),
        required=False,
        default=list,
        max_length=MOST_REDIRECTS,
        help_text="`https://…`, or `http://127.0.0.1/…` for a program on the member's computer",
    )
    scopes = serializers.ListField(child=serializers.ChoiceField(choices=SCOPES), max_length=len(SCOPES))
    is_confidential = serializers.BooleanField(
        default=False, help_text="With a secret: for programs on a server that can keep one"
    )


class OAuthAppChange(RequestSerializer):
    name = serializers.CharField(max_length=80, required=False)
    redirect_uris = serializers.ListField(
        child=serializers.CharField(max_length=LONGEST_REDIRECT), required=False, max_length=MOST_REDIRECTS
    )
    scopes = serializers.ListField(
        child=serializers.ChoiceField(choices=SCOPES), max_length=len(SCOPES), required=False
    )


class OAuthApps(OwnersView):
    answers_secret = True
    reading, writing = KeyScope.API_KEYS_READ, KeyScope.API_KEYS_WRITE

    @extend_schema(
        operation_id="oauth_apps_list",
        tags=["OAuth apps"],
        parameters=[PageRequest],
        responses={200: OAuthAppsAnswer, 400: OpenApiResponse(description="`invalid`"), **OWNERS_REFUSALS},
    )
    def get(self, request: Request) -> Response:
        """List apps, newest first, with revoked ones."""
        values = validated(PageRequest, request.query_params)
        with tenant_scope(self.caller.tenant_id):
            rows, following = services.page_of_apps(**values)
            return uncached(OAuthAppsAnswer({"apps": rows, "next": following}).data)

    @extend_schema(
        operation_id="oauth_apps_create",
        tags=["OAuth apps"],
        request=NewOAuthAppRequest,
        responses={
            201: NewOAuthAppAnswer,
            400: OpenApiResponse(description="`invalid`"),
            422: OpenApiResponse(description="`oauth_redirect_invalid`, `oauth_scopes_invalid`"),
            **OWNERS_REFUSALS,
        },
    )
    def post(self, request: Request) -> Response:
        """Register an app with at most the caller's rights."""
        values = validated(NewOAuthAppRequest, request.data)
        require_rights(self.caller, values["scopes"], None)
        with tenant_scope(self.caller.tenant_id):
            created = services.register_app(
                values["name"],
                redirect_uris=values["redirect_uris"],
                scopes=values["scopes"],
                is_confidential=values["is_confidential"],
                actor=self.caller.actor,
            )
            return uncached(NewOAuthAppAnswer(created).data, status.HTTP_201_CREATED)


class OneOAuthApp(OwnersView):
    reading, writing = KeyScope.API_KEYS_READ, KeyScope.API_KEYS_WRITE

    @extend_schema(operation_id="oauth_apps_read", tags=["OAuth apps"], responses={200: OAuthAppAnswer, **_REFUSALS})
    def get(self, request: Request, app_id: UUID) -> Response:
        with tenant_scope(self.caller.tenant_id):
            return _shown(services.get_app(app_id))

    @extend_schema(
        operation_id="oauth_apps_change",
        tags=["OAuth apps"],
        request=OAuthAppChange,
        parameters=[IF_MATCH],
        responses={
            200: OAuthAppAnswer,
            400: OpenApiResponse(description="`invalid`"),
            409: OpenApiResponse(description="`oauth_app_ended`: it is revoked"),
            412: OpenApiResponse(description="`changed_meanwhile`: not at the version of `If-Match`"),
            422: OpenApiResponse(description="`oauth_redirect_invalid`, `oauth_scopes_invalid`"),
            **_REFUSALS,
        },
    )
    def patch(self, request: Request, app_id: UUID) -> Response:
        """Change what is named. Scopes that are taken away end at once in every token; for new ones members have to
        consent again. The caller needs the scopes from before and after."""
        values = validated(OAuthAppChange, request.data)
        with tenant_scope(self.caller.tenant_id):
            app = services.get_app(app_id, lock=True)
            require_unchanged(request, OAuthAppAnswer(app).data)
            require_rights(self.caller, [*app.scopes, *values.get("scopes", [])], None)
            return _shown(services.change_app(app, actor=self.caller.actor, **values))

    @extend_schema(operation_id="oauth_apps_revoke", tags=["OAuth apps"], responses={204: None, **_REFUSALS})
    def delete(self, request: Request, app_id: UUID) -> Response:
        """Revoke an app with all its tokens at once. It stays in the list."""
        with tenant_scope(self.caller.tenant_id):
            services.revoke_app(app_id, actor=self.caller.actor)
        return Response(status=status.HTTP_204_NO_CONTENT)


def _shown(app: OAuthApp) -> Response:
    return with_etag(OAuthAppAnswer(app).data)


class NewSecret(OwnersView):
    answers_secret = True
    reading, writing = KeyScope.API_KEYS_READ, KeyScope.API_KEYS_WRITE

    @extend_schema(
        operation_id="oauth_apps_replace_secret",
        tags=["OAuth apps"],
        request=None,
        responses={
            200: NewOAuthAppAnswer,
            409: OpenApiResponse(description="`oauth_app_ended`: it is revoked, or has no secret"),
            **_REFUSALS,
        },
    )
    def post(self, request: Request, app_id: UUID) -> Response:
        """Replace the secret of an app. The one before ends at once."""
        with tenant_scope(self.caller.tenant_id):
            app = services.get_app(app_id)
            require_rights(self.caller, app.scopes, None)
            return uncached(NewOAuthAppAnswer(services.replace_secret(app.pk, actor=self.caller.actor)).data)
