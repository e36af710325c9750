"""Publish, share and roll back releases, and what conversations are served by."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID, uuid4

import pytest
from asgiref.sync import async_to_sync
from django.db import DatabaseError, transaction
from hypothesis import given
from hypothesis import strategies as st

from apps.audit.enums import AuditEvent
from apps.audit.models import AuditEntry
from apps.persona import services as personas
from apps.persona.enums import Axis, Preset
from apps.releases import queries, rules, services, simulation_gate, snapshots
from apps.releases.enums import ChangeKind, ReleaseStatus, SimulationOutcome, SimulationRule
from apps.releases.models import Release
from apps.sessions import prompt_trace, served, turn
from apps.sessions.models import ChatSession, Turn
from apps.sessions.services import start_session
from apps.sessions.steps.answer import briefing_of
from apps.tenants.models import Deployment
from apps.tenants.services import change_deployment
from kernel.errors import NotFound, SilasError
from kernel.tenancy import tenant_scope
from tests.factories.sessions import answered, make_session, say
from tests.rivals import race

ACTOR = "user:00000000-0000-0000-0000-000000000001"


def publish(deployment: Deployment, **fields: Any) -> Release:
    with tenant_scope(deployment.tenant_id):
        return services.publish(deployment, actor=ACTOR, **fields)


def edit(deployment: Deployment, **changes: Any) -> None:
    with tenant_scope(deployment.tenant_id):
        change_deployment(Deployment.objects.get(pk=deployment.pk), actor=ACTOR, **changes)


def shares(deployment: Deployment) -> dict[int, tuple[str, int]]:
    with tenant_scope(deployment.tenant_id):
        return {row.number: (row.status, row.share) for row in queries.releases_of(deployment.pk)}


def greeting(session: ChatSession) -> str:
    with tenant_scope(session.tenant_id):
        row = ChatSession.objects.select_related("deployment").get(pk=session.pk)
        return served.settings_of(row).greeting


def persona_told(session: ChatSession) -> str:
    """What the next turn of the conversation tells models of the persona."""
    say(session, "What is my excess?")
    with tenant_scope(session.tenant_id):
        state = turn.open_turn(session.pk, consumer="test")
        assert state is not None
        return briefing_of(state, "").persona


def refused(code: str) -> Any:
    return pytest.raises(SilasError, check=lambda error: error.code == code)


def two_releases(deployment: Deployment, *, share: int = 50) -> None:
    edit(deployment, greeting="First")
    publish(deployment)
    edit(deployment, greeting="Second")
    publish(deployment, share=share)


def session_for(deployment: Deployment, wanted: str) -> ChatSession:
    """A new conversation that got this greeting."""
    return next(session for session in iter(lambda: make_session(deployment), None) if greeting(session) == wanted)


@given(st.lists(st.integers(1, 99), min_size=1, max_size=1), st.uuids())
def test_every_conversation_gets_exactly_one_live_release(old: list[int], session_id: UUID) -> None:
    live = [old[0], 100 - old[0]]
    assert rules.pick(live, session_id) == (1 if rules.bucket_of(session_id) < live[1] else 0)
    assert rules.pick([100], session_id) == 0


def test_shares_are_met_by_many_conversations() -> None:
    picked = [rules.pick([70, 30], uuid4()) for _ in range(4000)]
    assert 0.25 < sum(picked) / len(picked) < 0.35


def test_deployment_without_releases_serves_its_fields(deployment: Deployment) -> None:
    session = make_session(deployment)
    edit(deployment, greeting="Edited")
    assert session.release_id is None
    assert greeting(session) == "Edited"


def test_edits_reach_visitors_when_they_are_published(deployment: Deployment) -> None:
    edit(deployment, greeting="First", persona="Be brief.")
    first = publish(deployment)
    edit(deployment, greeting="Second", persona="Be long.")
    session = make_session(deployment)
    assert session.release_id == first.pk
    assert greeting(session) == "First"
    assert persona_told(session).startswith("Be brief.")
    publish(deployment)
    assert greeting(session) == "First"
    assert greeting(make_session(deployment)) == "Second"


def test_personality_is_served_from_the_release(tenant: Any, deployment: Deployment) -> None:
    with tenant_scope(tenant):
        personas.set_axes(deployment, {Axis.FORMALITY: 1.0}, actor=ACTOR)
    publish(deployment)
    with tenant_scope(tenant):
        personas.choose_preset(deployment, Preset.OFF, actor=ACTOR)
    assert "Write formally." in persona_told(make_session(deployment))


def test_models_are_served_from_the_release(deployment: Deployment) -> None:
    publish(deployment)
    edit(deployment, model_names={**deployment.model_names, "proxy": "openai:gpt-5"})
    session = make_session(deployment)
    with tenant_scope(session.tenant_id):
        row = ChatSession.objects.select_related("deployment").get(pk=session.pk)
        assert served.settings_of(row).model_for("proxy") == "builtin:grounded"


def test_two_conversations_at_half_keep_their_release_through_edits(deployment: Deployment) -> None:
    two_releases(deployment)
    first, second = session_for(deployment, "First"), session_for(deployment, "Second")
    edit(deployment, greeting="Third")
    with tenant_scope(deployment.tenant_id):
        services.change_share(deployment, 2, share=90, actor=ACTOR)
    publish(deployment)
    assert greeting(first) == "First"
    assert greeting(second) == "Second"
    persona_told(first)
    assert greeting(first) == "First"
    assert shares(deployment) == {3: ("live", 100), 2: ("retired", 0), 1: ("retired", 0)}


def test_conversation_from_before_the_first_release_gets_one_with_its_next_message(deployment: Deployment) -> None:
    session = make_session(deployment)
    release = publish(deployment)
    persona_told(session)
    with tenant_scope(deployment.tenant_id):
        assert ChatSession.objects.get(pk=session.pk).release_id == release.pk


def test_tests_are_served_by_the_working_copy(deployment: Deployment) -> None:
    publish(deployment)
    edit(deployment, greeting="Draft", persona="Draft persona.")
    started = start_session(deployment, is_test=True)
    with tenant_scope(deployment.tenant_id):
        session = ChatSession.objects.get(pk=started.session_id)
    assert greeting(session) == "Draft"
    assert persona_told(session).startswith("Draft persona.")
    with tenant_scope(deployment.tenant_id):
        assert ChatSession.objects.get(pk=session.pk).release_id is None


def test_answers_say_which_release_gave_them(tenant: Any, deployment: Deployment) -> None:
    edit(deployment, persona="Be brief.")
    release = publish(deployment)
    session = async_to_sync(answered)(deployment, "What is my excess?")
    edit(deployment, persona="Be long.")
    with tenant_scope(tenant):
        entry = AuditEntry.objects.get(event=AuditEvent.TURN_COMPLETED)
        row = Turn.objects.get(session_id=session.pk)
        window = prompt_trace.seen_in(prompt_trace.last_attempt(session.pk, number=1))
    assert json.loads(entry.data)["release"] == 1
    assert row.release_id == release.pk
    assert window is not None
    assert window.release == 1
    (persona,) = [item for zone in window.zones for item in zone.items if item.place == "persona"]
    assert persona.text == "Be brief."


def test_snapshot_and_its_hash_say_what_was_published(tenant: Any, deployment: Deployment) -> None:
    edit(deployment, greeting="Hello")
    release = publish(deployment, note="first")
    with tenant_scope(tenant):
        row = Release.objects.get(pk=release.pk)
        assert row.read_snapshot().sha256 == row.sha256
        assert row.read_snapshot() == snapshots.take(deployment.__class__.objects.get(pk=deployment.pk))
        entry = AuditEntry.objects.get(event=AuditEvent.RELEASE_PUBLISHED)
    assert row.snapshot["served"]["greeting"] == "Hello"
    assert json.loads(entry.data) == {"number": 1, "share": 100, "sha256": row.sha256}


@pytest.mark.parametrize("change", ["snapshot", "delete", "number"])
def test_release_never_changes(tenant: Any, deployment: Deployment, change: str) -> None:
    release = publish(deployment)
    with tenant_scope(tenant):
        rows = Release.objects.filter(pk=release.pk)
        with pytest.raises(DatabaseError, match="never changes"), transaction.atomic():
            rows.delete() if change == "delete" else rows.update(**{change: 7})


def test_publishing_what_somebody_changed_meanwhile_is_refused(tenant: Any, deployment: Deployment) -> None:
    with tenant_scope(tenant):
        seen = snapshots.take(deployment).sha256
    edit(deployment, persona="Sold to the highest bidder.")
    with refused("release_changed"):
        publish(deployment, sha256=seen)
    assert shares(deployment) == {}


def test_publishing_without_a_change_is_refused(deployment: Deployment) -> None:
    publish(deployment)
    with refused("release_unchanged"):
        publish(deployment)
    assert len(shares(deployment)) == 1


@pytest.mark.parametrize("share", [0, 101, 50])
def test_first_release_gets_all_conversations(deployment: Deployment, share: int) -> None:
    with refused("invalid_share"):
        publish(deployment, share=share)


def test_third_release_ends_the_one_that_was_tried(deployment: Deployment) -> None:
    two_releases(deployment, share=10)
    edit(deployment, greeting="Third")
    publish(deployment, share=20)
    assert shares(deployment) == {3: ("live", 20), 2: ("retired", 0), 1: ("live", 80)}


@pytest.mark.parametrize(
    ("share", "expected"),
    [
        (30, {2: ("live", 30), 1: ("live", 70)}),
        (100, {2: ("live", 100), 1: ("retired", 0)}),
        (0, {2: ("retired", 0), 1: ("live", 100)}),
    ],
)
def test_share_of_one_release_leaves_the_rest_to_the_other(
    tenant: Any, deployment: Deployment, share: int, expected: Any
) -> None:
    two_releases(deployment)
    with tenant_scope(tenant):
        services.change_share(deployment, 2, share=share, actor=ACTOR)
    assert shares(deployment) == expected


def test_only_live_release_keeps_everything_and_a_former_one_gets_nothing(tenant: Any, deployment: Deployment) -> None:
    edit(deployment, greeting="First")
    publish(deployment)
    edit(deployment, greeting="Second")
    publish(deployment)
    with tenant_scope(tenant):
        with refused("invalid_share"):
            services.change_share(deployment, 2, share=50, actor=ACTOR)
        with refused("release_not_live"):
            services.change_share(deployment, 1, share=50, actor=ACTOR)


def test_rolling_back_serves_the_former_settings_to_everybody_at_once(tenant: Any, deployment: Deployment) -> None:
    two_releases(deployment)
    session = session_for(deployment, "Second")
    with tenant_scope(tenant):
        release = services.roll_back(deployment, 1, newest=2, actor=ACTOR)
    assert release.number == 3
    assert release.restores == 1
    assert shares(deployment) == {3: ("live", 100), 2: ("withdrawn", 0), 1: ("withdrawn", 0)}
    assert greeting(session) == "First"
    persona_told(session)
    with tenant_scope(tenant):
        assert ChatSession.objects.get(pk=session.pk).release_id == release.pk
        assert Deployment.objects.get(pk=deployment.pk).greeting == "Second"
        assert AuditEntry.objects.filter(event=AuditEvent.RELEASE_ROLLED_BACK).count() == 1


def test_two_owners_who_roll_back_at_once_make_one_release(tenant: Any, deployment: Deployment) -> None:
    two_releases(deployment)

    def roll_back() -> Release:
        with tenant_scope(tenant):
            return services.roll_back(deployment, 1, newest=2, actor=ACTOR)

    outcomes = race(roll_back, roll_back)
    assert [getattr(one, "number", None) for one in outcomes].count(3) == 1
    assert [getattr(one, "code", None) for one in outcomes].count("release_changed") == 1
    assert sorted(shares(deployment)) == [1, 2, 3]


def test_rivals_who_publish_get_numbers_without_gaps(tenant: Any, deployment: Deployment) -> None:
    outcomes = race(lambda: publish(deployment), lambda: publish(deployment))
    assert [getattr(one, "code", None) for one in outcomes].count("release_unchanged") == 1
    assert shares(deployment) == {1: ("live", 100)}


def test_another_tenant_sees_and_changes_no_release(tenant: Any, other_tenant: Any, deployment: Deployment) -> None:
    publish(deployment)
    with tenant_scope(other_tenant):
        assert not queries.releases_of(deployment.pk)
        with pytest.raises(NotFound):
            queries.release_by_number(deployment.pk, 1)
        with pytest.raises(Deployment.DoesNotExist):
            services.roll_back(deployment, 1, newest=1, actor=ACTOR)
    assert shares(deployment) == {1: ("live", 100)}


def test_difference_names_what_changed(tenant: Any, deployment: Deployment) -> None:
    edit(deployment, persona="Be brief.")
    publish(deployment)
    edit(deployment, persona="Be long.", languages=["de"])
    with tenant_scope(tenant):
        personas.set_axes(deployment, {Axis.WARMTH: 0.25}, actor=ACTOR)
        before = queries.release_by_number(deployment.pk, 1).read_snapshot()
        changes = rules.differences(before, snapshots.take(Deployment.objects.get(pk=deployment.pk)))
    found = {(change.kind, change.name): (change.before, change.after) for change in changes}
    assert found[ChangeKind.PERSONA, ""] == ("Be brief.", "Be long.")
    assert found[ChangeKind.LANGUAGES, ""] == ("", "de")
    assert found[ChangeKind.AXIS, "warmth"][1] == "25"
    assert found[ChangeKind.PRESET, ""] == ("off", "custom")


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Set how the simulation of a snapshot ended, by its hash."""
    outcomes: dict[str, SimulationOutcome] = {}
    judge = lambda deployment, snapshot: outcomes.get(snapshot.sha256, SimulationOutcome.MISSING)  # noqa: E731
    monkeypatch.setattr(simulation_gate, "_judges", [judge])
    return outcomes


def test_required_simulation_must_have_passed_for_exactly_this_snapshot(
    tenant: Any, deployment: Deployment, judged: Any
) -> None:
    with tenant_scope(tenant):
        services.set_simulation_rule(SimulationRule.REQUIRE, actor=ACTOR)
        judged[snapshots.take(deployment).sha256] = SimulationOutcome.PASSED
    edit(deployment, persona="Another.")
    with refused("simulation_required"):
        publish(deployment)
    with refused("simulation_required"):
        publish(deployment, override_reason="because")
    with tenant_scope(tenant):
        judged[snapshots.take(Deployment.objects.get(pk=deployment.pk)).sha256] = SimulationOutcome.PASSED
    assert publish(deployment).simulation == SimulationOutcome.PASSED


def test_override_needs_a_reason_and_is_audited(tenant: Any, deployment: Deployment, judged: Any) -> None:
    with tenant_scope(tenant):
        services.set_simulation_rule(SimulationRule.REQUIRE, actor=ACTOR)
        judged[snapshots.take(deployment).sha256] = SimulationOutcome.FAILED
    release = publish(deployment, override_reason="The bot gives wrong phone numbers")
    assert release.simulation == SimulationOutcome.FAILED
    assert release.override_reason == "The bot gives wrong phone numbers"
    with tenant_scope(tenant):
        assert AuditEntry.objects.filter(event=AuditEvent.SIMULATION_OVERRIDDEN).count() == 1


def test_rolling_back_asks_for_no_simulation(tenant: Any, deployment: Deployment, judged: Any) -> None:
    two_releases(deployment)
    with tenant_scope(tenant):
        services.set_simulation_rule(SimulationRule.REQUIRE, actor=ACTOR)
        assert services.roll_back(deployment, 1, newest=2, actor=ACTOR).status == ReleaseStatus.LIVE
