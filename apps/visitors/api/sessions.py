"""The HTTP endpoint by which a visitor's browser starts or resumes a conversation.

The widget's frame calls it from our own origin; which other sites may embed it is the widget room's rule. A deployment
that is unknown or disabled looks the same as one out of reach.
"""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.access import tokens
from apps.access.signed_identity import MAX_TOKEN
from apps.sessions.api import deployment_for
from apps.sessions.ratelimit import new_conversations
from apps.sessions.services import MAX_ATTRIBUTES
from apps.tenants.api_auth import RequestSerializer
from apps.tenants.models import Deployment
from apps.visitors.start_session import Wish, begin
from kernel.errors import SilasError
from kernel.language import gettext
from kernel.ratelimit.addresses import address_of


class NewConversation(RequestSerializer):
    identity_token = serializers.CharField(max_length=MAX_TOKEN, required=False, allow_blank=True, allow_null=True)
    locale = serializers.RegexField(r"^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8}){0,3}$", max_length=20, required=False)
    consent = serializers.SlugField(
        max_length=40, required=False, help_text="The version of the deployment's consent that the visitor agreed to"
    )
    attributes = serializers.DictField(
        child=serializers.CharField(max_length=200, allow_blank=True),
        required=False,
        help_text="What the site says of its visitor, unproven: at most 20 names",
    )

    def validate_attributes(self, given: dict[str, str]) -> dict[str, str]:
        if len(given) > MAX_ATTRIBUTES or any(not 0 < len(name) <= 40 or "\0" in name + given[name] for name in given):
            raise serializers.ValidationError(
                gettext("Use up to {max_attributes} names of up to 40 characters.").format(
                    max_attributes=MAX_ATTRIBUTES
                )
            )
        return given


class StartRequest(NewConversation):
    resume_token = serializers.CharField(max_length=128, required=False, allow_blank=True, allow_null=True)
    test_ticket = serializers.CharField(
        max_length=300, required=False, allow_blank=True, help_text="From the console: the house tries its own bot"
    )


class IdentityAnswer(serializers.Serializer[Any]):
    accepted = serializers.BooleanField()
    reason = serializers.CharField(help_text="Why it was not believed (docs/access.md); empty when it was")


class StartAnswer(serializers.Serializer[Any]):
    session_id = serializers.UUIDField()
    token = serializers.CharField(help_text="Short-lived; bound to this deployment and session")
    resume_token = serializers.CharField(help_text="Keep it: it continues the same conversation later")
    ws_path = serializers.CharField()
    expires_in = serializers.IntegerField(help_text="Seconds the token lives")
    form_due = serializers.BooleanField(
        required=False, help_text="Only where the form before the first word is to be shown"
    )
    identity = IdentityAnswer(required=False, help_text="Only when an identity token was given")


class WidgetSessions(APIView):
    """Begin or resume a visitor's conversation."""

    @extend_schema(
        operation_id="widget_session_start",
        tags=["widget"],
        request=StartRequest,
        responses={
            201: StartAnswer,
            400: OpenApiResponse(description="`invalid`: a field is wrong"),
            403: OpenApiResponse(description="`origin_not_allowed`: this site may not open it; `consent_required`"),
            404: OpenApiResponse(description="`not_found`: unknown or disabled deployment"),
            429: OpenApiResponse(description="`rate_limited`: too many from this address; `retry_after` seconds"),
        },
    )
    def post(self, request: Request, key: str) -> Response:
        deployment = deployment_for(request, key)
        wanted = StartRequest(data=request.data)
        wanted.is_valid(raise_exception=True)
        asked = wanted.validated_data
        counted = new_conversations.count_beginning(deployment.pk, address_of(request))
        try:
            begun = begin(deployment, _wish(asked, deployment))
        except SilasError:
            new_conversations.forget_beginning(counted)
            raise
        started = begun.started
        if started.resumed:
            new_conversations.forget_beginning(counted)
        answer: dict[str, Any] = {
            "session_id": started.session_id,
            "token": started.token,
            "resume_token": started.resume_token,
            "ws_path": f"/ws/widget/{deployment.public_key}/",
            "expires_in": started.expires_in,
        }
        if begun.form_due:
            answer["form_due"] = True
        if asked.get("identity_token"):
            answer["identity"] = {"accepted": not begun.reason, "reason": begun.reason}
        return Response(answer, status=status.HTTP_201_CREATED, headers={"Cache-Control": "no-store"})


def _wish(asked: dict[str, Any], deployment: Deployment) -> Wish:
    token = asked.get("identity_token") or ""
    return Wish(
        resume_token=asked.get("resume_token") or "",
        locale=asked.get("locale") or "",
        consent=asked.get("consent", ""),
        token=token,
        is_test=not token and tokens.is_test_ticket(asked.get("test_ticket") or "", deployment.public_key),
        attributes=asked.get("attributes", {}),
    )
