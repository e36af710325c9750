"""Teams: the list with who is available, the page of one, and a conversation's team and priority."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.http import QueryDict
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.utils.dates import WEEKDAYS
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from apps.console.base import page
from apps.console.members import ANSWERING_ROLES, StaffRequest, staff_view
from apps.console.pages.inbox.views import to_conversation
from apps.inbox import queries, services, teams
from apps.inbox.enums import Assignment, Priority
from apps.inbox.models import Team
from apps.inbox.teams import MAX_CAPACITY, TeamFields
from apps.tenants.enums import Capability
from apps.tenants.hours import DAYS
from kernel.error_codes import ErrorCode
from kernel.errors import NotFound, SilasError
from kernel.ids import require_id


@require_safe
@staff_view()
def teams_page(request: StaffRequest) -> HttpResponseBase:
    members = queries.answering_members()
    here, away = teams.available(members), teams.away_among(members)
    return page(
        request,
        "console/teams.html",
        at="inbox",
        teams=teams.teams(),
        people=[(user, user.pk in here, user.pk in away) for user in members],
    )


@require_http_methods(["GET", "HEAD", "POST"])
@staff_view(Capability.ADMINISTER)
def new_team(request: StaffRequest) -> HttpResponseBase:
    return _team(request, None)


@require_http_methods(["GET", "HEAD", "POST"])
@staff_view(Capability.ADMINISTER)
def team(request: StaffRequest, team_id: UUID) -> HttpResponseBase:
    return _team(request, teams.team_by_id(team_id))


@require_POST
@staff_view(Capability.ADMINISTER)
def delete_team(request: StaffRequest, team_id: UUID) -> HttpResponseBase:
    teams.delete_team(request.member.user, team_id)
    return redirect("console-teams")


@require_POST
@staff_view(*ANSWERING_ROLES)
def availability(request: StaffRequest) -> HttpResponseBase:
    """Become away or available; of a colleague, for owners."""
    member = require_id(request.POST["member"]) if request.POST.get("member") else request.member.user.pk
    teams.set_away(request.member.user, member, away=request.POST.get("away") == "1")
    return redirect("console-teams")


@require_POST
@staff_view(*ANSWERING_ROLES)
def set_team(request: StaffRequest, session_id: UUID) -> HttpResponseBase:
    given = request.POST.get("team", "")
    services.set_team(session_id, request.member.user, team_id=require_id(given) if given else None)
    return to_conversation(request, session_id)


@require_POST
@staff_view(*ANSWERING_ROLES)
def set_priority(request: StaffRequest, session_id: UUID) -> HttpResponseBase:
    given = request.POST.get("priority", "")
    if given not in Priority.values:
        raise NotFound()
    services.set_priority(session_id, request.member.user, Priority(given))
    return to_conversation(request, session_id)


def _team(request: StaffRequest, row: Team | None) -> HttpResponseBase:
    refusal, fields = None, _fields_of(row) if row else TeamFields(name="")
    if request.method == "POST":
        fields = _fields_from(request.POST)
        try:
            saved = teams.save_team(request.member.user, fields, team_id=row.pk if row else None)
        except SilasError as error:
            if error.code in (ErrorCode.FORBIDDEN_ROLE, ErrorCode.NOT_FOUND):
                raise
            refusal = error
        else:
            return redirect(f"{request.path}?saved=1") if row else redirect("console-team", saved.pk)
    return page(
        request,
        "console/team.html",
        at="inbox",
        status=refusal.status if refusal else 200,
        row=row,
        fields=fields,
        refusal=refusal,
        saved="saved" in request.GET and refusal is None,
        assignments=Assignment.choices,
        most=MAX_CAPACITY,
        people=[
            (user, str(user.pk) in fields.members, ", ".join(fields.members.get(str(user.pk), ())))
            for user in queries.answering_members()
        ],
        days=[(day, WEEKDAYS[number], fields.opening_hours.get(day, "")) for number, day in enumerate(DAYS)],
        queues=", ".join(fields.queues),
        holidays="\n".join(fields.holidays),
    )


def _fields_of(row: Team) -> TeamFields:
    return TeamFields(
        name=row.name,
        queues=tuple(row.queues),
        is_default=row.is_default,
        assignment=row.assignment,
        capacity=row.capacity,
        opening_hours=row.opening_hours,
        timezone=row.timezone,
        holidays=tuple(row.holidays),
        members={str(one.user_id): tuple(one.skills) for one in row.members.all()},
    )


def _fields_from(posted: QueryDict) -> TeamFields:
    def words(name: str, separator: str = ",") -> tuple[str, ...]:
        return tuple(part.strip() for part in _text(posted, name).split(separator) if part.strip())

    capacity = _text(posted, "capacity")
    values: dict[str, Any] = {f"hours_{day}": _text(posted, f"hours_{day}") for day in DAYS}
    return TeamFields(
        name=_text(posted, "name"),
        queues=words("queues"),
        is_default="is_default" in posted,
        assignment=_text(posted, "assignment"),
        capacity=int(capacity) if capacity.isascii() and capacity.isdecimal() and len(capacity) < 6 else 0,
        opening_hours={day: values[f"hours_{day}"] for day in DAYS if values[f"hours_{day}"]},
        timezone=_text(posted, "timezone"),
        holidays=words("holidays", "\n"),
        members={member: words(f"skills_{member}") for member in posted.getlist("members")},
    )


def _text(posted: QueryDict, name: str) -> str:
    return posted.get(name, "").replace("\0", "").strip()
