"""REST API for owners to add, test, run, pause and remove sources of the knowledge, and to read what a run found."""

from __future__ import annotations

from uuid import UUID

from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.knowledge import sources
from apps.knowledge.enums import SourceKind
from apps.knowledge.models import KnowledgeSource
from apps.tenants.api_auth import (
    CHANGED_MEANWHILE,
    IF_MATCH,
    OwnersView,
    RequestSerializer,
    require_unchanged,
    uncached,
    validated,
    with_etag,
)
from apps.tenants.enums import KeyScope
from kernel.errors import NotFound
from kernel.tenancy import tenant_scope

_REFUSALS: dict[int, object] = {
    401: OpenApiResponse(description="`not_authenticated`: no API key and no login"),
    403: OpenApiResponse(description="`forbidden_role`: not an owner"),
    404: OpenApiResponse(description="`not_found`: unknown or foreign"),
}
_KINDS = ", ".join(f"`{kind}`" for kind in SourceKind.values)


class SourceAnswer(serializers.Serializer[object]):
    id = serializers.UUIDField()
    kind = serializers.CharField(help_text=_KINDS)
    location = serializers.CharField(help_text="What of it is read: an address, a folder, a bucket, a space…")
    collection = serializers.UUIDField(source="collection_id")
    connection = serializers.UUIDField(source="connection_id", allow_null=True)
    every_hours = serializers.IntegerField()
    enabled = serializers.BooleanField()
    next_at = serializers.DateTimeField(allow_null=True)
    running = serializers.SerializerMethodField()
    dry_run = serializers.BooleanField(help_text="Whether the last run stored nothing")
    report = serializers.JSONField(
        help_text="Of the last run: `counts`, `failed` with reasons, `error` if it stopped, `kept` if documents that"
        " are gone stay searchable until this is confirmed"
    )

    def get_running(self, source: KnowledgeSource) -> bool:
        return sources.is_running(source)


class SourceChangeAnswer(serializers.Serializer[object]):
    kind = serializers.CharField(help_text="`added`, `updated` or `gone`")
    reference = serializers.CharField()
    title = serializers.CharField()
    document = serializers.UUIDField(source="document_id", allow_null=True)
    answers = serializers.IntegerField(help_text="Answers of the last 30 days that cite the document")


class SourceDetailAnswer(SourceAnswer):
    changes = SourceChangeAnswer(many=True)


class SourceRequestBody(RequestSerializer):
    kind = serializers.CharField(max_length=12, help_text=_KINDS)
    location = serializers.CharField(max_length=500, allow_blank=True, default="")
    collection = serializers.UUIDField()
    connection = serializers.UUIDField(required=False, allow_null=True, default=None)
    every_hours = serializers.IntegerField(default=24, help_text="6, 24 or 168")
    dry_run = serializers.BooleanField(default=False, help_text="Add it paused, and only report what it would bring")


class SourceChangeBody(RequestSerializer):
    enabled = serializers.BooleanField()


class SourceRunBody(RequestSerializer):
    dry_run = serializers.BooleanField(default=False)


class SourceRunAnswer(serializers.Serializer[object]):
    started = serializers.BooleanField(help_text="False if a run is in progress")


class Sources(OwnersView):
    """Sources that are read again on a schedule."""

    reading, writing = KeyScope.KNOWLEDGE_READ, KeyScope.KNOWLEDGE_WRITE

    @extend_schema(
        operation_id="sources_list", tags=["knowledge"], responses={200: SourceAnswer(many=True), **_REFUSALS}
    )
    def get(self, request: Request) -> Response:
        with tenant_scope(self.caller.tenant_id):
            return uncached(SourceAnswer(list(KnowledgeSource.objects.all()), many=True).data)

    @extend_schema(
        operation_id="source_add",
        tags=["knowledge"],
        request=SourceRequestBody,
        responses={
            201: SourceAnswer,
            400: OpenApiResponse(description="`invalid`, `too_many`, `knowledge_busy`"),
            409: OpenApiResponse(description="`connection_missing`"),
            422: OpenApiResponse(description="`website_address`, `source_location`, `form_unreadable`"),
            **_REFUSALS,
        },
    )
    def post(self, request: Request) -> Response:
        """Add a source; its first run starts at once. Safe to repeat."""
        sent = validated(SourceRequestBody, request.data)
        new = sources.NewSource(sent["kind"], sent["location"], sent["every_hours"], sent["connection"])
        with tenant_scope(self.caller.tenant_id):
            source = sources.add_source(sent["collection"], new, actor=self.caller.actor, dry_run=sent["dry_run"])
            return with_etag(SourceAnswer(source).data, 201, of=_editable(source))


class Source(OwnersView):
    """One source."""

    reading, writing = KeyScope.KNOWLEDGE_READ, KeyScope.KNOWLEDGE_WRITE

    @extend_schema(operation_id="source_read", tags=["knowledge"], responses={200: SourceDetailAnswer, **_REFUSALS})
    def get(self, request: Request, source_id: UUID) -> Response:
        """The source, what its last run changed, and how many answers that touches."""
        with tenant_scope(self.caller.tenant_id):
            source = KnowledgeSource.objects.filter(pk=source_id).first()
            if source is None:
                raise NotFound()
            changes = SourceChangeAnswer(sources.changes_of(source), many=True).data
            return with_etag({**SourceAnswer(source).data, "changes": changes}, of=_editable(source))

    @extend_schema(
        operation_id="source_change",
        tags=["knowledge"],
        request=SourceChangeBody,
        parameters=[IF_MATCH],
        responses={
            200: SourceAnswer,
            400: OpenApiResponse(description="`invalid`"),
            **_REFUSALS,
            **CHANGED_MEANWHILE,
        },
    )
    def patch(self, request: Request, source_id: UUID) -> Response:
        """Pause or resume it."""
        sent = validated(SourceChangeBody, request.data)
        with tenant_scope(self.caller.tenant_id):
            require_unchanged(request, _editable(sources.lock_source(source_id)))
            source = sources.turn_source(source_id, enabled=sent["enabled"], actor=self.caller.actor)
            return with_etag(SourceAnswer(source).data, of=_editable(source))

    @extend_schema(
        operation_id="source_remove",
        tags=["knowledge"],
        parameters=[IF_MATCH],
        responses={204: None, **_REFUSALS, **CHANGED_MEANWHILE},
    )
    def delete(self, request: Request, source_id: UUID) -> Response:
        """Stop reading it; its documents stay."""
        with tenant_scope(self.caller.tenant_id):
            require_unchanged(request, _editable(sources.lock_source(source_id)))
            sources.remove_source(source_id, actor=self.caller.actor)
        return Response(status=204)


def _editable(source: KnowledgeSource) -> list[object]:
    """What people decide of a source; runs change the rest."""
    return [str(source.pk), source.every_hours, source.enabled]


class SourceRun(OwnersView):
    """Runs of a source."""

    reading, writing = KeyScope.KNOWLEDGE_READ, KeyScope.KNOWLEDGE_WRITE

    @extend_schema(
        operation_id="source_run",
        tags=["knowledge"],
        request=SourceRunBody,
        responses={
            202: SourceRunAnswer,
            400: OpenApiResponse(description="`invalid`, `knowledge_busy`"),
            409: OpenApiResponse(description="`connection_missing`"),
            **_REFUSALS,
        },
    )
    def post(self, request: Request, source_id: UUID) -> Response:
        """Start a run now; a dry run reports and stores nothing."""
        sent = validated(SourceRunBody, request.data)
        with tenant_scope(self.caller.tenant_id):
            started = sources.start_run(source_id, dry_run=sent["dry_run"])
        return uncached(SourceRunAnswer({"started": started}).data, 202)


class SourceConfirmation(OwnersView):
    """Removals that a run kept."""

    reading, writing = KeyScope.KNOWLEDGE_READ, KeyScope.KNOWLEDGE_WRITE

    @extend_schema(
        operation_id="source_confirm",
        tags=["knowledge"],
        request=None,
        responses={204: None, 409: OpenApiResponse(description="`nothing_to_remove`"), **_REFUSALS},
    )
    def post(self, request: Request, source_id: UUID) -> Response:
        """Remove the documents from the search that the last run found deleted and kept."""
        with tenant_scope(self.caller.tenant_id):
            sources.confirm_removals(source_id, actor=self.caller.actor)
        return Response(status=204)
