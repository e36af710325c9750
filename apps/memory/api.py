"""REST API of memories (spec 6.5): list, read, correct, pin, confirm and delete them, and move them as a bundle.

For members who answer visitors, and API keys with the scopes `memory:read` and `memory:write`. Bundles are for owners
and API keys. A bundle that this company did not sign can be vouched for on the command line only (docs/memory.md).
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.http import FileResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema, extend_schema_field
from rest_framework import serializers, status
from rest_framework.parsers import MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response

from apps.memory import portability, queries, services
from apps.memory.enums import DeletionReason, ScopeKind, SourceKind, Tier, Trust
from apps.memory.memories import MAX_REMEMBERED
from apps.memory.models import MemoryItem
from apps.memory.portability import Mode
from apps.memory.queries import MemoryFilter
from apps.memory.services import Editor
from apps.tenants.api_auth import (
    IF_MATCH,
    PageRequest,
    RequestSerializer,
    ScopedView,
    require_unchanged,
    uncached,
    validated,
    with_etag,
)
from apps.tenants.enums import Capability, KeyScope
from kernel.language import gettext
from kernel.taint import Taint
from kernel.tenancy import tenant_scope
from llm.enums import MemoryType

_UNCACHED = {"Cache-Control": "no-store"}
_REFUSALS: dict[int, Any] = {
    400: OpenApiResponse(description="`invalid`: a field is wrong"),
    401: OpenApiResponse(description="`not_authenticated`: no API key and no login"),
    403: OpenApiResponse(description="`forbidden_role`; `forbidden_scope`: the key has other scopes"),
    404: OpenApiResponse(description="`not_found`: unknown or foreign"),
}
_CHANGE_REFUSALS: dict[int, Any] = {
    409: OpenApiResponse(
        description="`memory_raw`: kept word for word; `memory_archived`; `memory_fixed`: never changes;"
        " `memory_external`, `memory_card_needed`: can't be confirmed here"
    ),
    422: OpenApiResponse(description="`memory_text`, `memory_instructions`: the text can't be kept"),
}


# Base class of answers about a memory; a docstring would be repeated in the schema of every subclass.
class _Facts(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    scope = serializers.CharField(help_text="`conversation:…`, `customer:…` or `tenant:…`")
    memory_type = serializers.ChoiceField(choices=[each.value for each in MemoryType])
    tier = serializers.ChoiceField(choices=Tier.values, help_text="`low_reingestion`: kept word for word")
    trust = serializers.ChoiceField(choices=Trust.values, help_text="`verified`: confirmed by a person")
    taint = serializers.ChoiceField(choices=[each.value for each in Taint])
    came_from = serializers.ChoiceField(choices=SourceKind.values, source="source_kind")
    session_id = serializers.UUIDField(allow_null=True, help_text="The conversation that it comes from")
    pinned = serializers.BooleanField()
    marked = serializers.BooleanField(help_text="Its author had read instructions to the assistant")
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()
    valid_until = serializers.DateTimeField(allow_null=True)
    archived_at = serializers.DateTimeField(allow_null=True, help_text="Since when it is not recalled any more")


class MemoryLine(_Facts):
    excerpt = serializers.CharField(help_text="The first 400 characters of its text")


class FormerTextAnswer(serializers.Serializer[Any]):
    text = serializers.CharField(help_text="The former text")
    at = serializers.DateTimeField(help_text="When it was corrected")
    by = serializers.CharField(help_text="`user:…` or `api_key:…`")


class MemoryAnswer(_Facts):
    text = serializers.CharField(source="content")
    tags = serializers.ListField(child=serializers.CharField())
    entity_refs = serializers.ListField(child=serializers.CharField())
    revisions = serializers.SerializerMethodField(help_text="Former texts, oldest first")

    @extend_schema_field(FormerTextAnswer(many=True))
    def get_revisions(self, row: MemoryItem) -> Any:
        return row.revisions


class MemoriesAnswer(serializers.Serializer[Any]):
    memories = MemoryLine(many=True)
    next = serializers.CharField(help_text="`before` of the next page; empty at the end")


class MemoriesRequest(PageRequest):
    search = serializers.CharField(required=False, allow_blank=True, max_length=200, help_text="Words of the text")
    scope = serializers.ChoiceField(choices=ScopeKind.values, required=False)
    customer = serializers.CharField(required=False, max_length=120, help_text="The customer's id")
    memory_type = serializers.ChoiceField(choices=[each.value for each in MemoryType], required=False)
    confirmed = serializers.BooleanField(required=False, allow_null=True, default=None)
    pinned = serializers.BooleanField(required=False, allow_null=True, default=None)
    marked = serializers.BooleanField(required=False, allow_null=True, default=None)
    raw = serializers.BooleanField(default=False, help_text="Those kept word for word, instead of those recalled")
    archived = serializers.BooleanField(default=False, help_text="Those not recalled any more, instead of the others")


class MemoryChange(RequestSerializer):
    text = serializers.CharField(required=False, max_length=MAX_REMEMBERED, help_text="The correct text")
    pinned = serializers.BooleanField(required=False)
    confirmed = serializers.BooleanField(required=False, help_text="Only `true`: a correction ends a confirmation")
    archived = serializers.BooleanField(required=False, help_text="Only `false`: recall an archived memory again")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if len(attrs) != 1 or attrs.get("confirmed") is False or attrs.get("archived"):
            raise serializers.ValidationError(
                gettext("Send one of text, pinned, confirmed as true, and archived as false.")
            )
        return attrs


class DeletionRequest(RequestSerializer):
    reason = serializers.ChoiceField(choices=DeletionReason.values)


class BundleRequest(RequestSerializer):
    raw = serializers.BooleanField(default=False, help_text="Also what is kept word for word")


class MemoryImportRequest(RequestSerializer):
    bundle = serializers.FileField(help_text="At most 10 MB")
    mode = serializers.ChoiceField(choices=Mode.values, default=Mode.MERGE.value)
    dry_run = serializers.BooleanField(default=False, help_text="Report what would change, and write nothing")
    reviewed = serializers.CharField(
        required=False, max_length=64, default="", help_text="The hash of the dry run that this import must match"
    )


class MemoryImportAnswer(serializers.Serializer[Any]):
    trusted = serializers.BooleanField(help_text="Signed by this company; else memories arrive external, unconfirmed")
    hash = serializers.CharField(help_text="Identifies the bundle")
    created = serializers.IntegerField()
    updated = serializers.IntegerField()
    unchanged = serializers.IntegerField()
    refused = serializers.IntegerField()
    deleted = serializers.IntegerField()


class _MemoryView(ScopedView):
    capability = Capability.ANSWER
    reading, writing = KeyScope.MEMORY_READ, KeyScope.MEMORY_WRITE

    @property
    def editor(self) -> Editor:
        return Editor(self.caller.actor, self.caller.user)


class Memories(_MemoryView):
    @extend_schema(
        operation_id="memories_list",
        tags=["memories"],
        parameters=[MemoriesRequest],
        responses={200: MemoriesAnswer, **_REFUSALS},
    )
    def get(self, request: Request) -> Response:
        """List memories, newest first."""
        values = validated(MemoriesRequest, request.query_params)
        before, limit = values.pop("before"), values.pop("limit")
        for name, enum in (("scope", ScopeKind), ("memory_type", MemoryType)):
            if name in values:
                values[name] = enum(values[name])
        with tenant_scope(self.caller.tenant_id):
            rows, following = queries.list_memories(MemoryFilter(**values), before=before, limit=limit)
            return uncached(MemoriesAnswer({"memories": rows, "next": following}).data)


class OneMemory(_MemoryView):
    @extend_schema(operation_id="memories_get", tags=["memories"], responses={200: MemoryAnswer, **_REFUSALS})
    def get(self, request: Request, memory_id: UUID) -> Response:
        with tenant_scope(self.caller.tenant_id):
            return _shown(queries.memory(memory_id))

    @extend_schema(
        operation_id="memories_change",
        tags=["memories"],
        request=MemoryChange,
        parameters=[IF_MATCH],
        responses={
            200: MemoryAnswer,
            **_REFUSALS,
            **_CHANGE_REFUSALS,
            412: OpenApiResponse(description="`changed_meanwhile`: not at the version of `If-Match`"),
        },
    )
    def patch(self, request: Request, memory_id: UUID) -> Response:
        """Correct, pin, unpin, confirm or restore a memory. A correction keeps the former text and ends a
        confirmation."""
        change = validated(MemoryChange, request.data)
        with tenant_scope(self.caller.tenant_id):
            require_unchanged(request, _editable(queries.memory(memory_id)))
        if "text" in change:
            return _shown(services.correct(self.caller.tenant_id, memory_id, change["text"], by=self.editor))
        with tenant_scope(self.caller.tenant_id):
            if "pinned" in change:
                row = services.pin(memory_id, pinned=change["pinned"], by=self.editor)
            elif "archived" in change:
                row = services.restore(memory_id, by=self.editor)
            else:
                row = services.confirm(memory_id, by=self.editor)
            return _shown(row)

    @extend_schema(
        operation_id="memories_delete",
        tags=["memories"],
        parameters=[DeletionRequest],
        responses={204: None, **_REFUSALS, 409: _CHANGE_REFUSALS[409]},
    )
    def delete(self, request: Request, memory_id: UUID) -> Response:
        """Delete a memory and its former texts, for good."""
        reason = DeletionReason(validated(DeletionRequest, request.query_params)["reason"])
        with tenant_scope(self.caller.tenant_id):
            services.delete(memory_id, reason=reason, by=self.editor)
        return Response(status=status.HTTP_204_NO_CONTENT)


class Bundle(_MemoryView):
    """Move all memories of the company."""

    capability = Capability.ADMINISTER
    parser_classes = (MultiPartParser,)

    @extend_schema(
        operation_id="memories_export",
        tags=["memories"],
        parameters=[BundleRequest],
        responses={(200, "application/jsonl"): OpenApiTypes.BINARY, **_REFUSALS},
    )
    def get(self, request: Request) -> FileResponse:
        """Export all memories as a signed bundle of JSON lines."""
        raw = validated(BundleRequest, request.query_params)["raw"]
        file = portability.export_file(self.caller.tenant_id, include_raw=raw, actor=self.caller.actor)
        return FileResponse(
            file, as_attachment=True, filename="memories.jsonl", content_type="application/jsonl", headers=_UNCACHED
        )

    @extend_schema(
        operation_id="memories_import",
        tags=["memories"],
        request=MemoryImportRequest,
        responses={
            200: MemoryImportAnswer,
            **_REFUSALS,
            409: OpenApiResponse(description="`bundle_changed`: not the bundle of the dry run"),
            413: OpenApiResponse(description="`bundle_too_large`"),
            422: OpenApiResponse(description="`bundle_refused`: `extra.line` and `extra.problem` say why"),
        },
    )
    def post(self, request: Request) -> Response:
        """Import a bundle, wholly or not at all. Its memories are indexed in the background."""
        values = validated(MemoryImportRequest, request.data)
        report = portability.import_upload(
            self.caller.tenant_id,
            values["bundle"],
            mode=Mode(values["mode"]),
            dry_run=values["dry_run"],
            reviewed=values["reviewed"],
            actor=self.caller.actor,
        )
        return uncached(MemoryImportAnswer(report).data)


def _shown(row: MemoryItem) -> Response:
    return with_etag(MemoryAnswer(row).data, of=_editable(row))


def _editable(row: MemoryItem) -> list[Any]:
    return [row.content, row.pinned, row.trust, row.archived_at is None]
