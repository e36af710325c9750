"""API views of settings and webhooks, for owners and API keys."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from apps.autonomy import overview, queries, services
from apps.autonomy.api.requests import acting_user
from apps.autonomy.api.serializers import (
    INVALID,
    REFUSALS,
    DeliveryAnswer,
    NewWebhook,
    PageRequest,
    SettingsChange,
    WebhookAnswer,
    WebhookEdit,
    WebhookRequest,
)
from apps.autonomy.services.webhooks import change_webhook, lock_webhook, scopes_of
from apps.tenants.api_auth import (
    IF_MATCH,
    OwnersView,
    require_scope,
    require_unchanged,
    uncached,
    validated,
    with_etag,
)
from apps.tenants.enums import KeyScope
from kernel.tenancy import tenant_scope


class Settings(OwnersView):
    """Settings of automations. A change takes effect at once, without a restart (spec 003)."""

    reading, writing = KeyScope.AUTOMATIONS_READ, KeyScope.AUTOMATIONS_WRITE

    @extend_schema(operation_id="scheduler_read", tags=["tasks"], responses={200: SettingsChange, **REFUSALS})
    def get(self, request: Request) -> Response:
        with tenant_scope(self.caller.tenant_id):
            return uncached(_settings())

    @extend_schema(
        operation_id="scheduler_change",
        tags=["tasks"],
        request=SettingsChange,
        responses={200: SettingsChange, **REFUSALS, **INVALID},
    )
    def patch(self, request: Request) -> Response:
        changes = validated(SettingsChange, request.data)
        with tenant_scope(self.caller.tenant_id):
            services.change_settings(user=acting_user(self.caller), **changes)
            return uncached(_settings())


class Webhooks(OwnersView):
    """Webhooks for events. The secret of a new one is in this response only."""

    reading, writing = KeyScope.AUTOMATIONS_READ, KeyScope.AUTOMATIONS_WRITE
    answers_secret = True

    @extend_schema(
        operation_id="webhooks_list", tags=["webhooks"], responses={200: WebhookAnswer(many=True), **REFUSALS}
    )
    def get(self, request: Request) -> Response:
        with tenant_scope(self.caller.tenant_id):
            return uncached([WebhookAnswer(row).data for row in reversed(overview.webhooks())])

    @extend_schema(
        operation_id="webhooks_create",
        tags=["webhooks"],
        request=WebhookRequest,
        responses={201: NewWebhook, **REFUSALS, **INVALID},
    )
    def post(self, request: Request) -> Response:
        data = validated(WebhookRequest, request.data)
        for scope in sorted(scopes_of(data["events"])):
            require_scope(self.caller, scope)
        with tenant_scope(self.caller.tenant_id):
            webhook, secret = services.save_webhook(data["url"], user=acting_user(self.caller), events=data["events"])
            return uncached({**WebhookAnswer(webhook).data, "secret": secret}, status.HTTP_201_CREATED)


class WebhookDetail(OwnersView):
    """Read, change or delete a webhook."""

    reading, writing = KeyScope.AUTOMATIONS_READ, KeyScope.AUTOMATIONS_WRITE

    @extend_schema(operation_id="webhooks_get", tags=["webhooks"], responses={200: WebhookAnswer, **REFUSALS})
    def get(self, request: Request, webhook_id: UUID) -> Response:
        with tenant_scope(self.caller.tenant_id):
            return with_etag(WebhookAnswer(lock_webhook(webhook_id)).data)

    @extend_schema(
        operation_id="webhooks_change",
        tags=["webhooks"],
        request=WebhookEdit,
        parameters=[IF_MATCH],
        responses={
            200: WebhookAnswer,
            **REFUSALS,
            **INVALID,
            412: OpenApiResponse(description="`changed_meanwhile`: not at the version of `If-Match`"),
        },
    )
    def patch(self, request: Request, webhook_id: UUID) -> Response:
        """Change where or about what it is told, or turn it off and on. Its secret stays."""
        changes = validated(WebhookEdit, request.data)
        with tenant_scope(self.caller.tenant_id):
            hook = lock_webhook(webhook_id)
            for scope in sorted(scopes_of(changes.get("events", hook.events))):
                require_scope(self.caller, scope)
            require_unchanged(request, WebhookAnswer(hook).data)
            hook = change_webhook(hook, user=acting_user(self.caller), **changes)
            return with_etag(WebhookAnswer(hook).data)

    @extend_schema(operation_id="webhooks_delete", tags=["webhooks"], responses={204: None, **REFUSALS})
    def delete(self, request: Request, webhook_id: UUID) -> Response:
        with tenant_scope(self.caller.tenant_id):
            services.delete_webhook(webhook_id, user=acting_user(self.caller))
        return Response(status=status.HTTP_204_NO_CONTENT)


class Deliveries(OwnersView):
    """Deliveries to a webhook, newest first."""

    reading, writing = KeyScope.AUTOMATIONS_READ, KeyScope.AUTOMATIONS_WRITE

    @extend_schema(
        operation_id="webhooks_deliveries",
        tags=["webhooks"],
        parameters=[PageRequest],
        responses={200: DeliveryAnswer(many=True), **REFUSALS, 400: INVALID[400]},
    )
    def get(self, request: Request, webhook_id: UUID) -> Response:
        page = validated(PageRequest, request.query_params)
        with tenant_scope(self.caller.tenant_id):
            rows = overview.deliveries(page["limit"], offset=page["offset"], webhook_id=webhook_id)
            return uncached([DeliveryAnswer(row).data for row in rows])


def _settings() -> dict[str, Any]:
    row = queries.autonomy_settings()
    return {name: getattr(row, name) for name in SettingsChange().get_fields()}
