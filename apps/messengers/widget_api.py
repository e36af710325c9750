"""The widget's endpoint for answers by e-mail."""

from __future__ import annotations

from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.messengers import following
from apps.messengers.enums import ChannelKind
from apps.sessions.queries import session_by_id
from apps.tenants.api_auth import RequestSerializer
from apps.visitors import ratelimit, transcripts
from apps.visitors.api.widget import present_visitor
from kernel.errors import NotFound
from kernel.ratelimit.addresses import address_of
from kernel.tenancy import tenant_scope


class EmailAnswersRequest(RequestSerializer):
    address = serializers.CharField(max_length=254)


class ContinueRequest(RequestSerializer):
    channel = serializers.ChoiceField(choices=ChannelKind.choices)


class ContinueAnswer(serializers.Serializer[object]):
    url = serializers.CharField(help_text="Opens the channel; good once, for a day")


class Continue(APIView):
    @extend_schema(
        operation_id="widget_continue",
        tags=["widget"],
        request=ContinueRequest,
        responses={
            201: ContinueAnswer,
            400: OpenApiResponse(description="`invalid`"),
            401: OpenApiResponse(description="`not_authenticated`: no session token, or one that is no longer good"),
            404: OpenApiResponse(description="`not_found`: there is no such channel"),
            429: OpenApiResponse(description="`rate_limited`: too often; `retry_after` seconds"),
            503: OpenApiResponse(description="`unavailable`"),
        },
    )
    def post(self, request: Request, key: str) -> Response:
        """An address that continues this conversation in another channel."""
        visitor = present_visitor(request, key)
        wanted = ContinueRequest(data=request.data)
        wanted.is_valid(raise_exception=True)
        address = address_of(request)
        ratelimit.count("continue", visitor.session_id, most=20, address=address, most_there=60, seconds=ratelimit.HOUR)
        with tenant_scope(visitor.tenant_id):
            url = following.continue_link(visitor.session_id, wanted.validated_data["channel"])
        return Response({"url": url}, status=status.HTTP_201_CREATED, headers={"Cache-Control": "no-store"})


class EmailAnswersAnswer(serializers.Serializer[object]):
    state = serializers.CharField(help_text="`confirm`: a link was sent to the address")


class EmailAnswers(APIView):
    @extend_schema(
        operation_id="widget_email_answers",
        tags=["widget"],
        request=EmailAnswersRequest,
        responses={
            202: EmailAnswersAnswer,
            400: OpenApiResponse(description="`invalid`, `invalid_email`"),
            401: OpenApiResponse(description="`not_authenticated`: no session token, or one that is no longer good"),
            404: OpenApiResponse(description="`not_found`: not offered"),
            429: OpenApiResponse(description="`rate_limited`: too often; `retry_after` seconds"),
            503: OpenApiResponse(description="`unavailable`"),
        },
    )
    def post(self, request: Request, key: str) -> Response:
        """Ask for answers by e-mail while the visitor is away. The address has to be confirmed first."""
        visitor = present_visitor(request, key)
        wanted = EmailAnswersRequest(data=request.data)
        wanted.is_valid(raise_exception=True)
        address = wanted.validated_data["address"]
        with tenant_scope(visitor.tenant_id):
            if not following.can_follow(session_by_id(visitor.session_id).deployment_id):
                raise NotFound()
        transcripts.check_pace(visitor.session_id, address, ip=address_of(request))
        with tenant_scope(visitor.tenant_id):
            origin = request.build_absolute_uri("/").rstrip("/")
            following.ask_to_follow(visitor.session_id, address=address, origin=origin)
        return Response({"state": "confirm"}, status=status.HTTP_202_ACCEPTED, headers={"Cache-Control": "no-store"})
