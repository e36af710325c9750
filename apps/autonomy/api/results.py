"""API views of what automations leave: findings, artifacts, proposals, precedents and notices."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.autonomy import queries
from apps.autonomy.api.requests import acting_user
from apps.autonomy.api.serializers import INVALID, REFUSALS, PageRequest
from apps.autonomy.artifact_files import artifact_response
from apps.autonomy.enums import ArtifactKind, FindingState, PrecedentState, ProposalState
from apps.autonomy.services import notices, precedents, proposals
from apps.autonomy.services.findings import resolve_finding
from apps.tenants.api_auth import MembersView, RequestSerializer, uncached, validated
from apps.tenants.enums import KeyScope
from kernel.tenancy import tenant_scope


class FindingsRequest(PageRequest):
    state = serializers.ChoiceField(choices=FindingState.values, required=False)
    task = serializers.UUIDField(required=False)


class ProposalsRequest(PageRequest):
    state = serializers.ChoiceField(choices=ProposalState.values, required=False)


class PrecedentsRequest(PageRequest):
    state = serializers.ChoiceField(choices=PrecedentState.values, required=False)


class NoticesRequest(RequestSerializer):
    unread = serializers.BooleanField(default=False)


class FindingAnswer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    task = serializers.UUIDField(source="task_id")
    session = serializers.UUIDField(source="session_id")
    title = serializers.CharField()
    content = serializers.CharField()
    severity = serializers.CharField()
    key = serializers.CharField(help_text="What it is about, the same in every run of its task; empty without identity")
    state = serializers.ChoiceField(choices=FindingState.values)
    sources = serializers.ListField(child=serializers.DictField())
    created_at = serializers.DateTimeField()
    gone_at = serializers.DateTimeField(allow_null=True)
    resolved_at = serializers.DateTimeField(allow_null=True)


class ArtifactAnswer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    task = serializers.UUIDField(source="task_id")
    session = serializers.UUIDField(source="session_id")
    title = serializers.CharField()
    kind = serializers.ChoiceField(choices=ArtifactKind.values)
    size = serializers.IntegerField(help_text="Bytes")
    taint = serializers.CharField()
    created_at = serializers.DateTimeField()


class ArtifactDetailAnswer(ArtifactAnswer):
    content = serializers.CharField(help_text="Empty for a table")
    table = serializers.DictField(allow_null=True, help_text="`columns` and `rows` of a table")


class ProposalAnswer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    task = serializers.UUIDField(source="task_id")
    session = serializers.UUIDField(source="session_id")
    kind = serializers.CharField()
    title = serializers.CharField()
    content = serializers.CharField()
    state = serializers.CharField()
    card = serializers.UUIDField(source="card_id", allow_null=True)
    created_at = serializers.DateTimeField()
    kept_at = serializers.DateTimeField(allow_null=True)
    dismissed_at = serializers.DateTimeField(allow_null=True)


class PrecedentAnswer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    task = serializers.UUIDField(source="task_id")
    pattern_kind = serializers.CharField()
    summary = serializers.CharField()
    count = serializers.IntegerField(help_text="How many occasions observed it")
    state = serializers.CharField()
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()


class NoticeAnswer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    session = serializers.UUIDField(source="session_id", allow_null=True)
    trigger = serializers.UUIDField(source="trigger_id", allow_null=True)
    about = serializers.CharField()
    reason = serializers.CharField()
    counts = serializers.DictField(child=serializers.IntegerField())
    created_at = serializers.DateTimeField()
    read_at = serializers.DateTimeField(allow_null=True)


class Artifacts(MembersView):
    """What a run handed over whole: documents, tables and texts, without their content."""

    reading, writing = KeyScope.AUTOMATIONS_READ, KeyScope.AUTOMATIONS_WRITE

    @extend_schema(
        operation_id="artifacts_list", tags=["artifacts"], responses={200: ArtifactAnswer(many=True), **REFUSALS}
    )
    def get(self, request: Request, session_id: UUID) -> Response:
        with tenant_scope(self.caller.tenant_id):
            rows = queries.artifacts_of(queries.session(session_id).pk)
            return uncached([ArtifactAnswer(row).data for row in rows])


class ArtifactDetail(MembersView):
    """One artifact with its content."""

    reading, writing = KeyScope.AUTOMATIONS_READ, KeyScope.AUTOMATIONS_WRITE

    @extend_schema(operation_id="artifacts_read", tags=["artifacts"], responses={200: ArtifactDetailAnswer, **REFUSALS})
    def get(self, request: Request, artifact_id: UUID) -> Response:
        with tenant_scope(self.caller.tenant_id):
            return uncached(ArtifactDetailAnswer(queries.artifact(artifact_id)).data)


class ArtifactFile(MembersView):
    """One artifact as a file: Markdown, CSV or plain text."""

    reading, writing = KeyScope.AUTOMATIONS_READ, KeyScope.AUTOMATIONS_WRITE

    @extend_schema(
        operation_id="artifacts_download",
        tags=["artifacts"],
        responses={(200, "text/plain"): OpenApiTypes.STR, **REFUSALS},
    )
    def get(self, request: Request, artifact_id: UUID) -> HttpResponse:
        with tenant_scope(self.caller.tenant_id):
            return artifact_response(queries.artifact(artifact_id))


class Findings(MembersView):
    """Findings of all automations, newest first; `state` is open, resolved or gone."""

    reading, writing = KeyScope.AUTOMATIONS_READ, KeyScope.AUTOMATIONS_WRITE

    @extend_schema(
        operation_id="findings_list",
        tags=["findings"],
        parameters=[FindingsRequest],
        responses={200: FindingAnswer(many=True), **REFUSALS, 400: INVALID[400]},
    )
    def get(self, request: Request) -> Response:
        query = validated(FindingsRequest, request.query_params)
        with tenant_scope(self.caller.tenant_id):
            rows = queries.findings(task_id=query.pop("task", None), **query)
            return uncached([FindingAnswer(row).data for row in rows])


class FindingDetail(MembersView):
    """One finding."""

    reading, writing = KeyScope.AUTOMATIONS_READ, KeyScope.AUTOMATIONS_WRITE

    @extend_schema(operation_id="findings_read", tags=["findings"], responses={200: FindingAnswer, **REFUSALS})
    def get(self, request: Request, finding_id: UUID) -> Response:
        with tenant_scope(self.caller.tenant_id):
            return uncached(FindingAnswer(queries.finding(finding_id)).data)


class FindingResolve(MembersView):
    """Say that a finding was dealt with; its task does not report it again while it lasts. Safe to repeat."""

    reading, writing = KeyScope.AUTOMATIONS_READ, KeyScope.AUTOMATIONS_WRITE

    @extend_schema(
        operation_id="findings_resolve", tags=["findings"], request=None, responses={200: FindingAnswer, **REFUSALS}
    )
    def post(self, request: Request, finding_id: UUID) -> Response:
        with tenant_scope(self.caller.tenant_id):
            return uncached(FindingAnswer(resolve_finding(finding_id, user=acting_user(self.caller))).data)


class Proposals(MembersView):
    """What automations propose to remember, newest first."""

    reading, writing = KeyScope.AUTOMATIONS_READ, KeyScope.AUTOMATIONS_WRITE

    @extend_schema(
        operation_id="proposals_list",
        tags=["proposals"],
        parameters=[ProposalsRequest],
        responses={200: ProposalAnswer(many=True), **REFUSALS, 400: INVALID[400]},
    )
    def get(self, request: Request) -> Response:
        query = validated(ProposalsRequest, request.query_params)
        with tenant_scope(self.caller.tenant_id):
            return uncached([ProposalAnswer(row).data for row in queries.proposals(**query)])


class ProposalDetail(MembersView):
    """One proposal."""

    reading, writing = KeyScope.AUTOMATIONS_READ, KeyScope.AUTOMATIONS_WRITE

    @extend_schema(operation_id="proposals_read", tags=["proposals"], responses={200: ProposalAnswer, **REFUSALS})
    def get(self, request: Request, proposal_id: UUID) -> Response:
        with tenant_scope(self.caller.tenant_id):
            return uncached(ProposalAnswer(queries.proposal(proposal_id)).data)


class ProposalDismiss(MembersView):
    """Dismiss a proposal; what was kept is forgotten. Safe to repeat."""

    reading, writing = KeyScope.AUTOMATIONS_READ, KeyScope.AUTOMATIONS_WRITE

    @extend_schema(
        operation_id="proposals_dismiss", tags=["proposals"], request=None, responses={200: ProposalAnswer, **REFUSALS}
    )
    def post(self, request: Request, proposal_id: UUID) -> Response:
        with tenant_scope(self.caller.tenant_id):
            return uncached(ProposalAnswer(proposals.dismiss(proposal_id, user=acting_user(self.caller))).data)


class Precedents(MembersView):
    """Patterns that automations observed, the latest first."""

    reading, writing = KeyScope.AUTOMATIONS_READ, KeyScope.AUTOMATIONS_WRITE

    @extend_schema(
        operation_id="precedents_list",
        tags=["precedents"],
        parameters=[PrecedentsRequest],
        responses={200: PrecedentAnswer(many=True), **REFUSALS, 400: INVALID[400]},
    )
    def get(self, request: Request) -> Response:
        query = validated(PrecedentsRequest, request.query_params)
        with tenant_scope(self.caller.tenant_id):
            return uncached([PrecedentAnswer(row).data for row in queries.precedents(**query)])


class PrecedentDismiss(MembersView):
    """Dismiss a pattern; if it is observed again, it counts from one. Safe to repeat."""

    reading, writing = KeyScope.AUTOMATIONS_READ, KeyScope.AUTOMATIONS_WRITE

    @extend_schema(
        operation_id="precedents_dismiss",
        tags=["precedents"],
        request=None,
        responses={200: PrecedentAnswer, **REFUSALS},
    )
    def post(self, request: Request, precedent_id: UUID) -> Response:
        with tenant_scope(self.caller.tenant_id):
            row = precedents.dismiss_precedent(precedent_id, user=acting_user(self.caller))
            return uncached(PrecedentAnswer(row).data)


class Notices(MembersView):
    """The caller's own notices, newest first; an API key reads those of the owner for whom it acts."""

    reading, writing = KeyScope.AUTOMATIONS_READ, KeyScope.AUTOMATIONS_WRITE

    @extend_schema(
        operation_id="notices_list",
        tags=["notices"],
        parameters=[NoticesRequest],
        responses={200: NoticeAnswer(many=True), **REFUSALS, 400: INVALID[400]},
    )
    def get(self, request: Request) -> Response:
        unread = validated(NoticesRequest, request.query_params)["unread"]
        with tenant_scope(self.caller.tenant_id):
            rows = queries.notices(acting_user(self.caller), unread=unread)
            return uncached([NoticeAnswer(row).data for row in rows])


class NoticeRead(MembersView):
    """Mark a notice as read. Safe to repeat."""

    reading, writing = KeyScope.AUTOMATIONS_READ, KeyScope.AUTOMATIONS_WRITE

    @extend_schema(
        operation_id="notices_mark_read", tags=["notices"], request=None, responses={200: NoticeAnswer, **REFUSALS}
    )
    def post(self, request: Request, notice_id: UUID) -> Response:
        with tenant_scope(self.caller.tenant_id):
            return uncached(NoticeAnswer(notices.mark_read(notice_id, user=acting_user(self.caller))).data)
