"""REST API of what staff see of a conversation beside what was said: the visitor's files, what the model saw in a turn,
and deleting what is remembered of the visitor."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.http import FileResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.sessions.prompt_trace import last_attempt, seen_in
from apps.tenants.api_auth import RESOURCE_REFUSALS, ScopedView, uncached
from apps.tenants.enums import Capability, KeyScope
from apps.visitors import file_serving, files, forgetting
from kernel.error_codes import ErrorCode
from kernel.errors import NotFound, SilasError
from kernel.language import gettext
from kernel.tenancy import tenant_scope

_MOST_TURN = 2**31 - 1


class SessionFileAnswer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    seq = serializers.IntegerField(help_text="Its place in the conversation")
    sender = serializers.CharField(help_text="`visitor` or `human`")
    name = serializers.CharField()
    kind = serializers.CharField(help_text="Such as `png` or `pdf`, by its content")
    size = serializers.IntegerField(help_text="In bytes")
    sha256 = serializers.CharField(source="digest")
    created_at = serializers.DateTimeField()


class SessionFilesAnswer(serializers.Serializer[Any]):
    files = SessionFileAnswer(many=True)


class TraceItem(serializers.Serializer[Any]):
    id = serializers.CharField(source="ctx_id")
    kind = serializers.CharField()
    tokens = serializers.IntegerField()
    taint = serializers.CharField(help_text="From whom it comes")
    masked = serializers.BooleanField()
    pinned = serializers.BooleanField()
    reason = serializers.CharField(help_text="Why it left or was replaced; empty if it did not")
    text = serializers.CharField(allow_null=True, help_text="Null if it was deleted or changed since")


class TraceZone(serializers.Serializer[Any]):
    name = serializers.CharField()
    tokens = serializers.IntegerField()
    room = serializers.IntegerField(help_text="How many tokens it may take")
    items = TraceItem(many=True)
    left = TraceItem(many=True, help_text="What there was no room for")


class TraceCall(serializers.Serializer[Any]):
    tool = serializers.CharField()
    answer = serializers.CharField(allow_null=True)


class TraceAnswer(serializers.Serializer[Any]):
    profile = serializers.CharField()
    level = serializers.CharField(help_text="The visitor's access level")
    tokens = serializers.IntegerField()
    headroom = serializers.IntegerField()
    rewritten = serializers.BooleanField(help_text="Whether a gate reworded the message before the model read it")
    release = serializers.IntegerField(help_text="0 without a release")
    zones = TraceZone(many=True)
    calls = TraceCall(many=True, help_text="Tools that the model called")


class VisitorForgotten(serializers.Serializer[Any]):
    memories = serializers.IntegerField(help_text="How many were deleted")


class _View(ScopedView):
    capability = Capability.LOOK
    reading, writing = KeyScope.SESSIONS_READ, KeyScope.SESSIONS_WRITE


class OneSessionFile(_View):
    @extend_schema(
        operation_id="session_files_download",
        tags=["sessions"],
        responses={(200, "application/octet-stream"): OpenApiTypes.BINARY, **RESOURCE_REFUSALS},
    )
    def get(self, request: Request, session_id: UUID, file_id: UUID) -> FileResponse:
        """Download a file. Its media type follows its kind, not what the visitor's browser said."""
        with tenant_scope(self.caller.tenant_id):
            return file_serving.as_download(*files.file_of(session_id, file_id))


class PromptTrace(_View):
    @extend_schema(
        operation_id="session_turns_trace", tags=["sessions"], responses={200: TraceAnswer, **RESOURCE_REFUSALS}
    )
    def get(self, request: Request, session_id: UUID, number: int) -> Response:
        """Read what the model saw in a turn: its window by zone, with each text where it is still kept."""
        with tenant_scope(self.caller.tenant_id):
            window = seen_in(last_attempt(session_id, number=min(number, _MOST_TURN)))
            if window is None:
                raise NotFound()
            return uncached(TraceAnswer(window).data)


class ForgetVisitor(_View):
    capability = Capability.ANSWER

    @extend_schema(
        operation_id="sessions_forget",
        tags=["sessions"],
        request=None,
        responses={200: VisitorForgotten, **RESOURCE_REFUSALS},
    )
    def post(self, request: Request, session_id: UUID) -> Response:
        """Delete what is remembered of the visitor. For members; a program has no name to answer for it with."""
        if self.caller.person is None:
            raise SilasError(ErrorCode.FORBIDDEN_ROLE, gettext("Log in as a member to delete a person's data."))
        with tenant_scope(self.caller.tenant_id):
            count = forgetting.forget_visitor(session_id, self.caller.person)
            return uncached(VisitorForgotten({"memories": count}).data)
