"""REST API of teams and of members' availability (contract interfaces, HTTP).

For owners in the console's session, and API keys with the scopes `settings:read` and `settings:write`.
"""

from __future__ import annotations

from uuid import UUID

from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from apps.inbox import queries, teams
from apps.inbox.api import MemberName, StaffView
from apps.inbox.enums import Assignment
from apps.inbox.models import Team
from apps.inbox.teams import MAX_CAPACITY, MAX_HOLIDAYS, MAX_QUEUES, MAX_SKILLS, TeamFields
from apps.tenants.api_auth import (
    CHANGED_MEANWHILE,
    IF_MATCH,
    RESOURCE_REFUSALS,
    RequestSerializer,
    require_unchanged,
    uncached,
    validated,
    with_etag,
)
from apps.tenants.enums import KeyScope
from apps.tenants.models import User
from kernel.tenancy import tenant_scope

_SAVE_REFUSALS: dict[int, OpenApiResponse] = {
    **RESOURCE_REFUSALS,
    400: OpenApiResponse(description="`invalid`, `bad_name`, `bad_team`: a field is wrong"),
    409: OpenApiResponse(description="`name_taken`; `too_many`; `assignee_unfit`: a member may not answer"),
}


class TeamMemberAnswer(serializers.Serializer[object]):
    id = serializers.UUIDField(source="user.pk")
    name = serializers.CharField(source="user.display_name")
    skills = serializers.ListField(child=serializers.CharField())


class TeamAnswer(serializers.Serializer[object]):
    id = serializers.UUIDField()
    name = serializers.CharField()
    queues = serializers.ListField(child=serializers.CharField())
    is_default = serializers.BooleanField()
    assignment = serializers.ChoiceField(choices=Assignment.values)
    capacity = serializers.IntegerField()
    opening_hours = serializers.DictField(child=serializers.CharField())
    timezone = serializers.CharField()
    holidays = serializers.ListField(child=serializers.CharField())
    members = TeamMemberAnswer(many=True, source="members.all")


class TeamsAnswer(serializers.Serializer[object]):
    teams = TeamAnswer(many=True)


class TeamMemberRequest(RequestSerializer):
    id = serializers.UUIDField(help_text="A member who may answer")
    skills = serializers.ListField(
        child=serializers.CharField(max_length=40),
        max_length=MAX_SKILLS,
        default=list,
        help_text="Labels, languages and queues that the member is good at",
    )


class TeamRequest(RequestSerializer):
    name = serializers.CharField(max_length=60)
    queues = serializers.ListField(
        child=serializers.CharField(max_length=80),
        max_length=MAX_QUEUES,
        default=list,
        help_text="Handover queues whose conversations are this team's, beside its own name",
    )
    is_default = serializers.BooleanField(default=False, help_text="Handovers into no team's queue are this team's")
    assignment = serializers.ChoiceField(choices=Assignment.values, default=Assignment.OFF.value)
    capacity = serializers.IntegerField(
        default=10, min_value=1, max_value=MAX_CAPACITY, help_text="Open conversations of a member at most"
    )
    opening_hours = serializers.DictField(
        child=serializers.CharField(max_length=80), default=dict, help_text="As of a chatbot; empty for the chatbot's"
    )
    timezone = serializers.CharField(default="", allow_blank=True, max_length=64)
    holidays = serializers.ListField(
        child=serializers.CharField(max_length=10), max_length=MAX_HOLIDAYS, default=list, help_text="Dates, ISO 8601"
    )
    members = TeamMemberRequest(many=True, default=list)


class AvailabilityAnswer(MemberName):
    away = serializers.BooleanField(help_text="Takes no new conversations")
    available = serializers.BooleanField(help_text="Has the console open and is not away")


class AvailabilitiesAnswer(serializers.Serializer[object]):
    members = AvailabilityAnswer(many=True)


class AvailabilityRequest(RequestSerializer):
    away = serializers.BooleanField()


class _TeamView(StaffView):
    """All members may read; the services refuse changes to those who are not owners."""

    reading, writing = KeyScope.SETTINGS_READ, KeyScope.SETTINGS_WRITE

    def saved(self, request: Request, team_id: UUID | None = None) -> Team:
        values = validated(TeamRequest, request.data)
        members = {str(one["id"]): tuple(one["skills"]) for one in values["members"]}
        fields = TeamFields(
            **{
                **values,
                "queues": tuple(values["queues"]),
                "holidays": tuple(values["holidays"]),
                "members": members,
            }
        )
        return teams.team_by_id(teams.save_team(self.staff, fields, team_id=team_id).pk)


class Teams(_TeamView):
    @extend_schema(operation_id="teams_list", tags=["teams"], responses={200: TeamsAnswer, **RESOURCE_REFUSALS})
    def get(self, request: Request) -> Response:
        """List all teams by name."""
        with tenant_scope(self.caller.tenant_id):
            return uncached(TeamsAnswer({"teams": teams.teams()}).data)

    @extend_schema(
        operation_id="teams_create", tags=["teams"], request=TeamRequest, responses={201: TeamAnswer, **_SAVE_REFUSALS}
    )
    def post(self, request: Request) -> Response:
        with tenant_scope(self.caller.tenant_id):
            return with_etag(TeamAnswer(self.saved(request)).data, status.HTTP_201_CREATED)


class OneTeam(_TeamView):
    @extend_schema(operation_id="teams_get", tags=["teams"], responses={200: TeamAnswer, **RESOURCE_REFUSALS})
    def get(self, request: Request, team_id: UUID) -> Response:
        with tenant_scope(self.caller.tenant_id):
            return with_etag(TeamAnswer(teams.team_by_id(team_id)).data)

    @extend_schema(
        operation_id="teams_replace",
        tags=["teams"],
        request=TeamRequest,
        parameters=[IF_MATCH],
        responses={200: TeamAnswer, **_SAVE_REFUSALS, **CHANGED_MEANWHILE},
    )
    def put(self, request: Request, team_id: UUID) -> Response:
        with tenant_scope(self.caller.tenant_id):
            self._require_unchanged(request, team_id)
            return with_etag(TeamAnswer(self.saved(request, team_id)).data)

    @extend_schema(
        operation_id="teams_delete",
        tags=["teams"],
        parameters=[IF_MATCH],
        responses={204: None, **RESOURCE_REFUSALS, **CHANGED_MEANWHILE},
    )
    def delete(self, request: Request, team_id: UUID) -> Response:
        """Delete a team. Its conversations stay, with their assignees."""
        with tenant_scope(self.caller.tenant_id):
            self._require_unchanged(request, team_id)
            teams.delete_team(self.staff, team_id)
        return Response(status=status.HTTP_204_NO_CONTENT)

    def _require_unchanged(self, request: Request, team_id: UUID) -> None:
        teams.lock_team(self.staff, team_id)
        require_unchanged(request, TeamAnswer(teams.team_by_id(team_id)).data)


class Availabilities(_TeamView):
    @extend_schema(
        operation_id="availability_list", tags=["teams"], responses={200: AvailabilitiesAnswer, **RESOURCE_REFUSALS}
    )
    def get(self, request: Request) -> Response:
        """List the members who may answer, with who takes new conversations."""
        with tenant_scope(self.caller.tenant_id):
            users = queries.answering_members()
            return uncached(AvailabilitiesAnswer({"members": _standings(users)}).data)


class OneAvailability(_TeamView):
    @extend_schema(
        operation_id="availability_set",
        tags=["teams"],
        request=AvailabilityRequest,
        responses={
            200: AvailabilityAnswer,
            **RESOURCE_REFUSALS,
            409: OpenApiResponse(description="`assignee_unfit`: not a member who may answer"),
        },
    )
    def put(self, request: Request, member_id: UUID) -> Response:
        """Say whether a member takes new conversations. Members change their own, owners everybody's."""
        values = validated(AvailabilityRequest, request.data)
        with tenant_scope(self.caller.tenant_id):
            teams.set_away(self.staff, member_id, away=values["away"])
            (standing,) = _standings([queries.answering_member(str(member_id))])
            return uncached(AvailabilityAnswer(standing).data)


def _standings(users: list[User]) -> list[dict[str, object]]:
    away, available = teams.away_among(users), teams.available(users)
    return [
        {
            "id": user.pk,
            "display_name": user.display_name,
            "away": user.pk in away,
            "available": user.pk in available,
        }
        for user in users
    ]
