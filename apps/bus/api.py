"""REST API of the queue: how many messages each queue holds, what is in progress, and dead letters, which owners retry
or drop. What a message says is part of no answer.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from apps.bus import dead_letters, queries
from apps.bus.enums import Kind, Queue, State
from apps.bus.models import QueueMessage
from apps.tenants.api_auth import RESOURCE_REFUSALS as _REFUSALS
from apps.tenants.api_auth import OwnersView, PageRequest, ScopedView, uncached, validated
from apps.tenants.enums import Capability, KeyScope
from kernel.pagination import read_page
from kernel.tenancy import tenant_scope

MOST_HELD = 200
_NOT_DEAD: dict[int, Any] = {409: OpenApiResponse(description="`not_dead`: it was retried or dropped already")}


class QueueAnswer(serializers.Serializer[Any]):
    queue = serializers.ChoiceField(choices=Queue.values)
    waiting = serializers.IntegerField(help_text="Messages that are due")
    scheduled = serializers.IntegerField(help_text="Messages that are due later")
    in_progress = serializers.IntegerField(source="held")
    dead = serializers.IntegerField(help_text="Messages that failed for good")
    oldest = serializers.DateTimeField(allow_null=True, help_text="Since when the oldest one is due")


class QueueMessageAnswer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    queue = serializers.ChoiceField(choices=Queue.values)
    kind = serializers.CharField(help_text=f"What it is for, such as `{Kind.OUTBOX_DELIVERY}`")
    attempts = serializers.IntegerField(help_text="Failed deliveries")
    created_at = serializers.DateTimeField()


class MessageInProgressAnswer(QueueMessageAnswer):
    worker = serializers.CharField(source="consumer")
    leased_until = serializers.DateTimeField(help_text="Then another worker takes it")


class QueuesAnswer(serializers.Serializer[Any]):
    queues = QueueAnswer(many=True)
    in_progress = MessageInProgressAnswer(many=True, help_text=f"At most {MOST_HELD}, by the end of their lease")


class DeadLetterAnswer(QueueMessageAnswer):
    reason = serializers.CharField(help_text="Why it failed, as a code")
    failed_at = serializers.DateTimeField(source="finished_at")


class DeadLettersRequest(PageRequest):
    queue = serializers.ChoiceField(choices=Queue.values, required=False)


class DeadLettersAnswer(serializers.Serializer[Any]):
    dead_letters = DeadLetterAnswer(many=True)
    next = serializers.CharField(help_text="`before` of the next page; empty at the end")


class Queues(ScopedView):
    capability = Capability.DECIDE
    reading, writing = KeyScope.WORK_READ, KeyScope.WORK_WRITE

    @extend_schema(operation_id="queues_get", tags=["queues"], responses={200: QueuesAnswer, **_REFUSALS})
    def get(self, request: Request) -> Response:
        """Read how many messages each queue holds, and which are in progress."""
        with tenant_scope(self.caller.tenant_id):
            held = queries.held_messages(MOST_HELD)
            return uncached(QueuesAnswer({"queues": queries.depths(), "in_progress": held}).data)


class DeadLetters(ScopedView):
    capability = Capability.DECIDE
    reading, writing = KeyScope.WORK_READ, KeyScope.WORK_WRITE

    @extend_schema(
        operation_id="dead_letters_list",
        tags=["queues"],
        parameters=[DeadLettersRequest],
        responses={200: DeadLettersAnswer, **_REFUSALS},
    )
    def get(self, request: Request) -> Response:
        """List messages that failed for good, newest first."""
        values = validated(DeadLettersRequest, request.query_params)
        before, limit = values.pop("before"), values.pop("limit")
        with tenant_scope(self.caller.tenant_id):
            rows = QueueMessage.objects.filter(state=State.DEAD, **values)
            found, following = read_page(rows, before=before, limit=limit, moment="finished_at")
            return uncached(DeadLettersAnswer({"dead_letters": found, "next": following}).data)


class RetryDeadLetter(OwnersView):
    reading, writing = KeyScope.WORK_READ, KeyScope.WORK_WRITE

    @extend_schema(
        operation_id="dead_letters_retry",
        tags=["queues"],
        request=None,
        responses={204: None, **_REFUSALS, **_NOT_DEAD},
    )
    def post(self, request: Request, message_id: UUID) -> Response:
        """Deliver the message again. An effect that it already had is not repeated."""
        with tenant_scope(self.caller.tenant_id):
            dead_letters.retry(message_id, user=self.caller.user, actor=self.caller.actor)
        return Response(status=status.HTTP_204_NO_CONTENT)


class DropDeadLetter(OwnersView):
    reading, writing = KeyScope.WORK_READ, KeyScope.WORK_WRITE

    @extend_schema(
        operation_id="dead_letters_drop",
        tags=["queues"],
        request=None,
        responses={204: None, **_REFUSALS, **_NOT_DEAD},
    )
    def post(self, request: Request, message_id: UUID) -> Response:
        """Close the message without its effect."""
        with tenant_scope(self.caller.tenant_id):
            dead_letters.drop(message_id, user=self.caller.user, actor=self.caller.actor)
        return Response(status=status.HTTP_204_NO_CONTENT)
