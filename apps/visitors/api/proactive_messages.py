"""REST API of a deployment's proactive messages, for owners and credentials with the scopes `deployments:*`."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from apps.tenants.api_auth import (
    CHANGED_MEANWHILE,
    IF_MATCH,
    RESOURCE_REFUSALS,
    OwnersView,
    RequestSerializer,
    require_unchanged,
    uncached,
    validated,
    with_etag,
)
from apps.tenants.enums import KeyScope
from apps.tenants.locks import lock_deployment
from apps.tenants.queries import deployment_by_id
from apps.visitors import proactive_messages
from apps.visitors.enums import Audience
from apps.visitors.models import ProactiveMessage
from apps.visitors.models.proactive_messages import MOST_DAYS, MOST_SECONDS
from kernel.language import LANGUAGES
from kernel.tenancy import tenant_scope

_SAVE_REFUSALS: dict[int, Any] = {
    **RESOURCE_REFUSALS,
    400: OpenApiResponse(description="`invalid`, `invalid_offers`: a field is wrong"),
}
_ANY_PAGE = "With `*` for any characters, as `/shop/*` or `shop.example.com/*`; empty for every page"


class ProactiveMessageAnswer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    text = serializers.CharField()
    page = serializers.CharField(help_text=_ANY_PAGE)
    seconds = serializers.IntegerField(help_text="On the page before it is shown")
    audience = serializers.ChoiceField(choices=Audience.choices)
    language = serializers.CharField(help_text="That the widget must speak; empty for any")
    repeat_days = serializers.IntegerField(help_text="After how many days it is shown again; 0 for once per visitor")
    is_active = serializers.BooleanField()
    answered_count = serializers.IntegerField(help_text="In how many conversations it was answered")


class ProactiveMessagesAnswer(serializers.Serializer[Any]):
    proactive_messages = ProactiveMessageAnswer(many=True)


class ProactiveMessageRequest(RequestSerializer):
    text = serializers.CharField(max_length=300)
    page = serializers.CharField(required=False, allow_blank=True, max_length=200, help_text=_ANY_PAGE)
    seconds = serializers.IntegerField(required=False, min_value=0, max_value=MOST_SECONDS)
    audience = serializers.ChoiceField(required=False, choices=Audience.choices)
    language = serializers.ChoiceField(required=False, allow_blank=True, choices=list(LANGUAGES))
    repeat_days = serializers.IntegerField(required=False, min_value=0, max_value=MOST_DAYS)
    is_active = serializers.BooleanField(required=False, help_text="Off unless you say otherwise")


class ProactiveMessageChange(ProactiveMessageRequest):
    """What is not named stays."""

    text = serializers.CharField(max_length=300, required=False)


class _ProactiveMessageView(OwnersView):
    reading, writing = KeyScope.DEPLOYMENTS_READ, KeyScope.DEPLOYMENTS_WRITE


class ProactiveMessages(_ProactiveMessageView):
    @extend_schema(
        operation_id="proactive_messages_list",
        tags=["deployments"],
        responses={200: ProactiveMessagesAnswer, **RESOURCE_REFUSALS},
    )
    def get(self, request: Request, deployment_id: UUID) -> Response:
        """List a chatbot's proactive messages."""
        with tenant_scope(self.caller.tenant_id):
            rows = proactive_messages.messages_of(deployment_by_id(deployment_id).pk)
            return uncached(ProactiveMessagesAnswer({"proactive_messages": rows}).data)

    @extend_schema(
        operation_id="proactive_messages_create",
        tags=["deployments"],
        request=ProactiveMessageRequest,
        responses={201: ProactiveMessageAnswer, **_SAVE_REFUSALS, 409: OpenApiResponse(description="`too_many`")},
    )
    def post(self, request: Request, deployment_id: UUID) -> Response:
        """Create a proactive message; it is off unless `is_active` is true."""
        values = validated(ProactiveMessageRequest, request.data)
        with tenant_scope(self.caller.tenant_id):
            place = lock_deployment(deployment_id)
            row = proactive_messages.create(place, actor=self.caller.actor, **values)
            return _answer(row, status.HTTP_201_CREATED)


class OneProactiveMessage(_ProactiveMessageView):
    @extend_schema(
        operation_id="proactive_messages_get",
        tags=["deployments"],
        responses={200: ProactiveMessageAnswer, **RESOURCE_REFUSALS},
    )
    def get(self, request: Request, deployment_id: UUID, message_id: UUID) -> Response:
        with tenant_scope(self.caller.tenant_id):
            return _answer(proactive_messages.message_of(deployment_id, message_id))

    @extend_schema(
        operation_id="proactive_messages_edit",
        tags=["deployments"],
        request=ProactiveMessageChange,
        parameters=[IF_MATCH],
        responses={200: ProactiveMessageAnswer, **_SAVE_REFUSALS, **CHANGED_MEANWHILE},
    )
    def patch(self, request: Request, deployment_id: UUID, message_id: UUID) -> Response:
        """Change the named fields, such as `is_active`."""
        values = validated(ProactiveMessageChange, request.data)
        with tenant_scope(self.caller.tenant_id):
            row = _unchanged(request, deployment_id, message_id)
            return _answer(proactive_messages.change(row, actor=self.caller.actor, **values))

    @extend_schema(
        operation_id="proactive_messages_delete",
        tags=["deployments"],
        parameters=[IF_MATCH],
        responses={204: None, **RESOURCE_REFUSALS, **CHANGED_MEANWHILE},
    )
    def delete(self, request: Request, deployment_id: UUID, message_id: UUID) -> Response:
        with tenant_scope(self.caller.tenant_id):
            row = _unchanged(request, deployment_id, message_id)
            proactive_messages.delete(row, actor=self.caller.actor)
        return Response(status=status.HTTP_204_NO_CONTENT)


def _unchanged(request: Request, deployment_id: UUID, message_id: UUID) -> ProactiveMessage:
    row = proactive_messages.message_of(deployment_id, message_id, lock=True)
    require_unchanged(request, _editable(row))
    return row


def _answer(row: ProactiveMessage, code: int = status.HTTP_200_OK) -> Response:
    return with_etag(ProactiveMessageAnswer(row).data, code, of=_editable(row))


def _editable(row: ProactiveMessage) -> dict[str, object]:
    """What a request can change, and so what the ETag is of."""
    return {name: getattr(row, name) for name in proactive_messages.FIELDS}
