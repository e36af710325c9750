"""API views of settings and webhooks, for owners and API keys."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from apps.autonomy import overview, queries, services
from apps.autonomy.api.requests import acting_user, answer, validated, validated_query
from apps.autonomy.api.serializers import (
    INVALID,
    REFUSALS,
    DeliveryAnswer,
    NewWebhook,
    PageRequest,
    SettingsChange,
    WebhookAnswer,
    WebhookRequest,
)
from apps.tenants.api_auth import OwnersView
from kernel.tenancy import tenant_scope


class Settings(OwnersView):
    """Settings of automations. A change takes effect at once, without a restart (spec 003)."""

    @extend_schema(operation_id="scheduler_read", tags=["tasks"], responses={200: SettingsChange, **REFUSALS})
    def get(self, request: Request) -> Response:
        with tenant_scope(self.caller.tenant_id):
            return answer(_settings())

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
            return answer(_settings())


class Webhooks(OwnersView):
    """Webhooks for `task:*` events. The secret of a new one is in this response only."""

    @extend_schema(
        operation_id="webhooks_list", tags=["webhooks"], responses={200: WebhookAnswer(many=True), **REFUSALS}
    )
    def get(self, request: Request) -> Response:
        with tenant_scope(self.caller.tenant_id):
            return answer([WebhookAnswer(row).data for row in reversed(overview.webhooks())])

    @extend_schema(
        operation_id="webhooks_create",
        tags=["webhooks"],
        request=WebhookRequest,
        responses={201: NewWebhook, **REFUSALS, **INVALID},
    )
    def post(self, request: Request) -> Response:
        data = validated(WebhookRequest, request.data)
        with tenant_scope(self.caller.tenant_id):
            webhook, secret = services.save_webhook(data["url"], user=acting_user(self.caller), events=data["events"])
            return answer({**WebhookAnswer(webhook).data, "secret": secret}, status.HTTP_201_CREATED)


class WebhookDetail(OwnersView):
    """Delete a webhook."""

    @extend_schema(operation_id="webhooks_delete", tags=["webhooks"], responses={204: None, **REFUSALS})
    def delete(self, request: Request, webhook_id: UUID) -> Response:
        with tenant_scope(self.caller.tenant_id):
            services.delete_webhook(webhook_id, user=acting_user(self.caller))
        return Response(status=status.HTTP_204_NO_CONTENT)


class Deliveries(OwnersView):
    """Deliveries to a webhook, newest first."""

    @extend_schema(
        operation_id="webhooks_deliveries",
        tags=["webhooks"],
        parameters=[PageRequest],
        responses={200: DeliveryAnswer(many=True), **REFUSALS, 400: INVALID[400]},
    )
    def get(self, request: Request, webhook_id: UUID) -> Response:
        page = validated_query(request, PageRequest)
        with tenant_scope(self.caller.tenant_id):
            rows = overview.deliveries(page["limit"], offset=page["offset"], webhook_id=webhook_id)
            return answer([DeliveryAnswer(row).data for row in rows])


def _settings() -> dict[str, Any]:
    row = queries.autonomy_settings()
    return {name: getattr(row, name) for name in SettingsChange().get_fields()}
