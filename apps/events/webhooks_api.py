"""REST API of webhooks beside their settings: another secret, a test, and events once more."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from apps.autonomy.api.requests import acting_user
from apps.autonomy.services.webhooks import rotate_secret
from apps.events import webhooks
from apps.tenants.api_auth import OWNERS_REFUSALS, OwnersView, RequestSerializer, uncached, validated
from apps.tenants.enums import KeyScope
from kernel.tenancy import tenant_scope

_REFUSALS: dict[int, object] = {
    **OWNERS_REFUSALS,
    400: OpenApiResponse(description="`invalid`: a field is wrong"),
    404: OpenApiResponse(description="`not_found`: unknown or foreign"),
}


class RotateRequest(RequestSerializer):
    overlap_hours = serializers.IntegerField(
        default=24, min_value=0, max_value=168, help_text="How long the secret before signs as well"
    )


class RotateAnswer(serializers.Serializer[object]):
    secret = serializers.CharField(help_text="Shown once")
    previous_until = serializers.DateTimeField(help_text="Until then the secret before signs as well")


class TestAnswer(serializers.Serializer[object]):
    delivery = serializers.UUIDField(help_text="See the deliveries of the webhook for its outcome")


class ReplayRequest(RequestSerializer):
    after = serializers.IntegerField(min_value=0, help_text="The `id` in the stream before the first event to send")
    until = serializers.IntegerField(min_value=0, help_text="The `id` of the last event to send")


class ReplayAnswer(serializers.Serializer[object]):
    events = serializers.IntegerField(help_text=f"How many are sent again, at most {webhooks.MOST_REPLAYED}")


class _WebhookView(OwnersView):
    reading, writing = KeyScope.AUTOMATIONS_READ, KeyScope.AUTOMATIONS_WRITE


class RotateSecret(_WebhookView):
    answers_secret = True

    @extend_schema(
        operation_id="webhooks_rotate_secret",
        tags=["webhooks"],
        request=RotateRequest,
        responses={200: RotateAnswer, **_REFUSALS},
    )
    def post(self, request: Request, webhook_id: UUID) -> Response:
        """Give a webhook another secret. For a while deliveries are signed with both."""
        overlap = timedelta(hours=validated(RotateRequest, request.data)["overlap_hours"])
        with tenant_scope(self.caller.tenant_id):
            hook, secret = rotate_secret(webhook_id, user=acting_user(self.caller), overlap=overlap)
            return uncached(RotateAnswer({"secret": secret, "previous_until": hook.previous_until}).data)


class SendTest(_WebhookView):
    @extend_schema(
        operation_id="webhooks_test", tags=["webhooks"], request=None, responses={202: TestAnswer, **_REFUSALS}
    )
    def post(self, request: Request, webhook_id: UUID) -> Response:
        """Post a `webhook.test` event to a webhook."""
        with tenant_scope(self.caller.tenant_id):
            row = webhooks.send_test(webhook_id, user=acting_user(self.caller))
            return uncached(TestAnswer({"delivery": row.pk}).data, status.HTTP_202_ACCEPTED)


class Replay(_WebhookView):
    @extend_schema(
        operation_id="webhooks_replay",
        tags=["webhooks"],
        request=ReplayRequest,
        responses={202: ReplayAnswer, **_REFUSALS},
    )
    def post(self, request: Request, webhook_id: UUID) -> Response:
        """Post events once more to a webhook, with the same `webhook-id`."""
        data = validated(ReplayRequest, request.data)
        with tenant_scope(self.caller.tenant_id):
            count = webhooks.replay(webhook_id, **data, user=acting_user(self.caller))
            return uncached(ReplayAnswer({"events": count}).data, status.HTTP_202_ACCEPTED)
