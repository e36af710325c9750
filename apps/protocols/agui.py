"""The address at which a client runs a deployment as an AG-UI agent (`agui_run`)."""

from __future__ import annotations

from uuid import UUID

from django.http import StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request

from apps.events.api import EventStreamRenderer
from apps.protocols.conversation import STREAM_HEADERS
from apps.tenants.api_auth import RESOURCE_REFUSALS, BearerAuthentication, ScopedView
from apps.tenants.enums import Capability, KeyScope

MAX_THREAD_ID = 200


class AgentRunRequest(serializers.Serializer[object]):
    """`RunAgentInput` of AG-UI 1.0; other members are ignored."""

    threadId = serializers.CharField(max_length=MAX_THREAD_ID, help_text="Names a conversation of this caller")
    runId = serializers.CharField(max_length=MAX_THREAD_ID)
    messages = serializers.ListField(
        child=serializers.DictField(), help_text="The newest of the role `user` is handed in, once for each `id`"
    )
    resume = serializers.ListField(child=serializers.DictField(), required=False)
    forwardedProps = serializers.DictField(
        required=False, help_text="`identity_token`, `consent`, `locale`, `attributes` as in `POST /api/v1/sessions`"
    )


class AgentRuns(ScopedView):
    authentication_classes = (BearerAuthentication,)
    renderer_classes = (JSONRenderer, EventStreamRenderer)
    capability = Capability.ANSWER
    reading = writing = KeyScope.SESSIONS_WRITE
    recognises_repeats = True

    @extend_schema(
        operation_id="agents_agui_run",
        tags=["agents"],
        request=AgentRunRequest,
        responses={
            (200, "text/event-stream"): OpenApiTypes.STR,
            **RESOURCE_REFUSALS,
            409: OpenApiResponse(
                description="`conversation_of_other`, `conversation_full`; `idempotency_key_reused`; those of a card"
            ),
            413: OpenApiResponse(description="`too_large`"),
            429: OpenApiResponse(description="`rate_limited`; `retry_after` seconds"),
        },
    )
    def post(self, request: Request, deployment_id: UUID) -> StreamingHttpResponse:
        """Run the chatbot as an AG-UI agent. The answer is a stream of AG-UI events."""
        from apps.protocols import agui_run  # brings the SDK: only who runs an agent pays for it

        content = agui_run.run(request, self.caller, deployment_id)
        return StreamingHttpResponse(content, content_type="text/event-stream", headers=STREAM_HEADERS)
