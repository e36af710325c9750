"""REST API of skills: list them with all their versions, import one, disable, roll back and purge.

Nothing here brings a skill into use: that needs a person's decision on a card. Fetching a repository waits on the
network, so it happens outside of every scope.
"""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers, status
from rest_framework.parsers import JSONParser, MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response

from apps.skills import bundled, imports, installation, queries
from apps.skills.differences import FileChange, compare
from apps.skills.imports import Fetched
from apps.skills.imports.adapter import FORMATS
from apps.skills.models import SkillVersion
from apps.tenants.api_auth import Caller, OwnersView, RequestSerializer, validated
from apps.tenants.enums import KeyScope
from kernel.error_codes import ErrorCode
from kernel.errors import NotFound, SilasError
from kernel.language import gettext
from kernel.tenancy import tenant_scope

REFUSALS: dict[int, Any] = {
    401: OpenApiResponse(description="`not_authenticated`: no API key and no login"),
    403: OpenApiResponse(description="`forbidden_role`: not an owner"),
    404: OpenApiResponse(description="`not_found`: unknown or foreign"),
}
_IMPORT_REFUSALS: dict[int, Any] = {
    400: OpenApiResponse(description="`invalid`: a field is wrong; `skill_invalid`: `extra.problems` says why"),
    409: OpenApiResponse(description="`skill_disabled`, `skills_waiting`"),
    422: OpenApiResponse(description="`import_refused`, `format_unknown`: what was sent cannot be taken in"),
}


class ApiKeyActor(str):
    """An API key as the requester: its name in the audit log, in the place of a member."""

    @property
    def actor(self) -> str:
        return str(self)


def requester(caller: Caller) -> Any:
    """Return the member who asks, or the API key."""
    return caller.user or ApiKeyActor(caller.actor)


class SkillAnswer(serializers.Serializer[Any]):
    name = serializers.CharField()
    number = serializers.IntegerField()
    digest = serializers.CharField(help_text="SHA-256 of every path and content")
    status = serializers.CharField(help_text="proposed, active, disabled or withdrawn")
    came_from = serializers.CharField(source="source", help_text="bundled, folder, archive, git, maker or package")
    description = serializers.CharField(source="manifest.description")
    card = serializers.UUIDField(source="card_id", allow_null=True, help_text="The card that asks for approval")
    report = serializers.DictField(help_text="Results of the checks, the import and the dry runs")
    created_at = serializers.DateTimeField()


class ImportRequest(RequestSerializer):
    archive = serializers.FileField(required=False, help_text="A zip or tar.gz; or `url`")
    url = serializers.URLField(required=False, help_text="An https address of a git repository; or `archive`")
    folder = serializers.CharField(required=False, max_length=200, help_text="Which skill, where there are several")
    ref = serializers.CharField(required=False, max_length=100, help_text="A branch or tag of the repository")
    format_hint = serializers.ChoiceField(choices=FORMATS, required=False)


class RollBackRequest(RequestSerializer):
    version = serializers.IntegerField(min_value=1)


class CountAnswer(serializers.Serializer[Any]):
    switched_off = serializers.IntegerField()


class Skills(OwnersView):
    """List the newest version of each skill, and import new ones."""

    reading, writing = KeyScope.SKILLS_READ, KeyScope.SKILLS_WRITE

    parser_classes = (JSONParser, MultiPartParser)

    @extend_schema(operation_id="skills_list", tags=["skills"], responses={200: SkillAnswer(many=True), **REFUSALS})
    def get(self, request: Request) -> Response:
        with tenant_scope(self.caller.tenant_id):
            return Response(SkillAnswer(queries.newest_versions(), many=True).data)

    @extend_schema(
        operation_id="skills_import",
        tags=["skills"],
        request=ImportRequest,
        responses={201: SkillAnswer, **REFUSALS, **_IMPORT_REFUSALS},
    )
    def post(self, request: Request) -> Response:
        """Import a skill and propose it. It is not in use before a person approves its card."""
        form = ImportRequest(data=request.data)
        form.is_valid(raise_exception=True)
        values = form.validated_data
        fetched = _fetched(values)
        with tenant_scope(self.caller.tenant_id):
            version = imports.import_skill(fetched, by=self.caller.actor, format_hint=values.get("format_hint", ""))
            return Response(SkillAnswer(version).data, status.HTTP_201_CREATED)


class OneSkill(OwnersView):
    """Get all versions of one skill, newest first."""

    reading, writing = KeyScope.SKILLS_READ, KeyScope.SKILLS_WRITE

    @extend_schema(operation_id="skills_get", tags=["skills"], responses={200: SkillAnswer(many=True), **REFUSALS})
    def get(self, request: Request, name: str) -> Response:
        with tenant_scope(self.caller.tenant_id):
            return Response(SkillAnswer(_versions(name), many=True).data)


class SkillDiffRequest(RequestSerializer):
    before = serializers.IntegerField(min_value=1)
    after = serializers.IntegerField(min_value=1)


class SkillFileChange(serializers.Serializer[Any]):
    path = serializers.CharField()
    kind = serializers.CharField(help_text="new, removed or changed")
    lines = serializers.SerializerMethodField(help_text='Each with its mark: "+", "-", " ", or "@" for a gap')
    cut = serializers.BooleanField(help_text="There are more lines")
    is_text = serializers.BooleanField(help_text="A binary file has no lines")

    def get_lines(self, change: FileChange) -> list[str]:
        return [f"{mark}{text}" for mark, text in change.lines]


class SkillDiffAnswer(serializers.Serializer[Any]):
    changes = SkillFileChange(many=True)


class Comparing(OwnersView):
    reading, writing = KeyScope.SKILLS_READ, KeyScope.SKILLS_WRITE

    @extend_schema(
        operation_id="skills_diff",
        tags=["skills"],
        parameters=[SkillDiffRequest],
        responses={200: SkillDiffAnswer, **REFUSALS, 400: OpenApiResponse(description="`invalid`: a field is wrong")},
    )
    def get(self, request: Request, name: str) -> Response:
        """Compare the files of two versions."""
        values = validated(SkillDiffRequest, request.query_params)
        with tenant_scope(self.caller.tenant_id):
            rows = {row.number: row for row in _versions(name)}
            if not {values["before"], values["after"]} <= rows.keys():
                raise NotFound()
            before, after = (queries.contents_of(rows[values[place]]) for place in ("before", "after"))
            return Response(SkillDiffAnswer({"changes": compare(before, after)}).data)


class BundledSkillsAnswer(serializers.Serializer[Any]):
    names = serializers.ListField(child=serializers.CharField(), help_text="Those that are not installed")


class BundledSkillRequest(RequestSerializer):
    name = serializers.CharField(max_length=64)


class BundledSkills(OwnersView):
    reading, writing = KeyScope.SKILLS_READ, KeyScope.SKILLS_WRITE

    @extend_schema(
        operation_id="bundled_skills_list", tags=["skills"], responses={200: BundledSkillsAnswer, **REFUSALS}
    )
    def get(self, request: Request) -> Response:
        """List the skills that the platform brings along and that are not installed."""
        with tenant_scope(self.caller.tenant_id):
            return Response({"names": bundled.available_names()})

    @extend_schema(
        operation_id="bundled_skills_install",
        tags=["skills"],
        request=BundledSkillRequest,
        responses={201: SkillAnswer, **REFUSALS, 400: OpenApiResponse(description="`invalid`: a field is wrong")},
    )
    def post(self, request: Request) -> Response:
        """Install one of them."""
        name = validated(BundledSkillRequest, request.data)["name"]
        with tenant_scope(self.caller.tenant_id):
            return Response(SkillAnswer(bundled.install(name)).data, status.HTTP_201_CREATED)


class Disabling(OwnersView):
    reading, writing = KeyScope.SKILLS_READ, KeyScope.SKILLS_WRITE

    @extend_schema(
        operation_id="skills_disable", tags=["skills"], request=None, responses={200: CountAnswer, **REFUSALS}
    )
    def post(self, request: Request, name: str) -> Response:
        """Switch every version of the skill off."""
        with tenant_scope(self.caller.tenant_id):
            _versions(name)
            return Response({"switched_off": installation.disable(name, by=self.caller.actor)})


class RollingBack(OwnersView):
    reading, writing = KeyScope.SKILLS_READ, KeyScope.SKILLS_WRITE

    @extend_schema(
        operation_id="skills_roll_back",
        tags=["skills"],
        request=RollBackRequest,
        responses={
            200: SkillAnswer,
            400: OpenApiResponse(description="`invalid`: a field is wrong"),
            409: OpenApiResponse(description="`skill_not_approved`: never in use"),
            **REFUSALS,
        },
    )
    def post(self, request: Request, name: str) -> Response:
        """Make an earlier version the only one in use."""
        form = RollBackRequest(data=request.data)
        form.is_valid(raise_exception=True)
        with tenant_scope(self.caller.tenant_id):
            version = next((row for row in _versions(name) if row.number == form.validated_data["version"]), None)
            if version is None:
                raise NotFound()
            return Response(SkillAnswer(installation.roll_back(name, to=version, by=self.caller.actor)).data)


class Purging(OwnersView):
    reading, writing = KeyScope.SKILLS_READ, KeyScope.SKILLS_WRITE

    @extend_schema(operation_id="skills_purge", tags=["skills"], request=None, responses={200: CountAnswer, **REFUSALS})
    def post(self, request: Request, name: str) -> Response:
        """Switch the skill off and delete what was written with it. Cannot be undone."""
        with tenant_scope(self.caller.tenant_id):
            return Response({"switched_off": installation.purge(name, by=self.caller.actor)})


def _fetched(values: dict[str, Any]) -> Fetched:
    archive, url, folder = values.get("archive"), values.get("url"), values.get("folder", "")
    if bool(archive) == bool(url):
        raise SilasError(ErrorCode.INVALID, gettext("Send either an archive or an address."))
    if url:
        return imports.from_git(url, folder=folder, ref=values.get("ref", ""))
    raw = values["archive"].read(imports.MAX_ARCHIVE_BYTES + 1)
    return imports.from_archive(raw, name=values["archive"].name, folder=folder)


def _versions(name: str) -> list[SkillVersion]:
    versions = queries.all_versions(name)
    if not versions:
        raise NotFound()
    return versions
