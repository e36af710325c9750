"""Teams, their hours, and automatic assignment of handovers."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
import time_machine
from django.db import connection
from django.test.utils import CaptureQueriesContext

from apps.audit.models import AuditEntry
from apps.bus.enums import Kind
from apps.bus.models import QueueMessage
from apps.inbox import assignment, handoff, queries, rules, services, teams
from apps.inbox.enums import Assignment, Priority
from apps.inbox.models import DeskState, Team
from apps.inbox.queries import Asked
from apps.inbox.rules import Candidate
from apps.inbox.teams import TeamFields
from apps.sessions import person_wanted
from apps.sessions.locks import lock_session
from apps.sessions.models import ChatSession
from apps.tenants.enums import KeyScope
from apps.tenants.hours import Schedule, is_open, next_opening
from apps.tenants.models import Visit
from kernel.clock import now
from kernel.errors import NotFound, SilasError
from kernel.tenancy import tenant_scope
from tests.factories.api import Api
from tests.factories.bus import carry_out_kinds
from tests.factories.sessions import make_session, say
from tests.factories.tenants import make_deployment, make_member, make_tenant
from tests.rivals import interrupted, race

A, B, C = sorted(uuid4() for _ in range(3))


def make_team(owner: Any, tenant: Any, *members: Any, **fields: Any) -> Team:
    skills = fields.pop("skills", {})
    listed = {str(user.pk): tuple(skills.get(user.pk, ())) for user in members}
    with tenant_scope(tenant):
        for user in members:
            Visit.objects.update_or_create(user=user, defaults={"since": now(), "last_at": now()})
        return teams.save_team(owner, TeamFields(**{"name": "Claims", "members": listed, **fields}))


def wait(deployment: Any, queue: str = "", language: str = "") -> ChatSession:
    session = make_session(deployment)
    say(session, "I want a person")
    with tenant_scope(deployment.tenant_id):
        locked = lock_session(session.pk)
        if language:
            locked.language = language
            locked.save(update_fields=["language"])
        person_wanted.want_person(locked, queue=queue, because=person_wanted.ASKED)
    return session


def route(tenant: Any) -> None:
    carry_out_kinds(tenant, Kind.DESK_ROUTING)


def desk(session: ChatSession) -> DeskState:
    with tenant_scope(session.tenant_id):
        found: DeskState = DeskState.objects.select_related("assignee", "team").get(session=session)
    return found


# --- whom the rules choose


def _choose(how: Assignment, *candidates: Candidate, **given: Any) -> tuple[UUID, str] | None:
    chosen = rules.choose_assignee(how, candidates, **{"capacity": 5, **given})
    return (chosen.member, chosen.why) if chosen else None


def test_turns_go_on_behind_the_last_one_and_start_again() -> None:
    three = [Candidate(A, 0), Candidate(B, 3), Candidate(C, 1)]
    assert _choose(Assignment.ROUND_ROBIN, *three) == (A, "round_robin")
    assert _choose(Assignment.ROUND_ROBIN, *three, last=A) == (B, "round_robin")
    assert _choose(Assignment.ROUND_ROBIN, *three, last=C) == (A, "round_robin")


def test_turns_skip_whoever_is_full() -> None:
    assert _choose(Assignment.ROUND_ROBIN, Candidate(A, 0), Candidate(B, 5), Candidate(C, 0), last=A) == (
        C,
        "round_robin",
    )


def test_least_load_takes_the_first_of_equals() -> None:
    assert _choose(Assignment.LEAST_LOAD, Candidate(A, 2), Candidate(B, 1), Candidate(C, 1)) == (B, "least_load")


def test_skill_counts_more_than_load_and_load_decides_without_one() -> None:
    skilled = Candidate(C, 4, frozenset({"de"}))
    assert _choose(Assignment.SKILL, Candidate(A, 0), skilled, wanted=frozenset({"de"})) == (C, "skill")
    assert _choose(Assignment.SKILL, Candidate(A, 0), skilled, wanted=frozenset({"fr"})) == (A, "no_skill")


@pytest.mark.parametrize("how", [Assignment.ROUND_ROBIN, Assignment.LEAST_LOAD, Assignment.SKILL])
def test_nobody_gets_more_than_the_capacity(how: Assignment) -> None:
    assert _choose(how, Candidate(A, 5), Candidate(B, 6)) is None
    assert _choose(how) is None


def test_off_chooses_nobody() -> None:
    assert _choose(Assignment.OFF, Candidate(A, 0)) is None


# --- handovers


def test_handover_goes_to_the_team_of_its_queue_and_to_an_available_member(
    tenant: Any, deployment: Any, owner: Any, agent: Any
) -> None:
    make_team(owner, tenant, owner, name="Everyone", is_default=True)
    team = make_team(owner, tenant, agent, queues=("damage",), assignment="least_load")
    session = wait(deployment, "Damage")
    route(tenant)
    assert desk(session).team == team
    assert desk(session).assignee == agent
    with tenant_scope(tenant):
        entry = AuditEntry.objects.get(event="conversation_assigned")
    assert entry.actor == "system"
    assert json.loads(entry.data) == {"to": str(agent.pk), "team": str(team.pk), "why": "least_load"}


def test_handover_without_a_queue_goes_to_the_default_team_and_assigns_nobody_when_off(
    tenant: Any, deployment: Any, owner: Any, agent: Any
) -> None:
    team = make_team(owner, tenant, agent, is_default=True)
    session = wait(deployment)
    route(tenant)
    assert desk(session).team == team
    assert desk(session).assignee is None


def test_team_that_a_person_chose_stays_when_the_visitor_names_no_queue(
    tenant: Any, deployment: Any, owner: Any, agent: Any
) -> None:
    make_team(owner, tenant, agent, name="Default", is_default=True)
    chosen = make_team(owner, tenant, agent)
    session = make_session(deployment)
    say(session, "Hello")
    with tenant_scope(tenant):
        services.set_team(session.pk, agent, team_id=chosen.pk)
        person_wanted.want_person(lock_session(session.pk), because=person_wanted.ASKED)
    route(tenant)
    assert desk(session).team == chosen


def test_away_member_gets_nothing_until_they_are_back(tenant: Any, deployment: Any, owner: Any, agent: Any) -> None:
    make_team(owner, tenant, agent, is_default=True, assignment="round_robin")
    with tenant_scope(tenant):
        teams.set_away(agent, agent.pk, away=True)
    session = wait(deployment)
    route(tenant)
    assert desk(session).assignee is None
    with tenant_scope(tenant):
        teams.set_away(agent, agent.pk, away=False)
    route(tenant)
    assert desk(session).assignee == agent


def test_member_without_the_console_open_gets_nothing_until_they_open_it(
    tenant: Any, deployment: Any, owner: Any, agent: Any
) -> None:
    make_team(owner, tenant, agent, is_default=True, assignment="least_load")
    with tenant_scope(tenant):
        Visit.objects.filter(user=agent).update(last_at=now() - timedelta(minutes=11))
    session = wait(deployment)
    route(tenant)
    assert desk(session).assignee is None
    with tenant_scope(tenant):
        teams.record_presence(agent)
    route(tenant)
    assert desk(session).assignee == agent


def test_capacity_holds_and_a_resolved_conversation_frees_it(
    tenant: Any, deployment: Any, owner: Any, agent: Any
) -> None:
    make_team(owner, tenant, agent, is_default=True, assignment="least_load", capacity=1)
    first, second = wait(deployment), wait(deployment)
    route(tenant)
    assert desk(first).assignee == agent
    assert desk(second).assignee is None
    with tenant_scope(tenant):
        services.resolve(first.pk, agent)
    route(tenant)
    assert desk(second).assignee == agent


def test_skill_is_found_by_the_language_of_the_visitor(tenant: Any, deployment: Any, owner: Any, agent: Any) -> None:
    other = make_member(tenant, "agent")
    make_team(owner, tenant, agent, other, is_default=True, assignment="skill", skills={other.pk: (" DE ",)})
    session = wait(deployment, language="de")
    route(tenant)
    assert desk(session).assignee == other


def test_two_rivals_assign_each_conversation_once_and_keep_the_capacity(
    tenant: Any, deployment: Any, owner: Any, agent: Any
) -> None:
    other = make_member(tenant, "agent")
    team = make_team(owner, tenant, agent, other, is_default=True, assignment="round_robin", capacity=2)
    waiting = [wait(deployment) for _ in range(5)]
    with tenant_scope(tenant):
        for session in waiting:
            assignment.route(session.pk)

    def assign() -> int:
        with tenant_scope(tenant):
            return assignment.assign_waiting(team.pk)

    assert sorted(race(assign, assign)) == [0, 4]
    assert [desk(session).assignee is None for session in waiting] == [False] * 4 + [True]
    with tenant_scope(tenant):
        assert AuditEntry.objects.filter(event="conversation_assigned").count() == 4


def test_conversation_that_a_person_took_is_left_alone(tenant: Any, deployment: Any, owner: Any, agent: Any) -> None:
    make_team(owner, tenant, agent, is_default=True, assignment="least_load")
    session = wait(deployment)
    with tenant_scope(tenant):
        handoff.take_over(session.pk, owner)
    route(tenant)
    with tenant_scope(tenant):
        assert not AuditEntry.objects.filter(event="conversation_assigned").exists()


# --- teams


@pytest.mark.parametrize("who", ["approver", "agent", "viewer", "stranger"])
def test_only_owners_change_teams(tenant: Any, owner: Any, who: str, request: Any) -> None:
    team = make_team(owner, tenant)
    by = request.getfixturevalue(who)
    with tenant_scope(tenant):
        for change in (
            lambda: teams.save_team(by, TeamFields(name="Mine")),
            lambda: teams.save_team(by, TeamFields(name="Mine"), team_id=team.pk),
            lambda: teams.delete_team(by, team.pk),
        ):
            with pytest.raises(SilasError) as refusal:
                change()
            assert refusal.value.code == "forbidden_role"


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"name": " \0 "}, "bad_name"),
        ({"name": "x" * 61}, "bad_name"),
        ({"assignment": "lottery"}, "bad_team"),
        ({"capacity": 0}, "bad_team"),
        ({"capacity": 501}, "bad_team"),
        ({"holidays": ("25.12.2026",)}, "bad_team"),
        ({"holidays": ("2026-02-30",)}, "bad_team"),
        ({"opening_hours": {"someday": "09:00-12:00"}}, "bad_team"),
        ({"timezone": "Mars/Olympus"}, "bad_team"),
        ({"queues": ("",)}, "bad_team"),
        ({"members": {str(uuid4()): ()}}, "assignee_unfit"),
        ({"members": {"nobody": ()}}, "assignee_unfit"),
    ],
)
def test_team_that_cannot_be_is_refused(tenant: Any, owner: Any, fields: dict[str, Any], code: str) -> None:
    with pytest.raises(SilasError) as refusal, tenant_scope(tenant):
        teams.save_team(owner, TeamFields(**{"name": "Claims", **fields}))
    assert refusal.value.code == code


def test_two_teams_have_two_names_and_one_of_them_is_the_default(tenant: Any, owner: Any) -> None:
    first = make_team(owner, tenant, is_default=True)
    with pytest.raises(SilasError) as refusal:
        make_team(owner, tenant, name="CLAIMS")
    second = make_team(owner, tenant, name="Sales", is_default=True)
    assert refusal.value.code == "name_taken"
    with tenant_scope(tenant):
        assert list(Team.objects.filter(is_default=True)) == [second]
        assert teams.team_for("claims") == first
        assert teams.team_for("unknown") == second


def test_another_companys_team_is_not_found(tenant: Any, owner: Any, deployment: Any, agent: Any) -> None:
    other = make_tenant()
    foreign = make_team(make_member(other, "owner"), other)
    session = make_session(deployment)
    with tenant_scope(tenant):
        with pytest.raises(NotFound):
            teams.save_team(owner, TeamFields(name="Mine"), team_id=foreign.pk)
        with pytest.raises(NotFound):
            services.set_team(session.pk, agent, team_id=foreign.pk)
        assert teams.teams() == []


def test_deleted_team_leaves_its_conversations_with_their_assignee(
    tenant: Any, deployment: Any, owner: Any, agent: Any
) -> None:
    team = make_team(owner, tenant, agent, is_default=True, assignment="least_load")
    session = wait(deployment)
    route(tenant)
    with tenant_scope(tenant):
        teams.delete_team(owner, team.pk)
    assert desk(session).team is None
    assert desk(session).assignee == agent


def test_list_is_narrowed_to_a_team(tenant: Any, deployment: Any, owner: Any, agent: Any) -> None:
    team = make_team(owner, tenant, agent, queues=("damage",))
    mine, _ = wait(deployment, "damage"), wait(deployment)
    route(tenant)
    with tenant_scope(tenant):
        rows = queries.conversations(Asked(team=team.pk), agent).rows
    assert [row.session.pk for row in rows] == [mine.pk]
    assert rows[0].standing.team == team


def test_priority_is_kept_and_logged_once(deployment: Any, agent: Any) -> None:
    session = make_session(deployment)
    with tenant_scope(session.tenant_id):
        assert services.set_priority(session.pk, agent, Priority.URGENT)
        assert not services.set_priority(session.pk, agent, Priority.URGENT)
    with tenant_scope(session.tenant_id):
        assert AuditEntry.objects.filter(event="conversation_prioritised").count() == 1
    assert desk(session).priority == "urgent"


def test_members_change_their_own_availability_and_owners_everybodys(tenant: Any, owner: Any, agent: Any) -> None:
    with tenant_scope(tenant):
        with pytest.raises(SilasError) as refusal:
            teams.set_away(agent, owner.pk, away=True)
        assert teams.set_away(owner, agent.pk, away=True)
        assert not teams.set_away(agent, agent.pk, away=True)
        assert teams.away_among([agent, owner]) == {agent.pk}
    assert refusal.value.code == "forbidden_role"


# --- hours

WEEK = dict.fromkeys(("mon", "tue", "wed", "thu", "fri"), "08:00-12:00, 13:00-17:00")
FRIDAY = datetime(2026, 12, 18, 16, 0, tzinfo=UTC)  # 16:00 in London


def test_holiday_is_closed_all_day_and_skipped() -> None:
    christmas = datetime(2026, 12, 25, 9, 0, tzinfo=UTC)
    closed = {"zone": "Europe/London", "holidays": ("2026-12-25", "2026-12-28")}
    assert is_open(WEEK, zone="Europe/London", moment=christmas)
    assert not is_open(WEEK, moment=christmas, **closed)
    assert next_opening(WEEK, moment=christmas, **closed) == datetime(2026, 12, 29, 8, 0, tzinfo=UTC)
    assert not is_open({}, moment=christmas, **closed)


def test_team_hours_decide_what_a_waiting_visitor_reads(tenant: Any, owner: Any) -> None:
    deployment = make_deployment(tenant, opening_hours={}, timezone="Europe/London")
    make_team(owner, tenant, queues=("damage",), opening_hours=WEEK, holidays=("2026-12-21",))
    with time_machine.travel(datetime(2026, 12, 19, 10, 0, tzinfo=UTC), tick=False):
        told, open_elsewhere = wait(deployment, "damage"), wait(deployment)
    with tenant_scope(tenant):
        assert "We'll be back Tuesday at 08:00" in ChatSession.objects.get(pk=told.pk).preview
        assert ChatSession.objects.get(pk=open_elsewhere.pk).preview == "I want a person"


def test_day_far_away_is_told_with_its_date(tenant: Any, owner: Any) -> None:
    deployment = make_deployment(tenant, timezone="Europe/London")
    days = tuple(f"2026-12-{day}" for day in range(19, 32))
    make_team(owner, tenant, is_default=True, opening_hours=WEEK, holidays=days)
    with time_machine.travel(datetime(2026, 12, 19, 10, 0, tzinfo=UTC), tick=False):
        told = wait(deployment)
    with tenant_scope(tenant):
        assert "Friday, 1 January at 08:00" in ChatSession.objects.get(pk=told.pk).preview


def test_two_teams_that_assign_at_once_keep_the_capacity_of_a_member_in_both(
    tenant: Any, deployment: Any, owner: Any, agent: Any
) -> None:
    first = make_team(owner, tenant, agent, name="First", queues=("one",), assignment="least_load", capacity=2)
    second = make_team(owner, tenant, agent, name="Second", queues=("two",), assignment="least_load", capacity=2)
    waiting = [wait(deployment, queue) for queue in ("one", "two") * 2]
    with tenant_scope(tenant):
        for session in waiting:
            assignment.route(session.pk)

    def assign(team: Team) -> Callable[[Callable[[], None]], int]:
        def run(meet: Callable[[], None] = lambda: None) -> int:
            with tenant_scope(tenant):
                number = assignment.assign_waiting(team.pk)
                meet()
                return number

        return run

    assert interrupted(assign(first), assign(second)) == [2, 0]
    with tenant_scope(tenant):
        assert queries.loads_of([agent.pk]) == {agent.pk: 2}


@pytest.mark.parametrize("how", ["snooze", "unassign", "give to another"])
def test_room_for_another_conversation_is_noticed(
    tenant: Any, deployment: Any, owner: Any, agent: Any, how: str
) -> None:
    make_team(owner, tenant, agent, is_default=True, assignment="least_load", capacity=1)
    first, second = wait(deployment), wait(deployment)
    route(tenant)
    with tenant_scope(tenant):
        services.set_priority(second.pk, agent, Priority.URGENT)
        if how == "snooze":
            services.snooze(first.pk, agent, until=now() + timedelta(hours=3))
        else:
            services.assign(first.pk, agent, to=owner if how == "give to another" else None)
    route(tenant)
    assert desk(second).assignee == agent


def test_conversation_handed_back_leaves_room_for_another(tenant: Any, deployment: Any, owner: Any, agent: Any) -> None:
    make_team(owner, tenant, agent, is_default=True, assignment="least_load", capacity=1)
    taken = make_session(deployment)
    say(taken, "Hello")
    with tenant_scope(tenant):
        handoff.take_over(taken.pk, agent)
    session = wait(deployment)
    route(tenant)
    assert desk(session).assignee is None
    with tenant_scope(tenant):
        handoff.hand_back(taken.pk, agent)
    route(tenant)
    assert desk(session).assignee == agent


def test_conversation_taken_from_its_assignee_counts_for_both(
    tenant: Any, deployment: Any, owner: Any, agent: Any
) -> None:
    session = make_session(deployment)
    say(session, "Hello")
    with tenant_scope(tenant):
        services.assign(session.pk, agent, to=agent)
        handoff.take_over(session.pk, owner)
        assert queries.loads_of([agent.pk, owner.pk]) == {agent.pk: 1, owner.pk: 1}


def test_urgent_conversations_are_assigned_first(tenant: Any, deployment: Any, owner: Any, agent: Any) -> None:
    team = make_team(owner, tenant, agent, is_default=True, assignment="least_load", capacity=2)
    low, plain, urgent = (wait(deployment) for _ in range(3))
    with tenant_scope(tenant):
        for session in (low, plain, urgent):
            assignment.route(session.pk)
        services.set_priority(low.pk, agent, Priority.LOW)
        services.set_priority(urgent.pk, agent, Priority.URGENT)
        assert assignment.assign_waiting(team.pk) == 2
    assert desk(urgent).assignee == agent
    assert desk(plain).assignee == agent
    assert desk(low).assignee is None


def test_what_waits_is_looked_at_again_once_within_five_minutes(
    tenant: Any, deployment: Any, owner: Any, agent: Any
) -> None:
    team = make_team(owner, tenant, agent, is_default=True, assignment="least_load", capacity=1)
    first, _ = wait(deployment), wait(deployment)
    route(tenant)
    with tenant_scope(tenant):
        looks = QueueMessage.objects.filter(kind=Kind.DESK_ROUTING, payload__about="later")
        assignment.assign_waiting(team.pk)
        assert looks.count() == 1
        assert looks.get().available_at > now() + timedelta(minutes=4)
    assert desk(first).assignee == agent
    with tenant_scope(tenant):  # nobody is told
        DeskState.objects.filter(session=first).update(assignee=None)
    route(tenant)
    with tenant_scope(tenant):
        assert queries.loads_of([agent.pk]) == {agent.pk: 1}


def test_closed_team_assigns_nobody_until_it_opens(tenant: Any, deployment: Any, owner: Any, agent: Any) -> None:
    with time_machine.travel(datetime(2026, 12, 19, 10, 0, tzinfo=UTC), tick=False):  # a Saturday
        team = make_team(
            owner, tenant, agent, is_default=True, assignment="least_load", opening_hours=WEEK, timezone="Europe/London"
        )
        session = wait(deployment)
        route(tenant)
        assert desk(session).team == team
        assert desk(session).assignee is None
    with time_machine.travel(datetime(2026, 12, 21, 8, 0, tzinfo=UTC), tick=False), tenant_scope(tenant):
        Visit.objects.filter(user=agent).update(last_at=now())
        assert assignment.assign_waiting(team.pk) == 1


def test_hours_are_those_of_the_team_that_a_person_chose(tenant: Any, owner: Any, agent: Any) -> None:
    deployment = make_deployment(tenant, opening_hours={}, timezone="Europe/London")
    team = make_team(owner, tenant, agent, opening_hours=WEEK)
    session = make_session(deployment)
    say(session, "Hello")
    with tenant_scope(tenant):
        services.set_team(session.pk, agent, team_id=team.pk)
        schedule = teams.schedule_of(ChatSession.objects.get(pk=session.pk))
    assert schedule is not None
    assert schedule.hours == WEEK


def test_hours_of_the_chatbot_stay_in_its_time_zone(tenant: Any, owner: Any, agent: Any) -> None:
    deployment = make_deployment(tenant, opening_hours=WEEK, timezone="Europe/London")
    make_team(owner, tenant, agent, is_default=True, timezone="Asia/Tokyo", holidays=("2026-12-21",))
    session = make_session(deployment)
    with tenant_scope(tenant):
        schedule = teams.schedule_of(ChatSession.objects.get(pk=session.pk))
    assert schedule == Schedule(WEEK, "Europe/London", frozenset({"2026-12-21"}))


SATURDAY = datetime(2026, 12, 19, 10, 0, tzinfo=UTC)


def _told(session: ChatSession) -> dict[str, object]:
    with tenant_scope(session.tenant_id):
        return person_wanted.team_of(ChatSession.objects.get(pk=session.pk))


def test_visitor_is_told_of_the_chatbots_hours_without_a_query_for_teams(tenant: Any, owner: Any, agent: Any) -> None:
    deployment = make_deployment(tenant, opening_hours=WEEK, timezone="Europe/London")
    make_team(owner, tenant, agent, is_default=True, timezone="Asia/Tokyo")
    session = make_session(deployment)
    with time_machine.travel(SATURDAY, tick=False), CaptureQueriesContext(connection) as queries_made:
        told = _told(session)
    assert told == {"open": False, "opens_at": "2026-12-21T08:00:00+00:00"}
    assert not [query for query in queries_made if "inbox_team" in query["sql"]]


def test_visitor_who_waits_is_told_of_the_hours_of_their_team(tenant: Any, owner: Any, agent: Any) -> None:
    make_team(owner, tenant, agent, is_default=True, opening_hours=WEEK, timezone="Europe/London")
    session = wait(make_deployment(tenant, opening_hours={}))
    with time_machine.travel(SATURDAY, tick=False):
        assert _told(session) == {"open": False, "opens_at": "2026-12-21T08:00:00+00:00"}


def test_visitor_who_waits_is_told_when_nobody_of_the_team_is_available(
    tenant: Any, deployment: Any, owner: Any, agent: Any
) -> None:
    make_team(owner, tenant, agent, is_default=True, assignment="round_robin")
    session = wait(deployment)
    assert _told(session) == {"open": True, "opens_at": None}
    with tenant_scope(tenant):
        teams.set_away(agent, agent.pk, away=True)
    assert _told(session) == {"open": False, "opens_at": None}


def test_team_without_automatic_assignment_may_answer_from_anywhere(
    tenant: Any, deployment: Any, owner: Any, agent: Any
) -> None:
    make_team(owner, tenant, agent, is_default=True)
    session = wait(deployment)
    with tenant_scope(tenant):
        Visit.objects.all().delete()
    assert _told(session) == {"open": True, "opens_at": None}


def test_two_who_make_their_team_the_default_leave_one(tenant: Any, owner: Any) -> None:
    made = [make_team(owner, tenant, name=name) for name in ("First", "Second")]

    def make_default(team: Team) -> Callable[[], Any]:
        def run(meet: Callable[[], None] = lambda: None) -> Any:
            with tenant_scope(tenant):
                saved = teams.save_team(owner, TeamFields(name=team.name, is_default=True), team_id=team.pk)
                meet()
                return saved.pk

        return run

    assert interrupted(make_default(made[0]), make_default(made[1])) == [made[0].pk, made[1].pk]
    with tenant_scope(tenant):
        assert Team.objects.get(is_default=True) == made[1]


def test_team_is_not_deleted_while_a_conversation_is_given_to_it(
    tenant: Any, deployment: Any, owner: Any, agent: Any
) -> None:
    team = make_team(owner, tenant, agent)
    session = make_session(deployment)

    def give(meet: Callable[[], None]) -> Any:
        with tenant_scope(tenant):
            given = services.set_team(session.pk, agent, team_id=team.pk)
            meet()
            return given

    def delete() -> Any:
        with tenant_scope(tenant):
            return teams.delete_team(owner, team.pk)

    assert interrupted(give, delete) == [True, None]
    assert desk(session).team is None


def test_conversation_is_not_given_to_a_team_that_is_being_deleted(
    tenant: Any, deployment: Any, owner: Any, agent: Any
) -> None:
    team = make_team(owner, tenant, agent)
    session = make_session(deployment)

    def delete(meet: Callable[[], None]) -> Any:
        with tenant_scope(tenant):
            teams.delete_team(owner, team.pk)
            meet()

    def give() -> Any:
        with tenant_scope(tenant):
            return services.set_team(session.pk, agent, team_id=team.pk)

    _, refused = interrupted(delete, give)
    assert isinstance(refused, NotFound)


def test_availability_of_many_takes_as_many_queries_as_of_one(tenant: Any, owner: Any) -> None:
    api = Api(tenant, KeyScope.SETTINGS_READ)
    api.get("/api/v1/availability")  # the first use of a key is written down
    with CaptureQueriesContext(connection) as alone:
        assert len(api.get("/api/v1/availability").json()["members"]) == 1
    for _ in range(3):
        make_member(tenant, "agent")
    with CaptureQueriesContext(connection) as many:
        assert len(api.get("/api/v1/availability").json()["members"]) == 4
    assert len(many) == len(alone)
