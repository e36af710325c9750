"""The seven operations over HTTP, at one URL for each endpoint and one for all; `apps.safety.wire` handles them.

An API key with the scope `safety:agent` alone reaches nothing else; confirming for others takes `safety:confirm` as
well. The principal is the API key, not the name that the agent gives itself.
"""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.safety.enums import Endpoint
from apps.safety.schemas import Principal
from apps.safety.wire import envelope, handle_request, invalid_encoding
from apps.tenants.api_auth import BearerAuthentication, api_key_caller
from apps.tenants.enums import KeyScope
from kernel.errors import NotFound

STATUSES = {
    "PERMISSION_DENIED": 403,
    "NOT_FOUND_OPERATION": 404,
    "NOT_FOUND_RESOURCE": 404,
    "VALIDATION_PAYLOAD_TOO_LARGE": 413,
    "RATE_LIMIT_EXCEEDED": 429,
    "INTERNAL_ERROR": 500,
}


class SafetyRequest(serializers.Serializer[Any]):
    operation = serializers.CharField(help_text="`introspect` tells which there are")
    params = serializers.DictField(required=False, help_text="The operation's parameters")


class SafetyAnswer(serializers.Serializer[Any]):
    """`data` stands beside `success` where it is true: what the operation answers, as `introspect` tells it."""

    success = serializers.BooleanField()
    error = serializers.DictField(required=False, help_text="`code`, `message` and perhaps `details`")


class SafetyView(APIView):
    """`create`, `read` and `execute` take their own operations; `all` takes each of them."""

    authentication_classes = (BearerAuthentication,)

    @extend_schema(
        operation_id="safety_call",
        request=SafetyRequest,
        responses={
            200: SafetyAnswer,
            400: OpenApiResponse(SafetyAnswer, description="A parameter is wrong; `error.code` says how"),
            401: OpenApiResponse(description="`not_authenticated`: no API key"),
            403: OpenApiResponse(description="`forbidden_scope`, or the agent is stopped"),
            404: OpenApiResponse(description="`not_found`: no such surface"),
            429: OpenApiResponse(SafetyAnswer, description="Too many wrong codes"),
        },
        summary="Report what an agent intends, and read whether it may",
    )
    def post(self, request: Request, surface: str) -> Response:
        caller = api_key_caller(request, KeyScope.SAFETY_AGENT)
        if surface != "all" and surface not in Endpoint.values:
            raise NotFound()
        endpoint = None if surface == "all" else Endpoint(surface)
        principal = Principal(caller.actor, may_confirm=KeyScope.SAFETY_CONFIRM in caller.scopes)
        shape = "single" if endpoint is None else "semantic"
        try:
            request.body.decode()
        except UnicodeDecodeError as error:
            # The contract has a code of its own for it; invalid JSON is left to REST framework.
            answer = envelope(invalid_encoding(error.start))
        else:
            answer = handle_request(caller.tenant_id, principal, request.data, endpoint=endpoint, surface=shape)
        return Response(answer, status=200 if answer["success"] else STATUSES.get(answer["error"]["code"], 400))
