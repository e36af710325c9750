"""REST API of the files of a conversation: those that visitors sent and those of staff."""

from __future__ import annotations

from uuid import UUID

from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers, status
from rest_framework.parsers import MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response

from apps.inbox import staff_files
from apps.inbox.api import StaffView
from apps.sessions.queries import session_by_id
from apps.tenants.api_auth import RESOURCE_REFUSALS, RequestSerializer, uncached, validated
from apps.visitors.api.conversations import SessionFileAnswer, SessionFilesAnswer
from apps.visitors.models import VisitorFile
from kernel.tenancy import tenant_scope


class SessionFileRequest(RequestSerializer):
    file = serializers.FileField(max_length=1000)


class SessionFiles(StaffView):
    recognises_repeats = True
    parser_classes = (MultiPartParser,)

    @extend_schema(
        operation_id="session_files_list", tags=["sessions"], responses={200: SessionFilesAnswer, **RESOURCE_REFUSALS}
    )
    def get(self, request: Request, session_id: UUID) -> Response:
        """List the files of the visitor and of staff, in the order of the conversation."""
        with tenant_scope(self.caller.tenant_id):
            rows = VisitorFile.objects.filter(session=session_by_id(session_id)).order_by("seq").defer("text")
            return uncached(SessionFilesAnswer({"files": rows}).data)

    @extend_schema(
        operation_id="session_files_create",
        tags=["sessions"],
        request={"multipart/form-data": SessionFileRequest},
        responses={
            201: SessionFileAnswer,
            **RESOURCE_REFUSALS,
            400: OpenApiResponse(description="`file_kind`: not a kind that is taken; `invalid`: a field is wrong"),
            409: OpenApiResponse(
                description="`not_taken_over`: the bot answers; `owned_by_other`; `files_full`; `conversation_full`"
            ),
            413: OpenApiResponse(description="`file_too_large`; `most_bytes`"),
        },
    )
    def post(self, request: Request, session_id: UUID) -> Response:
        """Send a file to the visitor, in a conversation that the caller has taken over. What it is, its bytes say."""
        file = validated(SessionFileRequest, request.data)["file"]
        row = staff_files.send_file(
            self.caller.tenant_id,
            session_id,
            self.staff,
            name=file.name,
            chunks=file.chunks(),
            nonce=self.request_digest,
        )
        return uncached(SessionFileAnswer(row).data, status.HTTP_201_CREATED)
