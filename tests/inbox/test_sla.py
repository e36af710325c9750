"""SLA policies: who sets them, which one holds, the clocks of conversations, what is missed, and where it is seen."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
import time_machine
from django.urls import reverse

from apps.audit.models import AuditEntry
from apps.autonomy.models import Notification
from apps.bus.enums import Kind
from apps.bus.models import QueueMessage
from apps.events.models import Event
from apps.inbox import handoff, queries, services, sla_policies, teams
from apps.inbox.enums import SlaOutcome, SlaTarget, Sort
from apps.inbox.models import SlaClock, SlaMoment, SlaPolicy
from apps.inbox.queries import Asked
from apps.inbox.signals import sla_missed
from apps.inbox.sla_policies import PolicyFields
from apps.inbox.teams import TeamFields
from apps.sessions import person_wanted, retention
from apps.sessions.locks import lock_session
from apps.sessions.models import ChatSession
from kernel.clock import now
from kernel.errors import NotFound, SilasError
from kernel.tenancy import tenant_scope
from tests.factories.api import code
from tests.factories.bus import carry_out_kinds
from tests.factories.console import browser
from tests.factories.sessions import make_session, say
from tests.factories.tenants import make_deployment, make_member, make_tenant
from tests.inbox.test_api import Api

PATH = "/api/v1/sla-policies"


@pytest.fixture
def session(deployment: Any) -> ChatSession:
    made = make_session(deployment)
    say(made, "A person please")
    return made


@pytest.fixture
def policy(tenant: Any, owner: Any) -> SlaPolicy:
    return save(tenant, owner)


def save(tenant: Any, by: Any, *, policy_id: Any = None, **fields: Any) -> SlaPolicy:
    given = {"name": "Standard", "first_reply": 30, "next_reply": 60, "resolution": 480, "in_opening_hours": False}
    with tenant_scope(tenant):
        return sla_policies.save_policy(by, PolicyFields(**(given | fields)), policy_id=policy_id)


def want(session: ChatSession) -> None:
    with tenant_scope(session.tenant_id):
        person_wanted.want_person(lock_session(session.pk), because=person_wanted.ASKED)


def act(session: ChatSession, what: Any, by: Any, *args: Any, **fields: Any) -> None:
    with tenant_scope(session.tenant_id):
        what(session.pk, by, *args, **fields)


def run(session: ChatSession) -> None:
    carry_out_kinds(session.tenant_id, Kind.SLA_CLOCKS)


def outcomes(session: ChatSession) -> dict[str, str]:
    """The last outcome of each target."""
    with tenant_scope(session.tenant_id):
        return dict(SlaClock.objects.filter(session=session).order_by("started_at").values_list("target", "outcome"))


def clock(session: ChatSession, target: SlaTarget) -> SlaClock:
    with tenant_scope(session.tenant_id):
        return SlaClock.objects.filter(session=session, target=target).latest("started_at")


def listed(session: ChatSession) -> queries.Listed:
    with tenant_scope(session.tenant_id):
        return queries.conversation(session.pk)


def page(tenant: Any, **asked: Any) -> list[Any]:
    with tenant_scope(tenant):
        return [one.session.pk for one in queries.conversations(Asked(**asked), None).rows]


def test_conversation_has_clocks_from_when_a_person_is_wanted(session: ChatSession, policy: SlaPolicy) -> None:
    run(session)
    assert outcomes(session) == {}
    want(session)
    run(session)
    assert outcomes(session) == {"first_reply": "running", "resolution": "running"}
    due = listed(session).clock
    assert due is not None
    assert due.target == SlaTarget.FIRST_REPLY
    with tenant_scope(session.tenant_id):
        wanted = ChatSession.objects.get(pk=session.pk).wanted_person_at
    assert wanted is not None
    assert due.due_at == wanted + timedelta(minutes=30)
    assert due.policy_id == policy.pk


def test_reply_meets_the_first_and_the_visitor_starts_the_next(
    session: ChatSession, policy: SlaPolicy, agent: Any
) -> None:
    act(session, handoff.take_over, agent)
    act(session, handoff.reply, agent, "Hello")
    run(session)
    assert outcomes(session) == {"first_reply": "met", "resolution": "running"}
    say(session, "And my parcel?")
    run(session)
    assert outcomes(session)["next_reply"] == "running"
    act(session, services.resolve, agent)
    run(session)
    assert outcomes(session) == {"first_reply": "met", "next_reply": "cancelled", "resolution": "met"}
    assert listed(session).clock is None
    say(session, "It did not work")
    run(session)
    assert outcomes(session) == {"first_reply": "met", "next_reply": "running", "resolution": "running"}


def test_snooze_moves_the_due_time_and_hides_the_clock(session: ChatSession, policy: SlaPolicy, agent: Any) -> None:
    want(session)
    run(session)
    before = clock(session, SlaTarget.FIRST_REPLY).due_at
    act(session, services.snooze, agent, until=now() + timedelta(hours=5))
    run(session)
    after = clock(session, SlaTarget.FIRST_REPLY).due_at
    assert before is not None
    assert after is not None
    assert timedelta(hours=4, minutes=59) < after - before <= timedelta(hours=5)
    assert listed(session).clock is None
    act(session, services.snooze, agent, until=None)
    run(session)
    assert clock(session, SlaTarget.FIRST_REPLY).due_at is None


def test_hand_back_cancels_the_clocks(session: ChatSession, policy: SlaPolicy, agent: Any) -> None:
    act(session, handoff.take_over, agent)
    act(session, handoff.hand_back, agent)
    run(session)
    assert outcomes(session) == {"first_reply": "cancelled", "resolution": "cancelled"}
    say(session, "Hello bot")
    run(session)
    with tenant_scope(session.tenant_id):
        assert SlaClock.objects.count() == 2


def test_missed_target_is_said_once(tenant: Any, session: ChatSession, policy: SlaPolicy, agent: Any) -> None:
    act(session, handoff.take_over, agent)
    run(session)
    with time_machine.travel(now() + timedelta(minutes=31)):
        run(session)
        run(session)
        say(session, "Are you there?")
        run(session)
    assert outcomes(session) == {"first_reply": "missed", "resolution": "running"}
    with tenant_scope(tenant):
        entry = AuditEntry.objects.get(event="sla_missed")
        notice = Notification.objects.get(about="sla_missed")
        event = Event.objects.get(type="sla.missed")
    assert entry.subject == f"session:{session.pk}"
    assert entry.actor == "system"
    assert notice.user_id == agent.pk
    assert notice.counts == {"times": 1}
    assert event.data["target"] == "first_reply"
    assert event.data["policy"] == str(policy.pk)
    opened = browser(agent).post(reverse("console-notice-read", args=[notice.pk]))
    assert opened["Location"] == "/console/inbox/?overdue=1&sort=due"
    act(session, handoff.reply, agent, "Sorry")
    run(session)
    missed = clock(session, SlaTarget.FIRST_REPLY)
    assert missed.outcome == SlaOutcome.MISSED
    assert missed.ended_at is not None


def test_event_of_a_policy_that_is_gone_names_none(tenant: Any, session: ChatSession) -> None:
    with tenant_scope(tenant):
        sla_missed(SlaClock(session=session, target=SlaTarget.FIRST_REPLY, due_at=now()), set())
    with tenant_scope(tenant):
        assert Event.objects.get(type="sla.missed").data["policy"] == ""


def test_job_is_due_when_the_clock_is(session: ChatSession, policy: SlaPolicy) -> None:
    want(session)
    run(session)
    due = clock(session, SlaTarget.FIRST_REPLY).due_at
    with tenant_scope(session.tenant_id):
        (waiting,) = QueueMessage.objects.filter(kind=Kind.SLA_CLOCKS, state="queued")
    assert due is not None
    assert waiting.available_at == due
    assert waiting.message_id == f"sla:{session.pk}:{due.timestamp():.6f}"


def test_team_is_told_where_nobody_is_assigned_and_owners_where_there_is_no_team(
    tenant: Any, deployment: Any, owner: Any, agent: Any, policy: SlaPolicy
) -> None:
    alone, of_team = make_session(deployment), make_session(deployment)
    with tenant_scope(tenant):
        team = teams.save_team(owner, TeamFields("Claims", members={str(agent.pk): ()}))
    for session in (alone, of_team):
        say(session, "A person please")
        want(session)
    act(of_team, services.set_team, owner, team_id=team.pk)
    run(alone)
    with time_machine.travel(now() + timedelta(minutes=31)):
        run(alone)
    with tenant_scope(tenant):
        told = set(Notification.objects.filter(about="sla_missed").values_list("user_id", flat=True))
    assert told == {agent.pk, None}


def test_first_policy_that_applies_holds(tenant: Any, deployment: Any, owner: Any, session: ChatSession) -> None:
    with tenant_scope(tenant):
        team = teams.save_team(owner, TeamFields("Claims"))
        other = make_deployment(tenant, title="Other")
    save(tenant, owner, name="Other bot", position=1, first_reply=1, deployments=[str(other.pk)])
    save(tenant, owner, name="Claims", position=2, first_reply=5, teams=[str(team.pk)])
    save(tenant, owner, name="Rest", position=3, first_reply=30, resolution=None)
    want(session)
    run(session)
    assert outcomes(session) == {"first_reply": "running"}
    started = clock(session, SlaTarget.FIRST_REPLY)
    assert started.due_at == started.started_at + timedelta(minutes=30)
    act(session, services.set_team, owner, team_id=team.pk)
    run(session)
    assert clock(session, SlaTarget.FIRST_REPLY).due_at == started.started_at + timedelta(minutes=5)


def test_opening_hours_of_the_team_count(tenant: Any, owner: Any, session: ChatSession) -> None:
    closed = (now() + timedelta(days=ahead) for ahead in range(-1, 2))
    with tenant_scope(tenant):
        teams.save_team(
            owner, TeamFields("Help", is_default=True, holidays=tuple(day.date().isoformat() for day in closed))
        )
    save(tenant, owner, in_opening_hours=True)
    want(session)
    run(session)
    due = clock(session, SlaTarget.FIRST_REPLY).due_at
    assert due is not None
    assert due > now() + timedelta(hours=20)


def test_change_of_a_policy_holds_for_clocks_that_run(
    tenant: Any, owner: Any, session: ChatSession, policy: SlaPolicy
) -> None:
    want(session)
    run(session)
    save(tenant, owner, policy_id=policy.pk, first_reply=90, resolution=None)
    run(session)
    first = clock(session, SlaTarget.FIRST_REPLY)
    assert first.due_at == first.started_at + timedelta(minutes=90)
    assert outcomes(session)["resolution"] == "cancelled"


def test_change_is_one_job_however_many_clocks_run(
    tenant: Any, deployment: Any, owner: Any, policy: SlaPolicy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("apps.inbox.sla_tracking._AT_ONCE", 2)
    sessions = [make_session(deployment) for _ in range(5)]
    for one in sessions:
        say(one, "A person please")
        want(one)
    run(sessions[0])
    with tenant_scope(tenant):
        before = QueueMessage.objects.filter(kind=Kind.SLA_CLOCKS).count()
    save(tenant, owner, policy_id=policy.pk, first_reply=90)
    with tenant_scope(tenant):
        assert QueueMessage.objects.filter(kind=Kind.SLA_CLOCKS).count() == before + 1
    for _ in range(3):  # two conversations at a time
        run(sessions[0])
    for one in sessions:
        first = clock(one, SlaTarget.FIRST_REPLY)
        assert first.due_at == first.started_at + timedelta(minutes=90)


def test_policy_counts_from_when_it_is_there(tenant: Any, owner: Any, session: ChatSession) -> None:
    want(session)
    save(tenant, owner)
    run(session)
    assert outcomes(session) == {}
    with tenant_scope(tenant):
        assert not SlaMoment.objects.exists()


def test_deleted_policy_ends_its_clocks_and_keeps_what_was_counted(
    tenant: Any, owner: Any, agent: Any, session: ChatSession, policy: SlaPolicy
) -> None:
    act(session, handoff.take_over, agent)
    act(session, handoff.reply, agent, "Hello")
    run(session)
    with tenant_scope(tenant):
        sla_policies.delete_policy(owner, policy.pk)
    run(session)
    assert outcomes(session) == {"first_reply": "met", "resolution": "cancelled"}
    with tenant_scope(tenant):
        assert not SlaMoment.objects.exists()
        assert AuditEntry.objects.filter(event="sla_policy_deleted", subject=f"sla_policy:{policy.pk}").exists()


def test_moments_are_forgotten_with_the_conversation(session: ChatSession, policy: SlaPolicy, agent: Any) -> None:
    act(session, handoff.take_over, agent)
    act(session, handoff.reply, agent, "Hello")
    run(session)
    assert outcomes(session) == {"first_reply": "met", "resolution": "running"}
    with tenant_scope(session.tenant_id):
        retention.forget_conversations([lock_session(session.pk)])
    with tenant_scope(session.tenant_id):
        assert not SlaMoment.objects.filter(session=session).exists()
    run(session)
    assert outcomes(session) == {"first_reply": "met", "resolution": "cancelled"}


def test_test_conversation_has_no_clock(session: ChatSession, policy: SlaPolicy) -> None:
    with tenant_scope(session.tenant_id):
        ChatSession.objects.filter(pk=session.pk).update(is_test=True)
    want(session)
    run(session)
    assert outcomes(session) == {}


def test_list_is_filtered_and_sorted_by_what_is_due(
    tenant: Any, deployment: Any, agent: Any, session: ChatSession, policy: SlaPolicy
) -> None:
    later, without = make_session(deployment), make_session(deployment)
    for each in (later, without):
        say(each, "Hello")
    want(session)
    with time_machine.travel(now() + timedelta(minutes=10)):
        want(later)
        run(session)
    assert page(tenant, sort=Sort.DUE) == [session.pk, later.pk]
    assert page(tenant, overdue=True) == []
    with time_machine.travel(now() + timedelta(minutes=31)):
        run(session)
    assert page(tenant, overdue=True) == [session.pk]
    api = Api(tenant)
    rows = api.get(sort="due", limit=1).json()
    assert [row["id"] for row in rows["sessions"]] == [str(session.pk)]
    assert rows["sessions"][0]["sla"]["target"] == "first_reply"
    assert rows["sessions"][0]["sla"]["is_missed"] is True
    rest = api.get(sort="due", limit=1, before=rows["next"]).json()
    assert [row["id"] for row in rest["sessions"]] == [str(later.pk)]
    assert rest["next"] == ""
    assert [row["id"] for row in api.get(overdue="true").json()["sessions"]] == [str(session.pk)]
    assert api.get(f"/api/v1/sessions/{without.pk}").json()["sla"] is None
    assert code(api.get(sort="newest")) == (400, "invalid")


def test_inbox_shows_what_is_due_and_overdue(tenant: Any, agent: Any, session: ChatSession, policy: SlaPolicy) -> None:
    want(session)
    run(session)
    client = browser(agent)
    assert "Reply due" in client.get("/console/inbox/?sort=due").content.decode()
    with time_machine.travel(now() + timedelta(minutes=31)):
        run(session)
    shown = client.get("/console/inbox/?overdue=1").content.decode()
    assert "Overdue by" in shown
    assert "Reply due" not in shown
    assert (
        'id="only-overdue" href="/console/inbox/?tab=all" aria-current="true">Overdue <span class="num">1</span>'
        in shown
    )
    assert (
        'id="only-overdue" href="/console/inbox/?tab=all&amp;overdue=1">'
        in client.get("/console/inbox/").content.decode()
    )
    activity = client.get("/console/activity/?show=everything").content.decode()
    assert "An SLA target was missed" in activity


def test_saved_view_keeps_the_filter_and_the_order(agent: Any) -> None:
    sent = {"page": "inbox", "query": "overdue=1&sort=due", "name": "Overdue"}
    answer = browser(agent).post(reverse("console-view-new"), sent)
    assert answer["Location"] == "/console/inbox/?overdue=1&sort=due"


def test_insights_count_met_and_missed(
    tenant: Any, deployment: Any, agent: Any, session: ChatSession, policy: SlaPolicy
) -> None:
    act(session, handoff.take_over, agent)
    act(session, handoff.reply, agent, "Hello")
    late = make_session(deployment)
    say(late, "Hello")
    want(late)
    run(session)
    with time_machine.travel(now() + timedelta(minutes=31)):
        run(session)
    figures = Api(tenant).get("/api/v1/insights").json()["conversations"]["sla"]
    assert figures == [{"target": "first_reply", "met": 1, "missed": 1}]
    shown = browser(agent).get("/console/insights/").content.decode()
    assert "First reply in time" in shown
    assert "1 of 2, 1 missed" in shown
    assert "Resolution in time" not in shown
    elsewhere = make_deployment(tenant, title="Other")
    assert Api(tenant).get("/api/v1/insights", deployment=str(elsewhere.pk)).json()["conversations"]["sla"] == []
    rows = browser(agent).get("/console/insights/file/").content.decode()
    assert "SLA, missed" in rows


def test_owner_sets_a_policy_on_its_page(tenant: Any, owner: Any, deployment: Any) -> None:
    client = browser(owner)
    sent = {
        "name": " Gold ",
        "first_reply": "90",
        "next_reply": "",
        "resolution": "48",
        "resolution_unit": "60",
        "in_opening_hours": "1",
        "deployments": [str(deployment.pk)],
        "position": "1",
    }
    made = client.post(reverse("console-sla-policy-new"), sent)
    assert made.status_code == 302, made.content
    with tenant_scope(tenant):
        policy = SlaPolicy.objects.get()
    assert policy.name == "Gold"
    assert policy.next_reply is None
    assert policy.deployments == [str(deployment.pk)]
    shown = client.get(reverse("console-sla-policies")).content.decode()
    assert "First reply within 1 h 30 min · Resolution within 2 days · in opening hours" in shown
    form = client.get(made["Location"])
    assert form.context["targets"] == [
        ("first_reply", SlaTarget.FIRST_REPLY.label, 90, "1"),
        ("next_reply", SlaTarget.NEXT_REPLY.label, None, "1"),
        ("resolution", SlaTarget.RESOLUTION.label, 48, "60"),
    ]
    assert '<option value="60" selected>hours</option>' in form.content.decode()
    unknown = client.post(made["Location"], sent | {"first_reply": "90", "first_reply_unit": "x"})
    assert unknown.status_code == 302
    with tenant_scope(tenant):
        assert SlaPolicy.objects.get().first_reply == 90
    too_long = client.post(made["Location"], sent | {"first_reply": "999999", "first_reply_unit": "60"})
    assert too_long.status_code == 400
    wrong = client.post(made["Location"], sent | {"first_reply": "soon"})
    assert wrong.status_code == 400
    assert "A time must be between" in wrong.content.decode()
    saved = client.post(made["Location"], sent | {"in_opening_hours": "0"})
    assert "Saved" in client.get(saved["Location"]).content.decode()
    assert client.post(reverse("console-sla-policy-delete", args=[policy.pk])).status_code == 302
    assert "No policies yet" in client.get(reverse("console-sla-policies")).content.decode()


@pytest.mark.parametrize("role", ["approver", "agent", "viewer"])
def test_only_owners_change_policies(tenant: Any, policy: SlaPolicy, role: str) -> None:
    member = make_member(tenant, role)
    client = browser(member)
    assert client.get(reverse("console-sla-policies")).status_code == 200
    assert client.get(reverse("console-sla-policy", args=[policy.pk])).status_code == 403
    assert client.post(reverse("console-sla-policy-new"), {"name": "X"}).status_code == 403
    assert client.post(reverse("console-sla-policy-delete", args=[policy.pk])).status_code == 403
    api = Api(tenant, member=member)
    assert api.get(PATH).status_code == 200
    assert api.send("post", PATH, {"name": "X", "first_reply": 5}).status_code == 403
    assert api.send("patch", f"{PATH}/{policy.pk}", {"first_reply": 5}).status_code == 403
    assert api.send("delete", f"{PATH}/{policy.pk}", None).status_code == 403


def test_program_sets_changes_and_deletes_a_policy(tenant: Any, deployment: Any) -> None:
    api = Api(tenant)
    made = api.send("post", PATH, {"name": "Gold", "first_reply": 15, "deployments": [str(deployment.pk)]})
    assert made.status_code == 201, made.content
    path = f"{PATH}/{made.json()['id']}"
    assert made.json()["in_opening_hours"] is True
    assert made.json()["resolution"] is None
    changed = api.send("patch", path, {"first_reply": None, "resolution": 60})
    assert changed.json()["first_reply"] is None
    assert changed.json()["resolution"] == 60
    assert changed.json()["deployments"] == [str(deployment.pk)]
    assert [row["name"] for row in api.get(PATH).json()["sla_policies"]] == ["Gold"]
    assert api.send("delete", path, None).status_code == 204
    assert api.get(path).status_code == 404


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"name": "A"}, (400, "bad_sla_policy")),
        ({"name": "A", "first_reply": 0}, (400, "invalid")),
        ({"name": "A", "first_reply": -5}, (400, "invalid")),
        ({"name": "A", "first_reply": "soon"}, (400, "invalid")),
        ({"name": "A", "resolution": 10**7}, (400, "invalid")),
        ({"name": "", "first_reply": 5}, (400, "invalid")),
        ({"name": "A", "first_reply": 5, "position": 0}, (400, "invalid")),
        ({"name": "A", "first_reply": 5, "teams": [str(uuid4())]}, (400, "bad_sla_policy")),
        ({"name": "A", "first_reply": 5, "teams": ["x"]}, (400, "invalid")),
        ({"name": "A", "first_reply": 5, "deployments": "x"}, (400, "invalid")),
        ({"name": "A", "first_reply": 5, "colour": "red"}, (400, "invalid")),
        ({"name": "standard", "first_reply": 5}, (409, "name_taken")),
    ],
)
def test_policy_that_means_nothing_is_refused(
    tenant: Any, policy: SlaPolicy, body: dict[str, Any], expected: tuple[int, str]
) -> None:
    assert code(Api(tenant).send("post", PATH, body)) == expected


def test_foreign_policy_team_and_chatbot_are_unknown(tenant: Any, policy: SlaPolicy) -> None:
    stranger = make_tenant()
    api, foreign = Api(stranger), make_deployment(tenant, title="Foreign")
    for verb, body in (("patch", {"first_reply": 5}), ("delete", None)):
        assert code(api.send(verb, f"{PATH}/{policy.pk}", body)) == (404, "not_found")
    assert code(api.get(f"{PATH}/{policy.pk}")) == (404, "not_found")
    sent = {"name": "A", "first_reply": 5, "deployments": [str(foreign.pk)]}
    assert code(api.send("post", PATH, sent)) == (400, "bad_sla_policy")
    assert api.get(PATH).json() == {"sla_policies": []}
    with tenant_scope(stranger), pytest.raises(NotFound):
        sla_policies.sla_policy(policy.pk)


def test_there_is_a_limit_to_policies(tenant: Any, owner: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sla_policies, "MAX_POLICIES", 1)
    save(tenant, owner)
    with pytest.raises(SilasError) as refusal:
        save(tenant, owner, name="Another")
    assert refusal.value.code == "too_many"


def test_policy_whose_teams_are_all_deleted_says_so(tenant: Any, owner: Any) -> None:
    with tenant_scope(tenant):
        team = teams.save_team(owner, TeamFields("Claims"))
    policy = save(tenant, owner, teams=[str(team.pk)])
    with tenant_scope(tenant):
        teams.delete_team(owner, team.pk)
    shown = browser(owner).get(reverse("console-sla-policies")).content.decode()
    assert "This policy applies to nothing" in shown
    # What was deleted may stay in it until somebody chooses something else.
    save(tenant, owner, policy_id=policy.pk, name="Renamed", teams=[str(team.pk)])
