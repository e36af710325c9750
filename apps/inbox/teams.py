"""Create, change and delete teams, and say which members take new conversations."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from uuid import UUID, uuid5

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.bus.enums import Kind
from apps.bus.services import enqueue
from apps.inbox.enums import Assignment
from apps.inbox.models import Availability, DeskState, Team, TeamMember
from apps.inbox.queries import answering_member
from apps.inbox.staff import ADMINISTERING_ROLES, Staff, require_administrator, require_staff
from apps.sessions.models import ChatSession
from apps.tenants import visits
from apps.tenants.hours import Schedule, hours_problem
from apps.tenants.models import Tenant, User, Visit
from apps.tenants.queries import role_of
from apps.tenants.rules import forbidden_role
from kernel.clock import now
from kernel.error_codes import ErrorCode
from kernel.errors import NotFound, SilasError
from kernel.language import gettext
from kernel.named_rows import one_line, require_room, save_named, sound_name
from kernel.tenancy import current_tenant_id
from kernel.timezones import first_known_timezone, timezone_error

MAX_TEAMS, MAX_TEAM_NAME, MAX_QUEUES, MAX_HOLIDAYS, MAX_CAPACITY = 50, 60, 20, 60, 500
MAX_SKILLS, MAX_SKILL = 30, 40
# Who has had no page of the console open for so long takes nothing new.
PRESENT = timedelta(minutes=10)
# How often a team with waiting conversations is looked at again: the end of a snooze, for one, causes no look.
LOOK_EVERY = timedelta(minutes=5)
# A deletion of the team waits for this lock, and an assignment, which locks for an update without key, does not.
_KEPT = "SELECT * FROM inbox_team WHERE id = %s FOR KEY SHARE"


@dataclass(frozen=True)
class TeamFields:
    """What a person says of a team. `members`: the skills of each, by the member's id."""

    name: str
    queues: tuple[str, ...] = ()
    is_default: bool = False
    assignment: str = Assignment.OFF
    capacity: int = 10
    opening_hours: Mapping[str, str] = field(default_factory=dict)
    timezone: str = ""
    holidays: tuple[str, ...] = ()
    members: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def lock_team(by: Staff, team_id: UUID) -> Team:
    """The team, locked for a change by who may make it. Raises `NotFound`, 403 `forbidden_role`."""
    require_administrator(by)
    _lock_tenant()
    team: Team | None = Team.objects.select_for_update(of=("self",), no_key=True).filter(pk=team_id).first()
    if team is None:
        raise NotFound()
    return team


def save_team(by: Staff, fields: TeamFields, *, team_id: UUID | None = None) -> Team:
    """A new team, or the one with this id as it is from now on. Raises 400 `bad_team` for a field that is wrong,
    409 `name_taken`, `too_many` and `assignee_unfit`."""
    require_administrator(by)
    _require_sound(fields)
    team = lock_team(by, team_id) if team_id else _new()
    users = {answering_member(member_id): skills for member_id, skills in fields.members.items()}
    if fields.is_default:
        Team.objects.filter(is_default=True).exclude(pk=team.pk).update(is_default=False)
    team.name, team.queues, team.is_default = one_line(fields.name), list(fields.queues), fields.is_default
    team.assignment, team.capacity = Assignment(fields.assignment), fields.capacity
    team.opening_hours, team.timezone = dict(fields.opening_hours), fields.timezone
    team.holidays = sorted(set(fields.holidays))
    save_named(team)
    TeamMember.objects.filter(team=team).exclude(user__in=users).delete()
    for user, skills in users.items():
        TeamMember.objects.update_or_create(team=team, user=user, defaults={"skills": _skills(skills)})
    record(
        AuditEvent.TEAM_SAVED,
        actor=by.actor,
        subject=f"team:{team.pk}",
        data={"members": len(users), "assignment": team.assignment},
    )
    enqueue_assignment(team.pk)
    return team


def delete_team(by: Staff, team_id: UUID) -> None:
    """Its conversations stay, with their assignees and without a team."""
    lock_team(by, team_id).delete()
    # The deletion has waited for those who were giving it conversations just then (`kept_team`).
    DeskState.objects.filter(team_id=team_id).update(team=None)
    record(AuditEvent.TEAM_DELETED, actor=by.actor, subject=f"team:{team_id}")


def teams() -> list[Team]:
    return list(Team.objects.prefetch_related("members__user"))


def team_by_id(team_id: UUID) -> Team:
    """Raises `NotFound` for an unknown or foreign id."""
    team: Team | None = Team.objects.prefetch_related("members__user").filter(pk=team_id).first()
    if team is None:
        raise NotFound()
    return team


def kept_team(team_id: UUID) -> Team:
    """The team, protected from deletion until the commit. Raises as `team_by_id`.

    The lock is the one that a reference takes, so that it also waits for no team that assigns just now.
    """
    team: Team | None = next(iter(Team.objects.raw(_KEPT, [team_id])), None)
    if team is None:
        raise NotFound()
    return team


def team_for(queue: str) -> Team | None:
    """The team that answers a handover into this queue: the one that names it or is called so, else the default."""
    wanted, rows = queue.strip().casefold(), list(Team.objects.order_by("name", "pk"))
    if wanted:
        for team in rows:
            if wanted in {team.name.casefold(), *(name.casefold() for name in team.queues)}:
                return team
    return next((team for team in rows if team.is_default), None)


def team_of_handover(session: ChatSession, current: Team | None) -> Team | None:
    """The team that answers when this conversation waits for a person. Without a queue, the one that it has stays."""
    return current if current is not None and not session.wanted_queue else team_for(session.wanted_queue) or current


def schedule_of(session: ChatSession) -> Schedule | None:
    """The hours of the team that a handover goes to; None without a team."""
    team = _answering_team(session)
    return hours_of(team, session) if team else None


def is_available_for(session: ChatSession) -> bool:
    """Whether a member of the team that a handover goes to is available. True without a team, and for a team without
    automatic assignment, whose members may answer from anywhere."""
    team = _answering_team(session)
    if team is None or team.assignment == Assignment.OFF:
        return True
    return bool(available([member.user for member in team.members.select_related("user")]))


def _answering_team(session: ChatSession) -> Team | None:
    current = Team.objects.filter(pk__in=DeskState.objects.filter(session=session).values("team_id")).first()
    return team_of_handover(session, current)


def hours_of(team: Team, session: ChatSession) -> Schedule:
    """When the team answers this conversation. The hours of its chatbot are in the time zone of the chatbot."""
    deployment = session.deployment
    zone = first_known_timezone(deployment.timezone, deployment.tenant.timezone)
    if not team.opening_hours:
        return Schedule(deployment.opening_hours, zone, frozenset(team.holidays))
    return Schedule(team.opening_hours, first_known_timezone(team.timezone, zone), frozenset(team.holidays))


def set_away(by: Staff, member_id: UUID, *, away: bool) -> bool:
    """Say whether a member takes new conversations. Members say it of themselves; owners and programs of anyone who may
    answer. False if nothing changed."""
    require_staff(by)
    user = answering_member(str(member_id))
    if isinstance(by, User) and by.pk != user.pk and role_of(by) not in ADMINISTERING_ROLES:
        raise forbidden_role(ADMINISTERING_ROLES)
    Availability.objects.get_or_create(user=user, defaults={"changed_at": now()})
    if not Availability.objects.filter(user=user, away=not away).update(away=away, changed_at=now()):
        return False
    record(AuditEvent.AVAILABILITY_CHANGED, actor=by.actor, subject=f"user:{user.pk}", data={"away": away})
    if not away:
        enqueue_assignment_of(user.pk)
    return True


def away_among(users: Iterable[User]) -> set[UUID]:
    """Those who have said that they are away."""
    rows = Availability.objects.filter(user_id__in=[user.pk for user in users], away=True)
    return set(rows.values_list("user_id", flat=True))


def available(users: Collection[User]) -> set[UUID]:
    """Those who have the console open and are not away."""
    present = Visit.objects.filter(user_id__in=[user.pk for user in users], last_at__gte=now() - PRESENT)
    return set(present.values_list("user_id", flat=True)) - away_among(users)


def record_presence(user: User) -> None:
    """A member has a page of the console open. Who comes back gets what has waited for their teams."""
    was_here = Visit.objects.filter(user=user, last_at__gte=now() - PRESENT).exists()
    visits.record_visit(user)
    if not was_here:
        enqueue_assignment_of(user.pk)


def enqueue_assignment(team_id: UUID) -> None:
    """Have the conversations that wait for this team assigned, after the commit."""
    if Team.objects.filter(pk=team_id).exclude(assignment=Assignment.OFF).exists():
        _enqueue_assignment(team_id)


def enqueue_route(session_id: UUID) -> None:
    """Have a conversation that waits for a person routed to its team, after the commit."""
    if Team.objects.exists():
        enqueue(Kind.DESK_ROUTING, scope_id=session_id, payload={"about": "session"})


def enqueue_assignment_of(*member_ids: UUID | None) -> None:
    """Have what waits for the teams of these members assigned, after the commit: they can take something again."""
    freed = [member_id for member_id in member_ids if member_id]
    theirs = TeamMember.objects.filter(user_id__in=freed).exclude(team__assignment=Assignment.OFF)
    for team_id in set(theirs.values_list("team_id", flat=True)) if freed else ():
        _enqueue_assignment(team_id)


def enqueue_look(team_id: UUID, *, at: datetime) -> None:
    """Have what waits for this team looked at again then. One look is enqueued within each `LOOK_EVERY`."""
    place = int(at.timestamp() // LOOK_EVERY.total_seconds())
    # A scope of its own, so that what is due at once does not stand behind it.
    scope, payload = uuid5(team_id, "later"), {"about": "later", "team": str(team_id)}
    enqueue(Kind.DESK_ROUTING, scope_id=scope, payload=payload, due_at=at, message_id=f"look:{team_id}:{place}")


def _enqueue_assignment(team_id: UUID) -> None:
    enqueue(Kind.DESK_ROUTING, scope_id=team_id, payload={"about": "team"})


def _lock_tenant() -> None:
    """Change one team of the tenant at a time, so that the limit and the default hold."""
    Tenant.objects.select_for_update(no_key=True).filter(pk=current_tenant_id()).first()


def _new() -> Team:
    _lock_tenant()
    require_room(Team.objects.all(), MAX_TEAMS)
    return Team()


def _require_sound(fields: TeamFields) -> None:
    sound_name(fields.name, MAX_TEAM_NAME)
    problem = ""
    if len(fields.queues) > MAX_QUEUES or any(not queue or len(queue) > 80 for queue in fields.queues):
        problem = gettext("Name up to {most} queues.").format(most=MAX_QUEUES)
    elif fields.assignment not in Assignment.values:
        problem = gettext("Choose how conversations are assigned.")
    elif not 1 <= fields.capacity <= MAX_CAPACITY:
        problem = gettext("Capacity must be between 1 and {most}.").format(most=MAX_CAPACITY)
    elif len(fields.holidays) > MAX_HOLIDAYS or not all(_is_date(day) for day in fields.holidays):
        problem = gettext("Enter up to {most} holidays as dates such as 2026-12-25.").format(most=MAX_HOLIDAYS)
    elif not all(_are_skills(skills) for skills in fields.members.values()):
        problem = gettext("A member can have up to {most} skills of {length} characters.").format(
            most=MAX_SKILLS, length=MAX_SKILL
        )
    problem = problem or hours_problem(fields.opening_hours) or (fields.timezone and timezone_error(fields.timezone))
    if problem:
        raise SilasError(ErrorCode.BAD_TEAM, problem)


def _is_date(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def _skills(given: Iterable[str]) -> list[str]:
    return sorted({one_line(skill).casefold() for skill in given if one_line(skill)})


def _are_skills(given: tuple[str, ...]) -> bool:
    return len(given) <= MAX_SKILLS and all(len(one) <= MAX_SKILL for one in given)
