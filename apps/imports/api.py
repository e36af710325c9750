"""REST API of imports from other help desks: begin one, and read its report. For owners, and API keys with the scopes
of contacts."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from drf_spectacular.utils import OpenApiResponse, extend_schema, extend_schema_field
from rest_framework import serializers, status
from rest_framework.parsers import MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response

from apps.imports import runs
from apps.imports.enums import Reason, RunState, System
from apps.imports.models import ImportRun
from apps.tenants.api_auth import OWNERS_REFUSALS, OwnersView, RequestSerializer, uncached, validated
from apps.tenants.enums import KeyScope
from kernel.tenancy import tenant_scope

_REFUSALS: dict[int, Any] = {
    **OWNERS_REFUSALS,
    400: OpenApiResponse(description="`invalid`: a field is wrong"),
    404: OpenApiResponse(description="`not_found`: unknown or foreign"),
}


class ContactImportRequest(RequestSerializer):
    system = serializers.ChoiceField(choices=System.values)
    file = serializers.FileField(help_text="`.json`, `.jsonl`, `.ndjson` or `.csv`, at most 20 MB")
    dry_run = serializers.BooleanField(default=True, help_text="Report what would change, and write nothing")
    once = serializers.UUIDField(required=False, help_text="Sent twice, it is one import")


class ContactImportProblem(serializers.Serializer[Any]):
    line = serializers.IntegerField()
    reason = serializers.ChoiceField(choices=Reason.values)


class ContactImportCounts(serializers.Serializer[Any]):
    created = serializers.IntegerField(required=False)
    updated = serializers.IntegerField(required=False)
    unchanged = serializers.IntegerField(required=False)
    skipped = serializers.IntegerField(required=False)


class ContactImportAnswer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    system = serializers.ChoiceField(choices=System.values)
    name = serializers.CharField()
    dry_run = serializers.BooleanField()
    state = serializers.ChoiceField(choices=RunState.values)
    counts = serializers.SerializerMethodField(help_text="By `contact`, `conversation`, `reply`, and unreadable `line`")
    problems = serializers.SerializerMethodField(help_text="The first 500 skipped lines")
    created_at = serializers.DateTimeField()
    ended_at = serializers.DateTimeField(allow_null=True)

    @extend_schema_field(serializers.DictField(child=ContactImportCounts()))
    def get_counts(self, row: ImportRun) -> Any:
        return row.counts

    @extend_schema_field(ContactImportProblem(many=True))
    def get_problems(self, row: ImportRun) -> Any:
        return [{"line": line, "reason": reason} for line, reason in row.problems]


class ContactImportsAnswer(serializers.Serializer[Any]):
    imports = ContactImportAnswer(many=True)


class Imports(OwnersView):
    reading, writing = KeyScope.CONTACTS_READ, KeyScope.CONTACTS_WRITE
    recognises_repeats = True

    parser_classes = (MultiPartParser,)

    @extend_schema(operation_id="imports_list", tags=["imports"], responses={200: ContactImportsAnswer, **_REFUSALS})
    def get(self, request: Request) -> Response:
        """List the newest 20 imports."""
        with tenant_scope(self.caller.tenant_id):
            return uncached(ContactImportsAnswer({"imports": runs.newest_runs()}).data)

    @extend_schema(
        operation_id="imports_create",
        tags=["imports"],
        request={"multipart/form-data": ContactImportRequest},
        responses={
            202: ContactImportAnswer,
            **_REFUSALS,
            409: OpenApiResponse(description="`import_busy`: others are running"),
            422: OpenApiResponse(description="`unsupported_type`, `nothing_in_it`, `too_large`"),
        },
    )
    def post(self, request: Request) -> Response:
        """Hand over a file; it is imported in the background. A dry run unless `dry_run` is false."""
        values = validated(ContactImportRequest, request.data)
        file = values["file"]
        with tenant_scope(self.caller.tenant_id):
            row = runs.submit(
                system=System(values["system"]),
                name=file.name,
                # One byte more than is taken is enough to refuse it.
                data=file.read(runs.MAX_UPLOAD_BYTES + 1),
                dry_run=values["dry_run"],
                once=values.get("once") or self.once,
                actor=self.caller.actor,
            )
            return uncached(ContactImportAnswer(runs.run_by_id(row.pk)).data, status.HTTP_202_ACCEPTED)


class OneImport(OwnersView):
    reading, writing = KeyScope.CONTACTS_READ, KeyScope.CONTACTS_WRITE

    @extend_schema(operation_id="imports_get", tags=["imports"], responses={200: ContactImportAnswer, **_REFUSALS})
    def get(self, request: Request, run_id: UUID) -> Response:
        """Read the report of an import."""
        with tenant_scope(self.caller.tenant_id):
            return uncached(ContactImportAnswer(runs.run_by_id(run_id)).data)
