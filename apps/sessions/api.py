"""The HTTP endpoint that opens a cited passage for a visitor's browser, and who a visitor's request comes from.

The widget's frame calls them from our own origin; which other sites may embed it is the widget room's rule. Every
refusal has the one JSON shape. A deployment that is unknown or disabled looks the same as one out of reach, and so does
a passage.
"""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.access import tokens
from apps.access.grants import grant_of
from apps.access.rules import AccessController
from apps.knowledge import queries as knowledge
from apps.sessions import policy
from apps.sessions.queries import session_by_id
from apps.tenants.api_auth import RequestSerializer
from apps.tenants.models import Deployment
from apps.widgets import rules as sites
from apps.widgets.queries import open_deployment
from kernel.clock import now
from kernel.error_codes import ErrorCode
from kernel.errors import NotFound, SilasError
from kernel.ids import require_id
from kernel.language import gettext
from kernel.tenancy import tenant_scope


class PassageRequest(RequestSerializer):
    start = serializers.IntegerField(min_value=0, help_text="Byte offset into the stored version")
    end = serializers.IntegerField(min_value=1)
    version = serializers.UUIDField(required=False, help_text="The version cited; the newest without it")


class PassageAnswer(serializers.Serializer[Any]):
    document_id = serializers.UUIDField()
    version_id = serializers.UUIDField()
    title = serializers.CharField()
    url = serializers.CharField()
    before = serializers.CharField()
    quote = serializers.CharField(help_text="Byte for byte what is stored")
    after = serializers.CharField()
    newest = serializers.BooleanField(help_text="Whether the document still reads like this")


class WidgetPassage(APIView):
    """The stored text around a citation, for the visitor whose level reaches it."""

    @extend_schema(
        operation_id="widget_passage",
        tags=["widget"],
        parameters=[PassageRequest],
        responses={
            200: PassageAnswer,
            400: OpenApiResponse(description="`invalid`: a field is wrong"),
            401: OpenApiResponse(description="`not_authenticated`: no session token, or one that is no longer good"),
            404: OpenApiResponse(description="`not_found`: unknown, foreign, or above the visitor's level"),
        },
    )
    def get(self, request: Request, key: str, document_id: str) -> Response:
        visitor = visitor_of(request, key)
        asked = PassageRequest(data=request.query_params)
        asked.is_valid(raise_exception=True)
        wanted = asked.validated_data
        with tenant_scope(visitor.tenant_id):
            found = knowledge.open_passage(
                require_id(document_id),
                start=wanted["start"],
                end=wanted["end"],
                version_id=wanted.get("version"),
                levels=_reached_levels(visitor),
            )
        return Response(PassageAnswer(found).data, headers={"Cache-Control": "no-store"})


def visitor_of(request: Request, key: str) -> tokens.Visitor:
    """Raises 401 `not_authenticated` without a good session token of this deployment."""
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    visitor = tokens.read(token.strip()) if scheme.lower() == "bearer" else None
    if visitor is None or visitor.deployment_key != key:
        raise SilasError(ErrorCode.NOT_AUTHENTICATED, gettext("Please reopen this conversation."))
    return visitor


def _reached_levels(visitor: tokens.Visitor) -> tuple[str, ...]:
    session = session_by_id(visitor.session_id)
    if not session.deployment.enabled or session.deployment.public_key != visitor.deployment_key:
        raise NotFound()
    levels = policy.load(session.deployment).levels
    return AccessController(levels, grant_of(session)).at(now()).reached_levels()


def deployment_for(request: Request, key: str) -> Deployment:
    """Raises `NotFound`, or 403 `origin_not_allowed` when a browser on a foreign site asks."""
    deployment = open_deployment(key)
    if deployment is None:
        raise NotFound()
    origin = request.headers.get("Origin")
    if not sites.origin_allowed(origin, host=request.get_host(), listed=deployment.allowed_origins):
        raise SilasError(ErrorCode.ORIGIN_NOT_ALLOWED)
    return deployment
