"""REST API of events: the stream of what happens, and the catalogue of its types.

For members, who receive what the console shows them, and for API keys: a limited one receives the types whose scopes
it has.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from importlib import import_module
from typing import Any

from asgiref.sync import async_to_sync
from django.conf import settings
from django.contrib.auth import get_user
from django.http import HttpRequest, StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.authentication import SessionAuthentication
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.events import queries, stream
from apps.events.catalogue import CATALOGUE
from apps.events.hub import Filter
from apps.tenants.api_auth import (
    BearerAuthentication,
    Caller,
    RequestSerializer,
    member_caller,
    uncached,
    validated,
)
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.language import gettext
from kernel.ratelimit import concurrency
from kernel.tenancy import tenant_scope

_RETRY_SECONDS = 30
_REFUSALS: dict[int, Any] = {
    400: OpenApiResponse(description="`invalid`: a field is wrong"),
    401: OpenApiResponse(description="`not_authenticated`: no API key and no login"),
    403: OpenApiResponse(description="`forbidden_role`; `forbidden_scope`: `extra.scope` is missing"),
}


class EventStreamRenderer(BaseRenderer):
    """Lets a reader ask for `text/event-stream`; a refusal is JSON."""

    media_type = "text/event-stream"
    format = "events"
    charset = "utf-8"

    def render(self, data: Any, accepted_media_type: Any = None, renderer_context: Any = None) -> bytes:
        answer: bytes = JSONRenderer().render(data)
        return answer


class EventsRequest(RequestSerializer):
    types = serializers.CharField(
        required=False, default="", max_length=2000, help_text="Types or groups such as `card.*`, with commas; all"
    )
    deployment = serializers.UUIDField(required=False, default=None, help_text="Only about this chatbot")
    session = serializers.UUIDField(required=False, default=None, help_text="Only about this conversation")
    after = serializers.IntegerField(
        required=False, default=None, min_value=0, help_text="As `Last-Event-ID`, which counts more"
    )


class EventTypeAnswer(serializers.Serializer[Any]):
    name = serializers.CharField()
    version = serializers.IntegerField()
    description = serializers.CharField()
    scope = serializers.CharField(help_text="What a limited API key needs to receive it")
    # A serializer has data of its own, which is not this field.
    data = serializers.DictField(child=serializers.CharField())  # type: ignore[assignment]


class EventTypesAnswer(serializers.Serializer[Any]):
    types = EventTypeAnswer(many=True)


class _EventsView(APIView):
    authentication_classes = (BearerAuthentication, SessionAuthentication)
    caller: Caller

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        self.caller = _caller(request)


class EventTypes(_EventsView):
    @extend_schema(operation_id="event_types", tags=["events"], responses={200: EventTypesAnswer, **_REFUSALS})
    def get(self, request: Request) -> Response:
        """List the types of events, for streams and webhooks."""
        return uncached(EventTypesAnswer({"types": list(CATALOGUE.values())}).data)


class Events(_EventsView):
    renderer_classes = (JSONRenderer, EventStreamRenderer)

    @extend_schema(
        operation_id="events_stream",
        tags=["events"],
        parameters=[
            EventsRequest,
            OpenApiParameter(
                "Last-Event-ID", OpenApiTypes.INT, OpenApiParameter.HEADER, description="Resume after this event"
            ),
        ],
        responses={
            (200, "text/event-stream"): OpenApiTypes.STR,
            **_REFUSALS,
            410: OpenApiResponse(description="`events_gone`: the events after that id are no longer kept"),
            429: OpenApiResponse(description="`rate_limited`: too many streams; `Retry-After` says when to try again"),
        },
    )
    def get(self, request: Request) -> StreamingHttpResponse:
        """Receive events as they happen, as server-sent events; resume by `Last-Event-ID` without loss."""
        values = validated(EventsRequest, request.query_params)
        wanted = Filter(_types(self.caller, values["types"]), values["deployment"], values["session"])
        after = _after(request.headers.get("Last-Event-ID", ""), values["after"])
        with tenant_scope(self.caller.tenant_id):
            last, deleted = queries.head()
        if after is not None and not deleted <= after <= last:
            raise SilasError(
                ErrorCode.EVENTS_GONE,
                gettext("The events after this id are no longer kept. Read the current state, then connect anew."),
                extra={"oldest": deleted, "newest": last},
            )
        tenant_id, holder, source = self.caller.tenant_id, stream.new_holder(), request._request
        if not async_to_sync(concurrency.acquire)(stream.place_of(tenant_id), holder, maximum=settings.EVENT_STREAMS):
            message = gettext("Too many streams of events are open.")
            raise SilasError(ErrorCode.RATE_LIMITED, message, extra={"retry_after": _RETRY_SECONDS})
        actor = self.caller.actor

        def is_allowed() -> bool:
            return _is_allowed(source, tenant_id, actor, wanted.types)

        content = stream.send_stream(tenant_id, wanted, after, holder=holder, is_allowed=is_allowed)
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        return StreamingHttpResponse(content, content_type="text/event-stream", headers=headers)


def _caller(request: Request) -> Caller:
    return request.auth if isinstance(request.auth, Caller) else member_caller(request)


def _is_allowed(source: HttpRequest, tenant_id: Any, actor: str, types: Iterable[str]) -> bool:
    """Whether the request would be authenticated once more, as the same caller with the same rights."""
    again = copy.copy(source)
    again.session = import_module(settings.SESSION_ENGINE).SessionStore(source.session.session_key)
    again.user = get_user(again)
    try:
        caller = _caller(Events().initialize_request(again))
    except SilasError:
        return False
    same = caller.tenant_id == tenant_id and caller.actor == actor
    return same and all(caller.has_scope(CATALOGUE[name].scope) for name in types)


def _types(caller: Caller, text: str) -> frozenset[str]:
    """The types asked for, or all that the caller may receive. Raises 400 `invalid`, 403 `forbidden_scope`."""
    allowed = frozenset(name for name, each in CATALOGUE.items() if caller.has_scope(each.scope))
    if not (words := [word.strip() for word in text.split(",") if word.strip()]):
        asked = allowed
    else:
        asked = frozenset(name for word in words for name in _matching(word))
    missing = sorted(CATALOGUE[name].scope for name in asked - allowed)
    if missing or not asked:
        message = gettext("This API key does not have the required scope.")
        extra = {"scope": missing[0] if missing else ""}
        raise SilasError(ErrorCode.FORBIDDEN_SCOPE, message, extra=extra)
    return asked


def _matching(word: str) -> list[str]:
    names = [name for name in CATALOGUE if name == word or (word.endswith(".*") and name.startswith(word[:-1]))]
    if not names:
        raise serializers.ValidationError({"types": [gettext("There is no such type of event.")]})
    return names


def _after(header: str, given: int | None) -> int | None:
    if not header:
        return given
    if not header.isascii() or not header.isdecimal() or len(header) > 18:
        raise serializers.ValidationError({"Last-Event-ID": [gettext("Use the id of an event.")]})
    return int(header)
