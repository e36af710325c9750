"""REST API of assistance: ask for it in a conversation, cancel a request, and see what its model saw.

For members who answer visitors, as in the console, and API keys with the scopes `sessions:read` and `sessions:write`.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from asgiref.sync import async_to_sync
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.copilot import forms, queries, services
from apps.copilot.enums import AssistanceKind, AssistanceStatus
from apps.copilot.schemas import MAX_TEXT, AssistanceRequest
from apps.inbox.api import StaffView
from apps.inbox.staff import require_staff
from apps.sessions.queries import session_by_id
from apps.tenants.api_auth import RESOURCE_REFUSALS as _REFUSALS
from apps.tenants.api_auth import RequestSerializer, uncached, validated
from apps.tenants.enums import Capability
from kernel.language import LANGUAGES
from kernel.tenancy import tenant_scope


class AssistRequest(RequestSerializer):
    kind = serializers.ChoiceField(choices=AssistanceKind.values)
    text = serializers.CharField(
        required=False, allow_blank=True, max_length=MAX_TEXT, help_text="The draft to rewrite or translate"
    )
    form = serializers.CharField(
        required=False, allow_blank=True, max_length=120, help_text="For `fill_form`: a name from the list of forms"
    )
    language = serializers.ChoiceField(
        choices=list(LANGUAGES), default="en", help_text="In which summaries and translations for the team are written"
    )
    id = serializers.UUIDField(required=False, help_text="An id of the caller's own, to cancel the request by")


class AssistSource(serializers.Serializer[Any]):
    title = serializers.CharField()
    quote = serializers.CharField(help_text="As it is in the document")
    url = serializers.CharField()


class AssistField(serializers.Serializer[Any]):
    name = serializers.CharField()
    title = serializers.CharField(source="label")
    value = serializers.CharField(help_text="Empty where no message says it")
    seq = serializers.IntegerField(help_text="The message that the value comes from; 0 for none")
    line = serializers.CharField()
    verbatim = serializers.BooleanField(help_text="Whether the message holds the value as it stands")


class AssistTool(serializers.Serializer[Any]):
    name = serializers.CharField()
    arguments = serializers.SerializerMethodField()
    acting = serializers.BooleanField(help_text="Whether a person would have to approve it")

    def get_arguments(self, row: Any) -> dict[str, str]:
        return dict(row.arguments)


class AssistAnswer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    kind = serializers.ChoiceField(choices=AssistanceKind.values)
    text = serializers.CharField(help_text="A suggestion in plain text: nobody has sent it")
    sources = AssistSource(many=True)
    fields_filled = AssistField(many=True, source="fields")
    tools = AssistTool(many=True, help_text="What the bot would call; none of it was called")
    hands_over = serializers.BooleanField(help_text="Whether the bot would hand over to a person")
    blocked_by = serializers.CharField(help_text="The gate that would hold the bot's answer back, or empty")
    model = serializers.CharField()
    fell_back = serializers.CharField(help_text="Why the chatbot's own model did not write it, or empty")
    marked = serializers.BooleanField(help_text="Whether a source holds instructions to the assistant")
    cost_usd = serializers.DecimalField(max_digits=18, decimal_places=9)


class AssistanceRow(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    kind = serializers.ChoiceField(choices=AssistanceKind.values)
    status = serializers.ChoiceField(choices=AssistanceStatus.values)
    reason = serializers.CharField(help_text="The code of why there is no result, or why another model wrote it")
    model = serializers.CharField(source="model_name")
    cost_usd = serializers.DecimalField(max_digits=18, decimal_places=9)
    seen = serializers.DictField(
        source="context", help_text="What the model saw: ids, counts and levels by zone, never text"
    )
    created_at = serializers.DateTimeField()
    finished_at = serializers.DateTimeField(allow_null=True)


class FormName(serializers.Serializer[Any]):
    name = serializers.CharField()
    title = serializers.CharField(source="label")


class AssistanceList(serializers.Serializer[Any]):
    kinds = serializers.ListField(
        child=serializers.ChoiceField(choices=AssistanceKind.values), help_text="What is switched on for the chatbot"
    )
    forms = FormName(many=True, help_text="What `fill_form` can fill in")
    requests = AssistanceRow(many=True, help_text="The newest first")


class CancelAnswer(serializers.Serializer[Any]):
    cancelled = serializers.BooleanField(help_text="False where the request had ended")


class _AssistanceView(StaffView):
    capability = Capability.ANSWER


class AssistanceOfConversation(_AssistanceView):
    answers_secret = True

    @extend_schema(
        operation_id="session_assistance_list", tags=["sessions"], responses={200: AssistanceList, **_REFUSALS}
    )
    def get(self, request: Request, session_id: UUID) -> Response:
        """List what a chatbot's team can be helped with, and the newest requests with what their models saw."""
        with tenant_scope(self.caller.tenant_id):
            require_staff(self.staff)
            session = session_by_id(session_id)
            answer = {
                "kinds": sorted(queries.kinds_on(session.deployment_id)),
                "forms": forms.forms_of(session),
                "requests": queries.newest_in(session.pk),
            }
            return uncached(AssistanceList(answer).data)

    @extend_schema(
        operation_id="session_assistance_create",
        tags=["sessions"],
        request=AssistRequest,
        responses={
            200: AssistAnswer,
            **_REFUSALS,
            400: OpenApiResponse(description="`invalid`, `invalid_text`: a field is wrong, or the draft is empty"),
            409: OpenApiResponse(
                description="`assistance_off`; `no_model`; `assistance_limit`: a spending limit, with when it resets;"
                " `assistance_withheld`: a gate; `assistance_nothing`; `assistance_cancelled`"
            ),
            429: OpenApiResponse(description="`rate_limited`; `retry_after` seconds"),
            502: OpenApiResponse(description="`assistance_failed`: the provider did not answer"),
        },
    )
    def post(self, request: Request, session_id: UUID) -> Response:
        """Ask for a suggested reply, a rewritten draft, a summary, what the bot would do, or a filled form. Nothing is
        sent or carried out."""
        sent = validated(AssistRequest, request.data)
        wanted = AssistanceRequest(
            AssistanceKind(sent["kind"]),
            sent.get("text", ""),
            sent.get("form", ""),
            sent["language"],
            sent.get("id"),
        )
        result = async_to_sync(services.assist)(self.caller.tenant_id, session_id, self.staff, wanted)
        return uncached(AssistAnswer(result).data)


class CancelAssistance(_AssistanceView):
    @extend_schema(
        operation_id="session_assistance_cancel",
        tags=["sessions"],
        request=None,
        responses={200: CancelAnswer, **_REFUSALS},
    )
    def post(self, request: Request, session_id: UUID, assistance_id: UUID) -> Response:
        """Cancel a request of the caller's own while it runs. What its model has used is charged."""
        with tenant_scope(self.caller.tenant_id):
            return uncached({"cancelled": services.cancel(session_id, assistance_id, self.staff)})
