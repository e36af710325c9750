"""REST API of drafts: create one from a wish, change it in words or file by file, run its tests, and submit it for
approval.

Each change names the revision that it was made on. Writing and testing happen outside of every tenant scope.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from drf_spectacular.utils import OpenApiResponse, extend_schema, extend_schema_field
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from apps.skills.api.skills import REFUSALS, SkillAnswer, requester
from apps.skills.maker import services
from apps.skills.models import DraftRevision, SkillDraft
from apps.tenants.api_auth import Caller, OwnersView, RequestSerializer
from apps.tenants.enums import KeyScope
from kernel.error_codes import ErrorCode
from kernel.errors import NotFound, SilasError
from kernel.language import gettext
from kernel.tenancy import tenant_scope

_CHANGE_REFUSALS: dict[int, Any] = {
    400: OpenApiResponse(description="`invalid`: a field is wrong"),
    409: OpenApiResponse(description="`draft_changed`: `extra.revision` is the newest; `too_many_drafts`, `no_model`"),
    422: OpenApiResponse(description="`draft_name`, `draft_wish`, `draft_file`"),
}


class DraftLine(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    name = serializers.CharField()
    wish = serializers.CharField()
    revision = serializers.IntegerField(help_text="The newest; a change names it as `seen`")
    skill_version = serializers.UUIDField(
        source="version_id", allow_null=True, help_text="What was proposed of it last"
    )
    updated_at = serializers.DateTimeField()


class RevisionAnswer(serializers.Serializer[Any]):
    number = serializers.IntegerField()
    words = serializers.CharField(help_text="What was asked for")
    files = serializers.DictField(child=serializers.CharField(), help_text="Texts by path")
    written_by = serializers.CharField(help_text="A model's name, or `person`")
    problems = serializers.ListField(child=serializers.CharField(), help_text="What an installation would refuse")
    tested = serializers.DictField(allow_null=True)
    created_at = serializers.DateTimeField()


class DraftAnswer(DraftLine):
    newest = serializers.SerializerMethodField()

    @extend_schema_field(RevisionAnswer(allow_null=True))
    def get_newest(self, draft: SkillDraft) -> dict[str, Any] | None:
        row = DraftRevision.objects.filter(draft=draft).order_by("-number").first()
        return dict(RevisionAnswer(row).data) if row else None


class DraftRequest(RequestSerializer):
    name = serializers.CharField(max_length=64)
    wish = serializers.CharField(max_length=services.LONGEST_WISH)


class SeenRequest(RequestSerializer):
    seen = serializers.IntegerField(min_value=0, help_text="The revision that this is about")


class ChangeRequest(SeenRequest):
    words = serializers.CharField(
        required=False, max_length=services.LONGEST_WISH, help_text="What should be different; or `path` and `text`"
    )
    path = serializers.CharField(required=False, max_length=200)
    text = serializers.CharField(
        required=False, allow_blank=True, trim_whitespace=False, help_text="An empty one takes the file away"
    )


class Drafts(OwnersView):
    """List drafts, and create new ones."""

    reading, writing = KeyScope.SKILLS_READ, KeyScope.SKILLS_WRITE

    @extend_schema(operation_id="skill_drafts_list", tags=["skills"], responses={200: DraftLine(many=True), **REFUSALS})
    def get(self, request: Request) -> Response:
        with tenant_scope(self.caller.tenant_id):
            return Response(DraftLine(SkillDraft.objects.all()[: services.MOST_DRAFTS], many=True).data)

    @extend_schema(
        operation_id="skill_drafts_begin",
        tags=["skills"],
        request=DraftRequest,
        responses={201: DraftAnswer, **REFUSALS, **_CHANGE_REFUSALS},
    )
    def post(self, request: Request) -> Response:
        """Describe what a skill should do. A model writes the draft; without a model, a template is laid out."""
        form = DraftRequest(data=request.data)
        form.is_valid(raise_exception=True)
        values = form.validated_data
        draft = services.create_draft(
            self.caller.tenant_id, name=values["name"], wish=values["wish"], by=requester(self.caller)
        )
        return Response(_response(self.caller, draft.pk), status.HTTP_201_CREATED)


class OneDraft(OwnersView):
    """Get a draft with its newest revision, or delete it."""

    reading, writing = KeyScope.SKILLS_READ, KeyScope.SKILLS_WRITE

    @extend_schema(operation_id="skill_drafts_get", tags=["skills"], responses={200: DraftAnswer, **REFUSALS})
    def get(self, request: Request, draft_id: UUID) -> Response:
        return Response(_response(self.caller, draft_id))

    @extend_schema(operation_id="skill_drafts_delete", tags=["skills"], responses={204: None, **REFUSALS})
    def delete(self, request: Request, draft_id: UUID) -> Response:
        """Delete the draft and all its revisions; what was proposed of it stays."""
        with tenant_scope(self.caller.tenant_id):
            services.delete_draft(draft_id, by=requester(self.caller))
        return Response(status=status.HTTP_204_NO_CONTENT)


class Revising(OwnersView):
    reading, writing = KeyScope.SKILLS_READ, KeyScope.SKILLS_WRITE

    @extend_schema(
        operation_id="skill_drafts_revise",
        tags=["skills"],
        request=ChangeRequest,
        responses={200: DraftAnswer, **REFUSALS, **_CHANGE_REFUSALS},
    )
    def post(self, request: Request, draft_id: UUID) -> Response:
        """Have a model change the draft as described in words, or write one of its files."""
        form = ChangeRequest(data=request.data)
        form.is_valid(raise_exception=True)
        values, about = form.validated_data, {"seen": form.validated_data["seen"], "by": requester(self.caller)}
        if ("words" in values) == ("path" in values):
            raise SilasError(ErrorCode.INVALID, gettext("Send either words, or a path and its text."))
        if "words" in values:
            services.revise_draft(self.caller.tenant_id, draft_id, words=values["words"], **about)
        else:
            text = values.get("text", "")
            services.write_file(self.caller.tenant_id, draft_id, path=values["path"], text=text, **about)
        return Response(_response(self.caller, draft_id))


class Trying(OwnersView):
    reading, writing = KeyScope.SKILLS_READ, KeyScope.SKILLS_WRITE

    @extend_schema(
        operation_id="skill_drafts_try",
        tags=["skills"],
        request=SeenRequest,
        responses={200: DraftAnswer, **REFUSALS, **_CHANGE_REFUSALS},
    )
    def post(self, request: Request, draft_id: UUID) -> Response:
        """Run the revision's tests in an isolated sandbox."""
        services.run_draft_tests(self.caller.tenant_id, draft_id, seen=_seen(request), by=requester(self.caller))
        return Response(_response(self.caller, draft_id))


class Submitting(OwnersView):
    reading, writing = KeyScope.SKILLS_READ, KeyScope.SKILLS_WRITE

    @extend_schema(
        operation_id="skill_drafts_submit",
        tags=["skills"],
        request=SeenRequest,
        responses={201: SkillAnswer, **REFUSALS, **_CHANGE_REFUSALS},
    )
    def post(self, request: Request, draft_id: UUID) -> Response:
        """Propose exactly this revision for approval; nothing of it runs before that."""
        seen = _seen(request)
        with tenant_scope(self.caller.tenant_id):
            version = services.propose_draft(draft_id, seen=seen, by=requester(self.caller))
            return Response(SkillAnswer(version).data, status.HTTP_201_CREATED)


def _seen(request: Request) -> int:
    form = SeenRequest(data=request.data)
    form.is_valid(raise_exception=True)
    return int(form.validated_data["seen"])


def _response(caller: Caller, draft_id: UUID) -> Any:
    with tenant_scope(caller.tenant_id):
        draft = SkillDraft.objects.filter(pk=draft_id).first()
        if draft is None:
            raise NotFound()
        return DraftAnswer(draft).data
